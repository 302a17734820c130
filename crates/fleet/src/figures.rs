//! Figures of one target, counted per thread and summed at the end.

use crate::transport::Stamp;
use crate::xds::{ResourceType, Response};
use results::{FleetPushes, LatencyHistogram};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const TYPES: usize = ResourceType::ALL.len();
/// Name for resource types that no proxy knows.
const UNKNOWN_TYPE: &str = "unknown";

/// Responses of one resource type.
#[derive(Clone, Debug, Default)]
struct Responses {
    count: u64,
    bytes: u64,
    resources: u64,
    routes: u64,
    removed: u64,
    /// Indexed by the trigger's position in the fleet's list.
    by_trigger: Vec<Triggered>,
}

/// Responses after one trigger.
#[derive(Clone, Copy, Debug, Default)]
struct Triggered {
    count: u64,
    bytes: u64,
}

/// Figures of one target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) connect: LatencyHistogram,
    pub(crate) first_configuration: LatencyHistogram,
    /// Responses by type; unknown types are last.
    responses: [Responses; TYPES + 1],
    pub(crate) rejections: u64,
    pub(crate) acknowledgements: u64,
    /// Violations and endings, by kind.
    pub(crate) violations: BTreeMap<&'static str, u64>,
}

impl Figures {
    pub(crate) fn responded(&mut self, response: &Response, trigger: usize) {
        let place = response.resource_type.map_or(TYPES, |resource_type| resource_type as usize);
        let responses = &mut self.responses[place];
        responses.count += 1;
        responses.bytes += response.bytes;
        responses.resources += u64::from(response.resources);
        responses.routes += u64::from(response.routes);
        responses.removed += u64::from(response.removed);
        if responses.by_trigger.len() <= trigger {
            responses.by_trigger.resize(trigger + 1, Triggered::default());
        }
        responses.by_trigger[trigger].count += 1;
        responses.by_trigger[trigger].bytes += response.bytes;
        if response.accepted {
            self.acknowledgements += 1;
        } else {
            self.rejections += 1;
        }
    }

    pub(crate) fn violated(&mut self, kind: &'static str) {
        *self.violations.entry(kind).or_default() += 1;
    }

    /// Adds the figures of another thread or target.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.first_configuration.merge(&other.first_configuration);
        for (sum, part) in self.responses.iter_mut().zip(&other.responses) {
            sum.count += part.count;
            sum.bytes += part.bytes;
            sum.resources += part.resources;
            sum.routes += part.routes;
            sum.removed += part.removed;
            if sum.by_trigger.len() < part.by_trigger.len() {
                sum.by_trigger.resize(part.by_trigger.len(), Triggered::default());
            }
            for (sum, part) in sum.by_trigger.iter_mut().zip(&part.by_trigger) {
                sum.count += part.count;
                sum.bytes += part.bytes;
            }
        }
        self.rejections += other.rejections;
        self.acknowledgements += other.acknowledgements;
        for (kind, count) in &other.violations {
            *self.violations.entry(kind).or_default() += count;
        }
    }

    /// Pushes in the form of the result.
    pub(crate) fn pushes(&self, triggers: &[String]) -> BTreeMap<String, FleetPushes> {
        let names = ResourceType::ALL.iter().map(|resource_type| resource_type.name()).chain([UNKNOWN_TYPE]);
        let seen = names.zip(&self.responses).filter(|(_, responses)| responses.count > 0);
        seen.map(|(name, responses)| {
            let by_trigger = triggers.iter().zip(&responses.by_trigger).filter(|(_, one)| one.count > 0);
            let pushes = FleetPushes {
                count: responses.count,
                bytes: responses.bytes,
                resources: responses.resources,
                routes: responses.routes,
                removed: responses.removed,
                by_trigger: by_trigger.clone().map(|(trigger, one)| (trigger.clone(), one.count)).collect(),
                bytes_by_trigger: by_trigger.map(|(trigger, one)| (trigger.clone(), one.bytes)).collect(),
            };
            (name.to_owned(), pushes)
        })
        .collect()
    }

    /// Total size of all response bodies.
    pub(crate) fn bytes_received(&self) -> u64 {
        self.responses.iter().map(|responses| responses.bytes).sum()
    }

    pub(crate) fn violations_by_name(&self) -> BTreeMap<String, u64> {
        self.violations.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
    }
}

