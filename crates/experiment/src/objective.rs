//! Objectives: bounds on response times, errors and rates.
//!
//! Experiment files have one key per bound ([`crate::file`]). On a command line, an objective is a single
//! text, `p99=5ms,errors=0.1%`, which [`Objective`] parses and formats. Times are response times; those of streams of events have
//! a prefix: `first-event-p99=200ms,event-gap-p99=30ms`.

use crate::keys::settings::{Keys, Settings};
use crate::keys::{Key, Kind};
use results::units::{
    UnitError, format_duration, format_fraction, format_rate, parse_duration, parse_fraction, parse_rate,
};
use results::{Clock, Figure, LoadResult, Metric};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Minimum number of requests beyond a percentile in each trial: with fewer, a single slow request more or
/// less moves the percentile.
pub const SAMPLES_BEYOND_A_PERCENTILE: f64 = 10.0;

/// Bounds that figures must meet. Empty: no bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Objective {
    /// Maximum of each figure of [`Figure::TIMES`], by clock in the order of [`Clock::BOUNDED`].
    pub times: [[Option<Duration>; Figure::TIMES.len()]; Clock::BOUNDED.len()],
    /// Maximum fraction of failed requests, 0 to 1.
    pub errors: Option<f64>,
    /// Minimum rate of completed requests, per second.
    pub rate: Option<f64>,
    /// Minimum fraction of the offered rate that is completed, 0 to 1: of what was due, which differs by chance from the
    /// rate if arrivals are random.
    pub achieved: Option<f64>,
}

/// The section `objective`. Bounds on rates are of the command line alone.
impl Settings for Objective {
    fn visit(&mut self, keys: &mut impl Keys) {
        for (clock, bounds) in Clock::BOUNDED.into_iter().zip(&mut self.times) {
            let names = clock.bound_names().into_iter().flatten();
            for ((figure, name), bound) in Figure::TIMES.into_iter().zip(names).zip(bounds) {
                keys.key(bound, Key::new(name, Kind::PositiveDuration, summary(clock, figure)));
            }
        }
        let errors = Key::new("errors", Kind::Fraction, "maximum fraction of failed requests");
        keys.key(&mut self.errors, errors);
    }
}

impl Objective {
    /// Bound of a time.
    #[cfg(test)]
    pub(crate) fn time(&self, metric: Metric) -> Option<Duration> {
        self.times().find(|(bounded, _)| *bounded == metric).map(|(_, bound)| bound)
    }

    /// Times that have a bound, with the bound.
    pub fn times(&self) -> impl Iterator<Item = (Metric, Duration)> + use<> {
        let bounds = Clock::BOUNDED.into_iter().zip(self.times);
        bounds.flat_map(|(clock, bounds)| {
            let figures = Figure::TIMES.into_iter().zip(bounds);
            figures.filter_map(move |(figure, bound)| Some((clock.metric(figure)?, bound?)))
        })
    }

    /// Percentiles that have a bound, 0 to 100.
    pub fn percentiles(&self) -> impl Iterator<Item = (Metric, f64)> + use<> {
        self.times().filter_map(|(metric, _)| Some((metric, metric.spoiled_by().percentile()?)))
    }

