//! Samples of containers. Each sample has its own time, which is kept: usage covers the time between two
//! samples, not the window.

use crate::settings::SURE_WINDOW;
use experiment::environment::{CpuTimes, NodeSnapshot};
use results::units::format_duration;
use std::collections::BTreeMap;
use std::time::Duration;

/// Namespace, pod and container.
pub(super) type Key = (String, String, String);

/// One container at the time of its sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Time since 1970.
    pub at: Duration,
    /// Its split into user mode and kernel is as `modes` says.
    pub cpu: CpuTimes,
    pub modes: Modes,
    pub working_set_bytes: Option<u64>,
    pub anonymous_bytes: Option<u64>,
    /// Traffic of the pod.
    pub network: Option<Traffic>,
    /// Periods, throttled periods, and seconds throttled.
    pub throttling: Option<(u64, u64, f64)>,
}

/// Traffic of all interfaces of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    /// Time of the counters, since 1970; absent if unknown.
    pub at: Option<Duration>,
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

/// Source of the split into user mode and kernel.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Modes {
    /// There is no source.
    #[default]
    Unknown,
    /// Counters of the whole pod.
    OfPod,
    /// Counters of the container, but not from the same time as its total.
    OfOtherSample,
    /// Counters of the container from the same sample.
    OfSample,
}

impl Modes {
    /// Note of a trial on CPU time with this split, as words that follow `CPU of NAMES`.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Unknown => Some("is all shown as user mode: no counter separates it from the kernel"),
            Self::OfPod => Some("is divided into user mode and kernel as that of the whole pod"),
            Self::OfOtherSample => {
                Some("is divided into user mode and kernel by samples of other moments than its total")
            }
            Self::OfSample => None,
        }
    }
}

/// One reading of all sources.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub samples: BTreeMap<Key, Sample>,
    pub nodes: Vec<NodeSnapshot>,
    /// Number of pods on the nodes that do not belong to the experiment and have a proxy of the same mesh.
    pub other_proxies: usize,
    /// Notes on unknown usage.
    pub notes: Vec<String>,
}

/// Samples by component.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Samples(pub BTreeMap<String, Sample>);

/// Opening of a window, with the first sample of each component within it. Kubelets take samples at their own interval, so the
/// first ones are known some seconds after the window has opened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opening {
    /// Time at which the window opened, since 1970.
    at: Duration,
    /// Last samples before the window.
    before: Samples,
    first: Samples,
}

impl Opening {
    pub fn new(at: Duration, before: Samples) -> Self {
        Self { at, before, first: Samples::default() }
    }

    /// Adds samples within the window of components that had none so far, and returns the added ones.
    pub fn add(&mut self, mut now: Samples) -> Samples {
        now.0.retain(|name, sample| !self.first.0.contains_key(name) && self.has(name, sample));
        self.first.0.extend(now.0.clone());
        now
    }

    pub fn components(&self) -> usize {
        self.first.0.len()
    }

    /// True if a sample was taken within the window. Clocks of nodes may differ from this machine's clock: a sample that existed
    /// when the window opened is never within it.
    fn has(&self, name: &str, sample: &Sample) -> bool {
        let is_later = |at: Duration| at > self.at;
        let is_new = self.before.0.get(name).is_none_or(|before| sample.at > before.at);
        is_new && is_later(sample.at) && sample.network.and_then(|network| network.at).is_none_or(is_later)
    }

    /// Adds the first samples within the window of a node and of its containers, each as it comes: a kubelet looks at an idle
    /// container less often. Returns true if none is missing.
    pub fn add_node(&self, mut node: NodeSnapshot, added: &mut Vec<NodeSnapshot>) -> bool {
        let wanted = node.containers.len();
        node.containers.retain(|_, container| container.at > self.at);
        if let Some(known) = added.iter_mut().find(|known| known.name == node.name) {
            for (name, container) in node.containers {
                known.containers.entry(name).or_insert(container);
            }
            return known.containers.len() >= wanted;
        }
        if node.all.at <= self.at {
            return false;
        }
        let is_complete = node.containers.len() == wanted;
        added.push(node);
        is_complete
    }
}

