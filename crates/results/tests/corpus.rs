//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/exposition.rs"]
mod exposition;
#[path = "../../../fuzz/src/foreign_result.rs"]
mod foreign_result;
#[path = "../../../fuzz/src/histogram.rs"]
mod histogram;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

corpora! {
    corpus_of_exposition_pages_passes: "exposition", exposition::check;
    corpus_of_foreign_results_passes: "foreign_result", foreign_result::check;
    corpus_of_histograms_passes: "histogram", histogram::check;
}