    /// Name of the first bound that only streams of events can meet.
    #[must_use]
    pub fn of_streams(&self) -> Option<&'static str> {
        let mut times = self.times().map(|(metric, _)| metric);
        times.find(|metric| metric.clock().is_some_and(Clock::is_of_streams))?.bound_name()
    }

    /// True if there are no bounds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Number of requests needed so that `beyond` requests lie beyond each percentile. A stream has any number of times between
    /// its events.
    #[must_use]
    pub fn requests_needed(&self, beyond: f64) -> f64 {
        let of_requests = self.percentiles().filter(|(metric, _)| metric.clock() != Some(Clock::EventGap));
        of_requests.map(|(_, percentile)| beyond / (1.0 - percentile / 100.0)).fold(0.0, f64::max)
    }

    /// Bounds with the measured value for each; absent if a time falls among requests without a response, and without streams.
    #[must_use]
    pub fn measured(&self, result: &LoadResult) -> Vec<(Bound, Option<f64>)> {
        let times = self.times().map(|(metric, bound)| (Bound::Time(metric, bound), result.time(metric)));
        let errors = self.errors.map(|bound| (Bound::Errors(bound), Some(result.requests.error_fraction())));
        let rate = self.rate.map(|bound| (Bound::Rate(bound), Some(result.rate.completed)));
        let achieved = self.achieved.zip(result.rate.offered).map(|(bound, offered)| {
            let due = match result.requests.scheduled {
                0 => offered,
                scheduled => scheduled as f64 / result.duration_s.max(f64::MIN_POSITIVE),
            };
            let fraction = if due > 0.0 { result.rate.completed / due } else { 0.0 };
            (Bound::Achieved(bound), Some(fraction))
        });
        times.chain(errors).chain(rate).chain(achieved).collect()
    }

    /// First pair of neighbouring figures of a clock whose bounds decrease, although their values never do.
    pub(crate) fn contradiction(&self) -> Option<[(Metric, Duration); 2]> {
        let ordered: Vec<_> =
            self.times().filter(|(metric, _)| metric.spoiled_by() != Figure::Mean).collect();
        let decreases =
            |pair: &&[(Metric, Duration)]| pair[0].0.clock() == pair[1].0.clock() && pair[1].1 < pair[0].1;
        ordered.windows(2).find(decreases).map(|pair| [pair[0], pair[1]])
    }
}

/// One bound of an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Maximum of a time that has a [`Metric::bound_name`].
    Time(Metric, Duration),
    /// Maximum fraction of failed requests.
    Errors(f64),
    /// Minimum rate of completed requests.
    Rate(f64),
    /// Minimum completed fraction of the offered rate.
    Achieved(f64),
}

impl Bound {
    /// Name in objectives and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time(metric, _) => metric.bound_name().unwrap_or(metric.key()),
            Self::Errors(_) => "errors",
            Self::Rate(_) => "rate",
            Self::Achieved(_) => "achieved",
        }
    }

    /// Bound in the unit of [`Self::unit`].
    #[must_use]
    pub fn limit(self) -> f64 {
        match self {
            Self::Time(_, bound) => bound.as_secs_f64() * 1e6,
            Self::Errors(bound) | Self::Rate(bound) | Self::Achieved(bound) => bound,
        }
    }

    /// `us`, `fraction` or `per_second`.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Time(..) => "us",
            Self::Errors(_) | Self::Achieved(_) => "fraction",
            Self::Rate(_) => "per_second",
        }
    }

    /// True if a figure meets the bound; false for a time without a value.
    #[must_use]
    pub fn holds(self, measured: Option<f64>) -> bool {
        let Some(measured) = measured else { return false };
        match self {
            Self::Time(..) | Self::Errors(_) => measured <= self.limit(),
            Self::Rate(_) | Self::Achieved(_) => measured >= self.limit(),
        }
    }
}

/// Formats the bound as typed: `p99=5ms`.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self {
            Self::Time(_, bound) => format_duration(*bound),
            Self::Errors(bound) | Self::Achieved(bound) => format_fraction(*bound),
            Self::Rate(bound) => format_rate(*bound),
        };
        write!(f, "{}={limit}", self.name())
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.times().map(|(metric, bound)| Bound::Time(metric, bound));
        let others =
            [self.errors.map(Bound::Errors), self.rate.map(Bound::Rate), self.achieved.map(Bound::Achieved)];
        let bounds: Vec<String> = times.chain(others.into_iter().flatten()).map(|b| b.to_string()).collect();
        f.pad(&bounds.join(","))
    }
}

