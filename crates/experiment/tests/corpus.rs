//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/experiment_file.rs"]
mod experiment_file;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/topology_file.rs"]
mod topology_file;
#[path = "../../../fuzz/src/traffic_file.rs"]
mod traffic_file;

corpora! {
    corpus_of_experiment_files_passes: "experiment_file", experiment_file::check;
    corpus_of_topology_files_passes: "topology_file", topology_file::check;
    corpus_of_traffic_files_passes: "traffic_file", traffic_file::check;
}
