//! Invariants of usage and of progress, whatever kubelets, proxies, Prometheus and workers send.

use super::cadvisor::ControlGroups;
use super::kubelet::Subject;
use super::sample::{Opening, Reading, Samples};
use super::usage::{Watched, generator_snapshot, snapshot_of};
use super::worker::{LAST_LINES, events};
use crate::lines::{Batch, Lines};
use crate::prometheus::{LastSample, read_count};
use crate::worker::generator::is_detail;
use crate::worker::protocol::{Progress, Status};
use crate::worker::usage;
use experiment::environment::deploy::DriverEventKind;
use experiment::environment::{ComponentSnapshot, Snapshot};
use mesh::linkerd;
use results::Role;
use results::exposition::samples;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
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
    check_window(&open, &close);
}

/// Reads the responses of a Prometheus at two moments, which are separated by a zero byte, and checks the same invariants as
/// [`check_kubelet`]. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_prometheus(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let own = BTreeSet::from([OWN]);
    let [open, close] = [0, 1].map(|moment| {
        let response = text.split('\0').nth(moment).unwrap_or_default();
        let _ = read_count(response);
        let read = LastSample::read(response).unwrap_or_default();
        // A series takes more than its JSON syntax: {"metric":{},"values":[[0,""]]}.
        assert!(read.len() <= response.len() / 30, "{} samples", read.len());
        Reading::of_samples(&read, &own)
    });
    check_window(&open, &close);
}

/// Checks the usage of a window with these samples.
fn check_window(open: &Reading, close: &Reading) {
    for (key, sample) in open.samples.iter().chain(&close.samples) {
        assert_eq!((key.0.as_str(), key.1.as_str()), OWN);
        let _ = sample.cpu.user + sample.cpu.system + sample.cpu.total;
    }
    let [from, to] = WINDOW_S.map(Duration::from_secs);
    let mut opening = Opening::new(from, Samples::default());
    let opened = snapshots(open, &opening.add(by_container(open)));
    let (mut nodes, mut closed) = (Vec::new(), by_container(close));
    open.nodes.iter().for_each(|node| _ = opening.add_node(node.clone(), &mut nodes));
    let known = closed.0.len();
    assert!(closed.keep_new(to, &opening).iter().all(|note| !note.is_empty()));
    assert!(closed.0.len() <= known);
    let snapshot =
        |components, nodes: &[_]| Snapshot { components, nodes: nodes.to_vec(), ..Snapshot::default() };
    check_usage(&snapshot(opened, &nodes), &snapshot(snapshots(close, &closed), &close.nodes));
}

fn check_usage(open: &Snapshot, close: &Snapshot) {
    let usage = close.usage_since(open);
    for component in usage.components {
        let throttled_s = component.throttling.map_or(0.0, |throttling| throttling.time_s);
        let times = [component.cpu_user_s, component.cpu_system_s, component.cpu_cores(), throttled_s];
        assert!(times.iter().all(|time| time.is_finite() && *time >= 0.0), "{component:?}");
    }
    for node in usage.nodes {
        assert!(node.busy_cores.is_finite() && node.busy_cores >= 0.0, "{node:?}");
        assert!(node.other_cores.is_none_or(|cores| cores >= 0.0), "{node:?}");
    }
}

/// Snapshots of the containers of a reading that have these samples.
fn snapshots(reading: &Reading, samples: &Samples) -> Vec<ComponentSnapshot> {
    let watched = reading.samples.keys().map(|key| Watched {
        name: key.2.clone(),
        role: Role::App,
        pod: key.1.clone(),
        key: key.clone(),
        node: NODE.to_owned(),
        shows_network: true,
    });
    watched
        .filter_map(|watched| Some(snapshot_of(&watched, samples.0.get(&watched.name)?, "kubelet")))
        .collect()
}

/// Reads messages of a worker, and checks invariants: no line is lost, and usage of the window is finite. The input is the
/// progress of a generator and the worker's status at two moments, separated by zero bytes. All of it is also read as lines of a
/// generator and as files of the kernel. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_worker(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let parts: Vec<&str> = text.splitn(3, '\0').collect();
    let part = |number: usize| parts.get(number).copied().unwrap_or_default();
    if let Ok(progress) = serde_json::from_str::<Progress>(part(0)) {
        let again = serde_json::to_string(&progress).expect("it has text alone");
        assert_eq!(serde_json::from_str::<Progress>(&again).expect("it was written here"), progress);
        check_lines(&progress.lines);
    }
    check_lines(&text.lines().map(str::to_owned).collect::<Vec<_>>());
    let snapshot = |part: &str| {
        let Status { now_ns, usage } = serde_json::from_str(part).unwrap_or_default();
        let component =
            usage.map(|usage| generator_snapshot("generator".to_owned(), "client", now_ns, &usage));
        Snapshot { components: component.into_iter().collect(), ..Snapshot::default() }
    };
    check_usage(&snapshot(part(1)), &snapshot(part(2)));
    let (_, _) = (usage::traffic(&text), usage::field(&text, "oom_kill"));
}

/// Checks that each line is an event, and that a worker drops none that a trial waits for.
fn check_lines(lines: &[String]) {
    let mut kept = Lines::default();
    for line in lines {
        kept.push(line.clone(), is_detail(line));
    }
    let count = lines.len();
    // Inputs are far shorter than what a worker keeps, and than a batch.
    assert_eq!(kept.batch(0), Batch { lines: lines.to_vec(), next: count, is_last: true });
    let mut last_lines = VecDeque::new();
    let events: Vec<DriverEventKind> = events(lines.to_vec(), &mut last_lines).collect();
    assert_eq!((events.len(), last_lines.len()), (count, count.min(LAST_LINES)));
    for (event, line) in events.iter().zip(lines) {
        if let DriverEventKind::Message(message) = event {
            assert_eq!(message, line);
        }
    }
}

fn reading(summary: &str, page: &str) -> Reading {
    let linkerd = linkerd::read_counters(page);
    assert!(linkerd.len() <= 2 * samples(page).count());
    let groups = ControlGroups::read(page);
    let Ok(summary) = serde_json::from_str::<Value>(summary) else { return Reading::default() };
    let own = BTreeSet::from([OWN]);
    let reading = Reading::of_pages(NODE, &summary, &groups, Subject { own: &own, proxy: Some(PROXY) });
    reading.samples.keys().for_each(|key| _ = groups.network(key));
    reading
}

fn by_container(reading: &Reading) -> Samples {
    Samples(reading.samples.iter().map(|(key, sample)| (key.2.clone(), *sample)).collect())
}
