//! Runs the fuzzers' corpus (`fuzz/`) again.

#[path = "../../../fuzz/src/layer.rs"]
mod layer;
#[path = "../../../fuzz/src/manifest.rs"]
mod manifest;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn corpus_of_layers_passes() {
    replay::replay("layer_archive", layer::check);
}

#[test]
fn corpus_of_manifests_passes() {
    replay::replay("manifest", manifest::check);
}
