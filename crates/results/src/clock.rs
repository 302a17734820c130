//! Clocks: which times of a load, or of a fleet, a figure is of.

use crate::figure::Figure;
use crate::histogram::HistogramSummary;
use crate::load::LoadResult;
use crate::load_point::LoadPoint;
use crate::metric::Metric;
use crate::trial::TrialRecord;

/// Distribution of times in a trial.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clock {
    /// From the intended start of each request.
    ResponseTime,
    /// From the actual send.
    ServiceTime,
    /// From the intended start of each request to the first byte of a stream of events.
    FirstByte,
    /// From the intended start of each request to the first event with content, such as a token.
    FirstEvent,
    /// From one event with content to the next of the same response.
    EventGap,
    /// From a change's acknowledgement to its arrival at a fleet's proxies.
    Convergence,
    /// From the start of connecting to a fleet proxy's first configuration.
    FirstConfiguration,
}

/// Names of all [`Figure::TIMES`] with a prefix.
macro_rules! names {
    ($prefix:literal) => {
        [
            concat!($prefix, "mean"),
            concat!($prefix, "p50"),
            concat!($prefix, "p75"),
            concat!($prefix, "p90"),
            concat!($prefix, "p95"),
            concat!($prefix, "p99"),
            concat!($prefix, "p99.9"),
            concat!($prefix, "p99.99"),
            concat!($prefix, "max"),
        ]
    };
}

impl Clock {
    /// Clocks whose figures can have a bound.
    pub const BOUNDED: [Self; 4] = [Self::ResponseTime, Self::FirstByte, Self::FirstEvent, Self::EventGap];

    /// Names of its [`Figure::TIMES`] in objectives, such as `p99` or `first-event-p99`; absent if they cannot have a bound.
    #[must_use]
    pub fn bound_names(self) -> Option<[&'static str; Figure::TIMES.len()]> {
        Some(match self {
            Self::ResponseTime => names!(""),
            Self::FirstByte => names!("first-byte-"),
            Self::FirstEvent => names!("first-event-"),
            Self::EventGap => names!("event-gap-"),
            Self::ServiceTime | Self::Convergence | Self::FirstConfiguration => return None,
        })
    }

    /// True for times that only streams of events have.
    #[must_use]
    pub fn is_of_streams(self) -> bool {
        matches!(self, Self::FirstByte | Self::FirstEvent | Self::EventGap)
    }

    /// Distribution of a trial.
    #[must_use]
    pub fn of(self, trial: &TrialRecord) -> Option<&HistogramSummary> {
        match self {
            Self::Convergence => Some(&trial.fleet()?.convergence_us),
            Self::FirstConfiguration => Some(&trial.fleet()?.first_configuration_us),
            of_load => trial.result.as_ref()?.times(of_load),
        }
    }

    /// Times that a load is about: of streams of tokens, those until the first one.
    #[must_use]
    pub fn of_load(load: &LoadPoint) -> Self {
        if load.stream.is_some() { Self::FirstEvent } else { Self::ResponseTime }
    }

    /// Metric of a figure of the distribution, if any.
    #[must_use]
    pub fn metric(self, figure: Figure) -> Option<Metric> {
        Metric::of_clock(self).find(|metric| metric.spoiled_by() == figure)
    }
}

impl LoadResult {
    /// Times by a clock; absent if the load has none, such as times of events if no response was a stream of events.
    #[must_use]
    pub fn times(&self, clock: Clock) -> Option<&HistogramSummary> {
        match clock {
            Clock::ResponseTime => Some(&self.response_time_us),
            Clock::ServiceTime => Some(&self.service_time_us),
            Clock::FirstByte => self.first_byte_us.as_ref(),
            Clock::FirstEvent => self.first_event_us.as_ref(),
            Clock::EventGap => self.event_gap_us.as_ref(),
            Clock::Convergence | Clock::FirstConfiguration => None,
        }
    }

    /// A time; absent if it falls among requests without a response, and if the load has no such times.
    #[must_use]
    pub fn time(&self, metric: Metric) -> Option<f64> {
        self.times(metric.clock()?)?.figure(metric.spoiled_by())
    }

    /// True if responses were streams of events.
    #[must_use]
    pub fn has_streams(&self) -> bool {
        self.first_event_us.is_some()
    }
}

impl Metric {
    /// Name in objectives, such as `p99` or `first-event-p99`; absent if it cannot have a bound.
    #[must_use]
    pub fn bound_name(self) -> Option<&'static str> {
        self.spoiled_by().of_times(self.clock()?.bound_names()?)
    }

    /// The time that can have a bound of this name.
    #[must_use]
    pub fn bounded(name: &str) -> Option<Self> {
        let mut bounded = Clock::BOUNDED.into_iter().flat_map(Self::of_clock);
        bounded.find(|metric| metric.bound_name() == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_of_a_load_has_a_bound_by_its_name() {
        for clock in Clock::BOUNDED {
            let names = clock.bound_names().unwrap();
            for (figure, name) in Figure::TIMES.into_iter().zip(names) {
                let metric = clock.metric(figure).unwrap();
                assert!(name.ends_with(figure.name()), "{name}");
                assert_eq!((metric.bound_name(), Metric::bounded(name)), (Some(name), Some(metric)));
            }
        }
        assert_eq!(Metric::bounded("event-gap-p99"), Some(Metric::EventGapP99Us));
        assert_eq!(Metric::CpuCores.bound_name(), None);
    }
}
