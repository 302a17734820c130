//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/kubelet.rs"]
mod kubelet;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn corpus_of_kubelets_passes() {
    replay::replay("kubelet", kubelet::check);
}
