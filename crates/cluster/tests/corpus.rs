//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/kubelet.rs"]
mod kubelet;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn corpus_of_kubelets_passes() {
    replay("kubelet", kubelet::check);
}

#[test]
fn corpus_of_prometheus_responses_passes() {
    replay("prometheus", cluster::check_prometheus);
}

#[test]
fn corpus_of_workers_passes() {
    replay("worker", cluster::check_worker);
}