impl Samples {
    /// Keeps the samples of components with two samples in the window, which closes now. Returns notes on components without
    /// usage, on how far samples are from the ends of the window, and on the source of the split into user mode and kernel.
    pub fn keep_new(&mut self, now: Duration, opening: &Opening) -> Vec<String> {
        let first = &opening.first;
        let mut notes = self.leave_out(first);
        let spans = self.0.iter().filter_map(|(name, close)| Some([first.0.get(name)?.at, close.at]));
        let distances = spans.flat_map(|span| [span[0].abs_diff(opening.at), span[1].abs_diff(now)]);
        notes.extend(distances.max().map(|farthest| {
            let farthest = farthest.as_secs_f64();
            format!(
                "usage of services and proxies is between two samples of kubelets within the window, up to {farthest:.1} s from its ends"
            )
        }));
        notes.extend(self.divide(first));
        notes
    }

    /// Removes components without two samples in the window, and those whose counters were reset.
    fn leave_out(&mut self, first: &Self) -> Vec<String> {
        let (mut single, mut restarted) = (Vec::new(), Vec::new());
        self.0.retain(|name, sample| {
            let Some(first) = first.0.get(name).filter(|first| sample.at > first.at) else {
                single.push(name.clone());
                return false;
            };
            if sample.cpu.total < first.cpu.total {
                restarted.push(name.clone());
                return false;
            }
            let is_older = |network: &Traffic| {
                network.at.is_some_and(|at| Some(at) <= first.network.and_then(|network| network.at))
            };
            sample.network = sample.network.filter(|network| !is_older(network));
            true
        });
        let window = format_duration(SURE_WINDOW);
        let lacks = [
            (
                single,
                format!("it has no two samples within the window, which takes a `load.duration` of {window}"),
            ),
            (restarted, "it was restarted within the window, and its counters with it".to_owned()),
        ];
        let note = |(names, why): (Vec<String>, String)| {
            (!names.is_empty()).then(|| format!("usage of {} is not known: {why}", names.join(", ")))
        };
        lacks.into_iter().filter_map(note).collect()
    }