/// Error: text is not a valid objective.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ObjectiveError {
    /// Not a name and a bound.
    #[error("`{0}` is not a bound: expected a figure and its bound, such as p99=5ms or errors=0.1%")]
    Malformed(String),
    /// Unknown figure.
    #[error(
        "`{0}` has no bound: expected mean, p50, p75, p90, p95, p99, p99.9, p99.99, max, errors, rate or achieved; of streams also \
         a time with the prefix first-byte-, first-event- or event-gap-, such as first-event-p99"
    )]
    UnknownFigure(String),
    /// Duplicate figure.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// Zero time, which nothing can meet.
    #[error("`{0}`: no response takes no time")]
    Zero(String),
    /// Invalid quantity.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// Figure with a smaller bound than a figure that it can never be less than.
    #[error("{1} is never smaller than {0}: its bound cannot be")]
    Contradiction(&'static str, &'static str),
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let mut objective = Self::default();
        for part in text.split(',') {
            let malformed = || ObjectiveError::Malformed(results::units::shortened(part));
            let (name, bound) = part.split_once('=').ok_or_else(malformed)?;
            objective.bound(name.trim(), bound.trim())?;
        }
        match objective.contradiction() {
            Some([lower, higher]) => {
                let [lower, higher] =
                    [lower, higher].map(|(metric, bound)| Bound::Time(metric, bound).name());
                Err(ObjectiveError::Contradiction(lower, higher))
            }
            None => Ok(objective),
        }
    }
}

/// Meaning of the bound of a figure of a clock.
fn summary(clock: Clock, figure: Figure) -> &'static str {
    match (clock, figure) {
        (Clock::FirstByte, _) => "maximum of this figure of the times to the first bytes of streams",
        (Clock::FirstEvent, _) => {
            "maximum of this figure of the times to the first events of streams, in every cell and of each driver"
        }
        (Clock::EventGap, _) => "maximum of this figure of the times from one event of a stream to the next",
        (_, Figure::Mean) => "maximum mean response time",
        (_, Figure::Max) => "maximum of all response times; a request without a response misses it",
        _ => "maximum response time at this percentile, in every cell and of each driver",
    }
}

impl Objective {
    /// Place of the bound of a time.
    fn place(&mut self, name: &str) -> Option<&mut Option<Duration>> {
        let names = Clock::BOUNDED.into_iter().filter_map(Clock::bound_names).flatten();
        names.zip(self.times.as_flattened_mut()).find_map(|(own, bound)| (own == name).then_some(bound))
    }

