//! Whatever the fuzzers found worth keeping, once more (`fuzz/`).

#[path = "../../../fuzz/src/layer.rs"]
mod layer;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn the_corpus_of_layers_holds() {
    replay::replay("layer_archive", layer::check);
}