    /// Removes the split into user mode and kernel from samples whose source is not the one at the opening.
    fn divide(&mut self, opened: &Self) -> Vec<String> {
        let mut by_modes: BTreeMap<Modes, Vec<&str>> = BTreeMap::new();
        for (name, sample) in &mut self.0 {
            if opened.0.get(name).is_some_and(|before| before.modes != sample.modes) {
                sample.modes = Modes::Unknown;
            }
            if sample.modes == Modes::Unknown {
                (sample.cpu.user, sample.cpu.system) = Default::default();
            }
            by_modes.entry(sample.modes).or_default().push(name);
        }
        let note = |(modes, names): (Modes, Vec<&str>)| {
            Some(format!("CPU of {} {}", names.join(", "), modes.note()?))
        };
        by_modes.into_iter().filter_map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::CpuSample;

    const SECOND: Duration = Duration::from_secs(1);

    fn sample(at_s: u32, cpu_s: [u32; 3], modes: Modes) -> Sample {
        let [total, user, system] = cpu_s.map(|seconds| seconds * SECOND);
        Sample { at: at_s * SECOND, cpu: CpuTimes { total, user, system }, modes, ..Sample::default() }
    }

    fn samples<const N: usize>(of: [(&str, Sample); N]) -> Samples {
        Samples(of.map(|(name, sample)| (name.to_owned(), sample)).into())
    }

    fn opening(at_s: u32, before: Samples) -> Opening {
        Opening::new(at_s * SECOND, before)
    }

    /// A window with these first samples.
    fn opened_with(first: &Samples) -> Opening {
        let mut opening = opening(80, Samples::default());
        assert_eq!(opening.add(first.clone()), *first);
        opening
    }

    #[test]
    fn opening_keeps_first_sample_within_window() {
        let at = |at_s| sample(at_s, [1, 1, 0], Modes::OfSample);
        let mut opening = opening(100, samples([("app", at(96)), ("ahead", at(104))]));
        assert_eq!(opening.add(samples([("app", at(96)), ("ahead", at(104))])), Samples::default());
        assert_eq!(opening.add(samples([("app", at(103)), ("new", at(99))])), samples([("app", at(103))]));
        let later = samples([("app", at(110)), ("new", at(105)), ("ahead", at(114))]);
        assert_eq!(opening.add(later), samples([("new", at(105)), ("ahead", at(114))]));
        assert_eq!((opening.components(), opening.first.0["app"]), (3, at(103)));
    }

    #[test]
    fn opening_with_traffic_from_before_window_is_not_complete() {
        let counted = |at_s: u32| {
            let network = Traffic { at: Some(at_s * SECOND), ..Traffic::default() };
            samples([("app", Sample { network: Some(network), ..sample(103, [1, 1, 0], Modes::OfSample) })])
        };
        let mut opening = opening(100, Samples::default());
        assert_eq!(opening.add(counted(98)), Samples::default());
        assert_eq!(opening.add(counted(101)), counted(101));
    }

    #[test]
    fn add_node_keeps_first_samples_within_window() {
        let cpu = |at_s: u32| CpuSample { at: at_s * SECOND, ..CpuSample::default() };
        let node = |all_s, [app_s, proxy_s]: [u32; 2]| NodeSnapshot {
            all: cpu(all_s),
            containers: [("app".to_owned(), cpu(app_s)), ("proxy".to_owned(), cpu(proxy_s))].into(),
            ..NodeSnapshot::default()
        };
        let (opening, mut added) = (opening(100, Samples::default()), Vec::new());
        assert!(!opening.add_node(node(99, [101, 101]), &mut added));
        assert_eq!(added, []);
        assert!(!opening.add_node(node(102, [103, 98]), &mut added));
        assert!(opening.add_node(node(112, [113, 114]), &mut added));
        assert_eq!(added, [node(102, [103, 114])]);
    }

    #[test]
    fn keep_new_without_two_samples_omits_component() {
        let at = |at_s| sample(at_s, [1, 1, 0], Modes::OfSample);
        let opened = opened_with(&samples([("app", at(84)), ("proxy", at(99))]));
        let mut closed = samples([("app", at(98)), ("proxy", at(99)), ("new", at(98))]);
        let notes = closed.keep_new(100 * SECOND, &opened);
        assert_eq!(closed, samples([("app", at(98))]));
        let expected = [
            "usage of new, proxy is not known: it has no two samples within the window, which takes a `load.duration` of 1m",
            "usage of services and proxies is between two samples of kubelets within the window, up to 4.0 s from its ends",
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn keep_new_after_restart_omits_component() {
        let opened = opened_with(&samples([("istiod", sample(90, [70, 60, 10], Modes::OfSample))]));
        let mut closed = samples([("istiod", sample(100, [2, 1, 1], Modes::OfSample))]);
        let notes = closed.keep_new(110 * SECOND, &opened);
        assert_eq!(closed, Samples::default());
        assert_eq!(
            notes,
            ["usage of istiod is not known: it was restarted within the window, and its counters with it"]
        );
    }

    #[test]
    fn keep_new_drops_modes_of_other_source_than_at_opening() {
        let of_pod = sample(90, [1, 20, 30], Modes::OfPod);
        let opened = opened_with(&samples([
            ("app", of_pod),
            ("proxy", of_pod),
            ("undivided", sample(90, [1, 0, 0], Modes::Unknown)),
        ]));
        let mut closed = samples([
            ("app", sample(100, [2, 21, 33], Modes::OfPod)),
            ("proxy", sample(100, [2, 1, 1], Modes::OfSample)),
            ("undivided", sample(100, [2, 0, 0], Modes::Unknown)),
        ]);
        let notes = closed.keep_new(100 * SECOND, &opened);
        assert_eq!(closed.0["proxy"], sample(100, [2, 0, 0], Modes::Unknown));
        assert_eq!(closed.0["app"].cpu.system, 33 * SECOND);
        let expected = [
            "CPU of proxy, undivided is all shown as user mode: no counter separates it from the kernel",
            "CPU of app is divided into user mode and kernel as that of the whole pod",
        ];
        assert_eq!(notes[1..], expected);
    }
}
