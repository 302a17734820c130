//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/kubelet.rs"]
mod kubelet;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

corpora! {
    corpus_of_kubelets_passes: "kubelet", kubelet::check;
    corpus_of_prometheus_responses_passes: "prometheus", cluster::check_prometheus;
    corpus_of_workers_passes: "worker", cluster::check_worker;
}
