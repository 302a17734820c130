//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/experiment_file.rs"]
mod experiment_file;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/topology_file.rs"]
mod topology_file;

use replay::replay;

#[test]
fn corpus_of_experiment_files_passes() {
    replay("experiment_file", experiment_file::check);
}

#[test]
fn corpus_of_topology_files_passes() {
    replay("topology_file", topology_file::check);
}