    /// Parses and adds one bound.
    fn bound(&mut self, name: &str, bound: &str) -> Result<(), ObjectiveError> {
        let before = match self.place(name) {
            Some(place) => {
                let duration = parse_duration(bound)?;
                if duration.is_zero() {
                    return Err(ObjectiveError::Zero(format!("{name}={bound}")));
                }
                place.replace(duration).is_some()
            }
            None => match name {
                "errors" => self.errors.replace(parse_fraction(bound)?).is_some(),
                "rate" => self.rate.replace(parse_rate(bound)?).is_some(),
                "achieved" => self.achieved.replace(parse_fraction(bound)?).is_some(),
                _ => return Err(ObjectiveError::UnknownFigure(results::units::shortened(name))),
            },
        };
        if before { Err(ObjectiveError::Twice(name.to_owned())) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::HistogramSummary;

    #[test]
    fn objective_parses_and_formats() {
        let text = "mean=1ms,p50=2ms,p99.9=1.5s,max=2s,errors=0.1%,rate=1000,achieved=99%";
        let objective: Objective = text.parse().unwrap();
        assert_eq!(objective.time(Metric::ResponseTimeP99_9Us), Some(Duration::from_millis(1500)));
        assert_eq!(objective.errors, Some(0.001));
        assert_eq!((objective.to_string().parse(), objective.of_streams()), (Ok(objective), None));
        assert_eq!(objective.requests_needed(10.0).round(), 10_000.0);
    }

    #[test]
    fn objective_of_streams_parses_and_formats_each_clock_by_itself() {
        let text = "p99=3s,first-byte-p90=10ms,first-event-p99=200ms,event-gap-p99.9=30ms,event-gap-max=1s";
        let objective: Objective = text.parse().unwrap();
        assert_eq!(objective.time(Metric::FirstEventP99Us), Some(Duration::from_millis(200)));
        assert_eq!(
            (objective.to_string(), objective.of_streams()),
            (text.to_owned(), Some("first-byte-p90"))
        );
        assert_eq!(objective.requests_needed(10.0).round(), 1000.0, "a stream has any number of gaps");
    }

    #[test]
    fn times_of_streams_are_measured_by_their_own_clock() {
        let times = |p99| HistogramSummary { count: 1, p99: Some(p99), ..HistogramSummary::default() };
        let result = LoadResult {
            response_time_us: times(9e6),
            first_event_us: Some(times(2e5)),
            event_gap_us: Some(times(4e4)),
            ..LoadResult::default()
        };
        let objective: Objective = "first-event-p99=200ms,event-gap-p99=30ms".parse().unwrap();
        let holds = |result: &LoadResult| -> Vec<(Option<f64>, bool)> {
            let measured = objective.measured(result).into_iter();
            measured.map(|(bound, measured)| (measured, bound.holds(measured))).collect()
        };
        assert_eq!(holds(&result), [(Some(2e5), true), (Some(4e4), false)]);
        assert_eq!(holds(&LoadResult::default()), [(None, false), (None, false)], "without streams");
    }

    #[test]
    fn achieved_is_of_what_was_due_however_many_requests_chance_has_sent() {
        let achieved = |scheduled: u64, completed: f64| {
            let mut result = LoadResult { duration_s: 2.0, ..LoadResult::default() };
            (result.rate.offered, result.rate.completed) = (Some(1000.0), completed);
            result.requests.scheduled = scheduled;
            let objective = Objective { achieved: Some(0.99), ..Objective::default() };
            objective.measured(&result).into_iter().all(|(bound, measured)| bound.holds(measured))
        };
        // Random arrivals: three standard deviations fewer than the rate says, and as many more.
        assert!(achieved(1866, 933.0) && achieved(1866, 924.0));
        assert!(!achieved(2134, 1000.0) && achieved(2134, 1060.0));
        assert!(!achieved(0, 980.0) && achieved(0, 990.0));
    }

    #[test]
    fn invalid_objectives_are_rejected_with_reason() {
        let errors: Vec<String> =
            ["", "p99", "p98=1ms", "p99=5", "p99=0s", "p50=1ms,p50=2ms", "p50=2ms,p99=1ms", "errors=5"]
                .into_iter()
                .chain(["first-p99=1s", "first-event-p50=2ms,first-event-p99=1ms"])
                .map(|text| text.parse::<Objective>().unwrap_err().to_string())
                .collect();
        insta::assert_snapshot!(errors.join("\n"), @r"
        `` is not a bound: expected a figure and its bound, such as p99=5ms or errors=0.1%
        `p99` is not a bound: expected a figure and its bound, such as p99=5ms or errors=0.1%
        `p98` has no bound: expected mean, p50, p75, p90, p95, p99, p99.9, p99.99, max, errors, rate or achieved; of streams also a time with the prefix first-byte-, first-event- or event-gap-, such as first-event-p99
        `5` is not a duration: a unit is missing (us, ms, s, m, h), for example `500ms`
        `p99=0s`: no response takes no time
        `p50` is given twice
        p99 is never smaller than p50: its bound cannot be
        `5` is not a fraction: expected 0% to 100%, or 0 to 1, for example `0.1%`
        `first-p99` has no bound: expected mean, p50, p75, p90, p95, p99, p99.9, p99.99, max, errors, rate or achieved; of streams also a time with the prefix first-byte-, first-event- or event-gap-, such as first-event-p99
        first-event-p99 is never smaller than first-event-p50: its bound cannot be
        ");
    }

    #[test]
    fn bounds_hold_up_to_and_including_their_limit() {
        let bound = Bound::Time(Metric::ResponseTimeP99Us, Duration::from_millis(5));
        assert!(bound.holds(Some(5000.0)) && !bound.holds(Some(5000.1)));
        assert!(Bound::Achieved(0.99).holds(Some(0.99)) && !Bound::Achieved(0.99).holds(Some(0.98)));
        assert!(Bound::Errors(0.0).holds(Some(0.0)));
        assert!(!bound.holds(None), "a percentile among requests without a response");
    }
}
