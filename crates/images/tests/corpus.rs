//! Runs the fuzzers' corpus (`fuzz/`) again.

#[path = "../../../fuzz/src/challenge.rs"]
mod challenge;
#[path = "../../../fuzz/src/compressed.rs"]
mod compressed;
#[path = "../../../fuzz/src/docker_config.rs"]
mod docker_config;
#[path = "../../../fuzz/src/layer.rs"]
mod layer;
#[path = "../../../fuzz/src/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn corpus_of_layers_passes() {
    replay("layer_archive", layer::check);
}

#[test]
fn corpus_of_manifests_passes() {
    replay("manifest", manifest::check);
}

#[test]
fn corpus_of_challenges_passes() {
    replay("challenge", challenge::check);
}

#[test]
fn corpus_of_docker_configs_passes() {
    replay("docker_config", docker_config::check);
}

#[test]
fn corpus_of_compressed_layers_passes() {
    replay("compressed", compressed::check);
}
