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
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

corpora! {
    corpus_of_layers_passes: "layer_archive", layer::check;
    corpus_of_manifests_passes: "manifest", manifest::check;
    corpus_of_challenges_passes: "challenge", challenge::check;
    corpus_of_docker_configs_passes: "docker_config", docker_config::check;
    corpus_of_compressed_layers_passes: "compressed", compressed::check;
}
