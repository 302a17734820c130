//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/admin_page.rs"]
mod admin_page;
#[path = "../../../fuzz/src/config_dump.rs"]
mod config_dump;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn corpus_of_config_dumps_passes() {
    replay("config_dump", config_dump::check);
}

#[test]
fn corpus_of_admin_pages_passes() {
    replay("admin_page", admin_page::check);
}
