//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/learn_kiali.rs"]
mod learn_kiali;
#[path = "../../../fuzz/src/learn_objects.rs"]
mod learn_objects;
#[path = "../../../fuzz/src/learn_prometheus.rs"]
mod learn_prometheus;
#[path = "../../../fuzz/src/learn_traces.rs"]
mod learn_traces;
#[path = "../../../fuzz/src/learned.rs"]
mod learned;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

corpora! {
    corpus_of_answers_passes: "learn_prometheus", learn_prometheus::check;
    corpus_of_kiali_graphs_passes: "learn_kiali", learn_kiali::check;
    corpus_of_objects_passes: "learn_objects", learn_objects::check;
    corpus_of_traces_passes: "learn_traces", learn_traces::check;
}
