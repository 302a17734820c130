//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/admin_page.rs"]
mod admin_page;
#[path = "../../../fuzz/src/config_dump.rs"]
mod config_dump;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

corpora! {
    corpus_of_config_dumps_passes: "config_dump", config_dump::check;
    corpus_of_admin_pages_passes: "admin_page", admin_page::check;
}
