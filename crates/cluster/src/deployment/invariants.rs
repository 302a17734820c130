//! Invariants of the usage of a window, whatever kubelets and proxies show.

use super::cadvisor::ControlGroups;
use super::kubelet::Subject;
use super::sample::{Opening, Reading, Samples};
use crate::linkerd;
use experiment::environment::Snapshot;
use experiment::exposition::samples;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

const NODE: &str = "node-1";
const PROXY: &str = "istio-proxy";
/// A pod of the experiment.
const OWN: (&str, &str) = ("meshmeter", "server-0");
/// Begin and end of the window, seconds since 1970.
const WINDOW_S: [u64; 2] = [1_795_377_600, 1_795_377_660];

/// Reads two moments of a kubelet, and checks invariants: only pods of the experiment have samples, usage of the window is
/// finite, and sums do not overflow. The input is a summary and a page of counters for each moment, separated by zero bytes; the
/// counters are also read as those of a Linkerd proxy. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_kubelet(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut parts = text.splitn(4, '\0');
    let mut read = || reading(parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (open, close) = (read(), read());
    let [from, to] = WINDOW_S.map(Duration::from_secs);
    let mut opening = Opening::new(from, Samples::default());
    opening.add(by_container(&open));
    let (mut nodes, mut closed) = (Vec::new(), by_container(&close));
    open.nodes.iter().for_each(|node| _ = opening.add_node(node.clone(), &mut nodes));
    let known = closed.0.len();
    assert!(closed.keep_new(to, &opening).iter().all(|note| !note.is_empty()));
    assert!(closed.0.len() <= known);
    let snapshot = |nodes: &[_]| Snapshot { nodes: nodes.to_vec(), ..Snapshot::default() };
    for node in snapshot(&close.nodes).usage_since(&snapshot(&nodes)).nodes {
        assert!(node.busy_cores.is_finite() && node.busy_cores >= 0.0, "{node:?}");
        assert!(node.other_cores.is_none_or(|cores| cores >= 0.0), "{node:?}");
    }
}

fn reading(summary: &str, page: &str) -> Reading {
    let linkerd = linkerd::read_counters(page);
    assert!(linkerd.len() <= 2 * samples(page).count());
    let groups = ControlGroups::read(page);
    let Ok(summary) = serde_json::from_str::<Value>(summary) else { return Reading::default() };
    let own = BTreeSet::from([OWN]);
    let reading = Reading::of_pages(NODE, &summary, &groups, Subject { own: &own, proxy: Some(PROXY) });
    for (key, sample) in &reading.samples {
        assert_eq!((key.0.as_str(), key.1.as_str()), OWN);
        let _ = (groups.network(key), sample.cpu.user + sample.cpu.system + sample.cpu.total);
    }
    reading
}

fn by_container(reading: &Reading) -> Samples {
    Samples(reading.samples.iter().map(|(key, sample)| (key.2.clone(), *sample)).collect())
}
