//! Samples of containers. Each sample has its own time, which is kept: usage covers the time between two
//! samples, not the window.

use experiment::environment::{CpuTimes, NodeSnapshot};
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
    /// Bytes received and sent by the pod.
    pub network: Option<(u64, u64)>,
    /// Periods, throttled periods, and seconds throttled.
    pub throttling: Option<(u64, u64, f64)>,
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
            Self::Unknown => Some("is all shown as user mode: no counter tells it from the kernel"),
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

impl Samples {
    /// Keeps the samples that are newer than those at the opening of the window. Returns notes on components
    /// without usage, on how far samples are from the ends of the window, and on the source of the split into
    /// user mode and kernel.
    pub fn keep_new(&mut self, window: [Duration; 2], opened: &Self) -> Vec<String> {
        let mut notes = self.leave_out_old(opened);
        let spans = self.0.iter().filter_map(|(name, close)| Some([opened.0.get(name)?.at, close.at]));
        let distances = spans.flat_map(|span| [span[0].abs_diff(window[0]), span[1].abs_diff(window[1])]);
        notes.extend(distances.max().map(|farthest| {
            let farthest = farthest.as_secs_f64();
            format!(
                "usage of services and proxies is between two samples of kubelets, up to {farthest:.1} s from the ends of the window"
            )
        }));
        notes.extend(self.divide(opened));
        notes
    }

    /// Removes samples that are not newer than at the opening, or have no sample there to be compared with.
    fn leave_out_old(&mut self, opened: &Self) -> Vec<String> {
        let (mut late, mut stale) = (Vec::new(), Vec::new());
        self.0.retain(|name, sample| {
            let before = opened.0.get(name);
            let is_new = before.is_some_and(|before| sample.at > before.at);
            match before {
                None => late.push(name.clone()),
                Some(_) if !is_new => stale.push(name.clone()),
                Some(_) => {}
            }
            is_new
        });
        let lacks = [
            (late, "there was no sample yet when the window opened; a longer `load.warmup` helps"),
            (stale, "there is no sample within the window; a longer `load.duration` helps"),
        ];
        let note = |(names, why): (Vec<String>, &str)| {
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

    const SECOND: Duration = Duration::from_secs(1);

    fn sample(at_s: u32, cpu_s: [u32; 3], modes: Modes) -> Sample {
        let [total, user, system] = cpu_s.map(|seconds| seconds * SECOND);
        Sample { at: at_s * SECOND, cpu: CpuTimes { total, user, system }, modes, ..Sample::default() }
    }

    fn samples<const N: usize>(of: [(&str, Sample); N]) -> Samples {
        Samples(of.map(|(name, sample)| (name.to_owned(), sample)).into())
    }

    #[test]
    fn keep_new_without_two_samples_omits_component() {
        let at = |at_s| sample(at_s, [1, 1, 0], Modes::OfSample);
        let opened = samples([("app", at(96)), ("proxy", at(99))]);
        let mut closed = samples([("app", at(128)), ("proxy", at(99)), ("new", at(128))]);
        let notes = closed.keep_new([100 * SECOND, 130 * SECOND], &opened);
        assert_eq!(closed, samples([("app", at(128))]));
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].starts_with("usage of new is not known"), "{notes:?}");
        assert!(notes[1].starts_with("usage of proxy is not known"), "{notes:?}");
        assert!(notes[2].ends_with("up to 4.0 s from the ends of the window"), "{notes:?}");
    }

    #[test]
    fn keep_new_drops_modes_of_other_source_than_at_opening() {
        let of_pod = sample(90, [1, 20, 30], Modes::OfPod);
        let opened = samples([
            ("app", of_pod),
            ("proxy", of_pod),
            ("undivided", sample(90, [1, 0, 0], Modes::Unknown)),
        ]);
        let mut closed = samples([
            ("app", sample(100, [2, 21, 33], Modes::OfPod)),
            ("proxy", sample(100, [2, 1, 1], Modes::OfSample)),
            ("undivided", sample(100, [2, 0, 0], Modes::Unknown)),
        ]);
        let notes = closed.keep_new([90 * SECOND, 100 * SECOND], &opened);
        assert_eq!(closed.0["proxy"], sample(100, [2, 0, 0], Modes::Unknown));
        assert_eq!(closed.0["app"].cpu.system, 33 * SECOND);
        let expected = [
            "CPU of proxy, undivided is all shown as user mode: no counter tells it from the kernel",
            "CPU of app is divided into user mode and kernel as that of the whole pod",
        ];
        assert_eq!(notes[1..], expected);
    }
}
