//! Replays the fuzz corpus (`fuzz/`).

#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/zds.rs"]
mod zds;

corpora! {
    corpus_of_ztunnels_passes: "zds", zds::check;
    corpus_of_proc_texts_passes: "proc_texts", lab::observe::check_proc_texts;
    corpus_of_perf_passes: "perf_script", lab::profile::check_perf_script;
}