/// A read that contained parts of responses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) stamp: Stamp,
    /// Number of events reported before the last part of a response in the read: further bytes followed theirs.
    pub(crate) followed_events: usize,
}

/// Read delays of a thread, and errors of its times of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadLag {
    /// From the receipt of a response to its read.
    pub(crate) lag: LatencyHistogram,
    /// From the receipt of a response that contained a change to its read.
    pub(crate) change_lag: LatencyHistogram,
    /// Uncertainty of the kernel's timestamps, recorded as nanoseconds in place of microseconds.
    uncertainty_ns: LatencyHistogram,
    /// Error bounds of arrivals, recorded as nanoseconds in place of microseconds.
    arrival_error_ns: LatencyHistogram,
    /// Arrivals of changes with further bytes after them in the same read.
    pub(crate) followed: u64,
    /// Responses without a kernel timestamp.
    unstamped: u64,
}

const NS_IN_US: u32 = 1000;
/// Times in results are in whole microseconds.
const RESOLUTION: Duration = Duration::from_micros(1);

impl ReadLag {
    /// True if times of arrival are kernel timestamps. A few may be missing: the kernel starts to stamp
    /// shortly after the first socket requests it.
    pub(crate) fn is_by_kernel(&self) -> bool {
        self.uncertainty_ns.count() > 0 && self.unstamped * 100 <= self.lag.count()
    }

    /// Error bound of a change's time of arrival, p99; if no change arrived, of any response. Absent if times
    /// of arrival are times of reading.
    pub(crate) fn error_p99_us(&self) -> Option<f64> {
        let errors =
            if self.arrival_error_ns.count() > 0 { &self.arrival_error_ns } else { &self.uncertainty_ns };
        self.is_by_kernel().then(|| errors.percentile_us(99.0) / f64::from(NS_IN_US))
    }

    /// Counts the arrival of a change that began at `begun`. The kernel timestamp belongs to the last bytes
    /// of the read. If other bytes followed those of the change, the change arrived earlier, but after the
    /// previous read's bytes and after its own beginning.
    pub(crate) fn record_arrival(&mut self, reading: &Reading, is_followed: bool, begun: Instant) {
        let Stamp { received, read, uncertainty, after, filled_buffer } = reading.stamp;
        self.change_lag.record(read.saturating_duration_since(received));
        let since_begun = received.saturating_duration_since(begun);
        let is_followed = is_followed || filled_buffer;
        let span = after.map_or(since_begun, |after| received.saturating_duration_since(after));
        let late = if is_followed { since_begun.min(span) } else { Duration::ZERO };
        self.followed += u64::from(is_followed);
        let error = uncertainty.unwrap_or_default() + late + RESOLUTION;
        self.arrival_error_ns.record(error.saturating_mul(NS_IN_US));
    }

    /// Counts a response by the stamp of its last read.
    pub(crate) fn record(&mut self, stamp: &Stamp) {
        self.lag.record(stamp.read.saturating_duration_since(stamp.received));
        match stamp.uncertainty {
            Some(uncertainty) => self.uncertainty_ns.record(uncertainty * NS_IN_US),
            None => self.unstamped += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.lag.merge(&other.lag);
        self.change_lag.merge(&other.change_lag);
        self.uncertainty_ns.merge(&other.uncertainty_ns);
        self.arrival_error_ns.merge(&other.arrival_error_ns);
        self.followed += other.followed;
        self.unstamped += other.unstamped;
    }
}
