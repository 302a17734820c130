//! What is asked of the figures: bounds on response times, errors and rates.
//!
//! Experiment files give bounds key by key ([`crate::file`]); on a command line they are one text, `p99=5ms,errors=0.1%`,
//! which this type reads and writes.

use crate::schema::figure::Figure;
use crate::schema::histogram::HistogramSummary;
use crate::schema::load::LoadResult;
use crate::units::{
    UnitError, format_duration, format_fraction, format_rate, parse_duration, parse_fraction, parse_rate,
};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Requests that must lie beyond a percentile in each trial: with fewer, one slow request more or less moves it.
pub const SAMPLES_BEYOND_A_PERCENTILE: f64 = 10.0;

/// What must hold for figures to be good. Empty: nothing is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Objective {
    /// Greatest mean response time.
    pub mean: Option<Duration>,
    /// Greatest median response time.
    pub p50: Option<Duration>,
    /// Greatest 75th percentile of the response time.
    pub p75: Option<Duration>,
    /// Greatest 90th percentile of the response time.
    pub p90: Option<Duration>,
    /// Greatest 95th percentile of the response time.
    pub p95: Option<Duration>,
    /// Greatest 99th percentile of the response time.
    pub p99: Option<Duration>,
    /// Greatest 99.9th percentile of the response time.
    pub p99_9: Option<Duration>,
    /// Greatest 99.99th percentile of the response time.
    pub p99_99: Option<Duration>,
    /// Greatest response time of all.
    pub max: Option<Duration>,
    /// Greatest fraction of failed requests, 0 to 1.
    pub errors: Option<f64>,
    /// Least rate of completed requests, a second.
    pub rate: Option<f64>,
    /// Least fraction of the offered rate that is completed, 0 to 1.
    pub achieved: Option<f64>,
}

/// A figure of the response times that may have a bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeFigure {
    /// The arithmetic mean.
    Mean,
    /// The median.
    P50,
    /// The 75th percentile.
    P75,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P99_9,
    /// The 99.99th percentile.
    P99_99,
    /// The greatest.
    Max,
}

impl TimeFigure {
    /// Every figure; from the median on none is ever smaller than the one before.
    pub const ALL: [Self; 9] = [
        Self::Mean,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P99_9,
        Self::P99_99,
        Self::Max,
    ];

    /// The name in objectives and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.figure().name()
    }

    /// Which percentile it is, 0 to 100; absent for the mean and the greatest.
    #[must_use]
    pub fn percentile(self) -> Option<f64> {
        let quantile = self.figure().quantile().filter(|_| self != Self::Max)?;
        Some(quantile * 100.0)
    }

    /// The same figure as verdicts name it.
    #[must_use]
    pub fn figure(self) -> Figure {
        match self {
            Self::Mean => Figure::Mean,
            Self::P50 => Figure::P50,
            Self::P75 => Figure::P75,
            Self::P90 => Figure::P90,
            Self::P95 => Figure::P95,
            Self::P99 => Figure::P99,
            Self::P99_9 => Figure::P99_9,
            Self::P99_99 => Figure::P99_99,
            Self::Max => Figure::Max,
        }
    }

    /// Its value in a distribution, microseconds; absent among requests without a response.
    #[must_use]
    pub fn of(self, times: &HistogramSummary) -> Option<f64> {
        times.figure(self.figure())
    }
}

impl Objective {
    fn time_mut(&mut self, figure: TimeFigure) -> &mut Option<Duration> {
        match figure {
            TimeFigure::Mean => &mut self.mean,
            TimeFigure::P50 => &mut self.p50,
            TimeFigure::P75 => &mut self.p75,
            TimeFigure::P90 => &mut self.p90,
            TimeFigure::P95 => &mut self.p95,
            TimeFigure::P99 => &mut self.p99,
            TimeFigure::P99_9 => &mut self.p99_9,
            TimeFigure::P99_99 => &mut self.p99_99,
            TimeFigure::Max => &mut self.max,
        }
    }

    /// The figures of the response times that have a bound, with it.
    pub fn times(mut self) -> impl Iterator<Item = (TimeFigure, Duration)> {
        TimeFigure::ALL.into_iter().filter_map(move |figure| Some((figure, (*self.time_mut(figure))?)))
    }

    /// The percentiles that have a bound: name, percentile (0 to 100), bound.
    pub fn percentiles(&self) -> impl Iterator<Item = (&'static str, f64, Duration)> {
        self.times().filter_map(|(figure, bound)| Some((figure.name(), figure.percentile()?, bound)))
    }

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many requests the percentiles need so that `beyond` of them lie beyond each.
    #[must_use]
    pub fn requests_needed(&self, beyond: f64) -> f64 {
        self.percentiles().map(|(_, percentile, _)| beyond / (1.0 - percentile / 100.0)).fold(0.0, f64::max)
    }

    /// The bounds with what a result measured for each: no number for a time among requests without a response.
    #[must_use]
    pub fn measured(&self, result: &LoadResult) -> Vec<(Bound, Option<f64>)> {
        let times = self
            .times()
            .map(|(figure, bound)| (Bound::Time(figure, bound), figure.of(&result.response_time_us)));
        let errors = self.errors.map(|bound| (Bound::Errors(bound), Some(result.requests.error_fraction())));
        let rate = self.rate.map(|bound| (Bound::Rate(bound), Some(result.rate.completed)));
        let achieved = self.achieved.zip(result.rate.offered).map(|(bound, offered)| {
            let fraction = if offered > 0.0 { result.rate.completed / offered } else { 0.0 };
            (Bound::Achieved(bound), Some(fraction))
        });
        times.chain(errors).chain(rate).chain(achieved).collect()
    }

    /// Two bounds of which the one that is never the smaller figure has the smaller bound.
    fn contradiction(&self) -> Option<(TimeFigure, TimeFigure)> {
        let ordered: Vec<_> = self.times().filter(|(figure, _)| *figure != TimeFigure::Mean).collect();
        ordered.windows(2).find(|pair| pair[1].1 < pair[0].1).map(|pair| (pair[0].0, pair[1].0))
    }
}

/// One bound of an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A figure of the response times is not greater.
    Time(TimeFigure, Duration),
    /// The fraction of failed requests is not greater.
    Errors(f64),
    /// The rate of completed requests is not less.
    Rate(f64),
    /// The completed fraction of the offered rate is not less.
    Achieved(f64),
}

impl Bound {
    /// The name in objectives and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time(figure, _) => figure.name(),
            Self::Errors(_) => "errors",
            Self::Rate(_) => "rate",
            Self::Achieved(_) => "achieved",
        }
    }

    /// The bound in the unit of [`Self::unit`].
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

    /// Whether a figure keeps to the bound; a time that is no number does not.
    #[must_use]
    pub fn holds(self, measured: Option<f64>) -> bool {
        let Some(measured) = measured else { return false };
        match self {
            Self::Time(..) | Self::Errors(_) => measured <= self.limit(),
            Self::Rate(_) | Self::Achieved(_) => measured >= self.limit(),
        }
    }
}

/// As typed: `p99=5ms`.
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
        let times = self.times().map(|(figure, bound)| Bound::Time(figure, bound));
        let others =
            [self.errors.map(Bound::Errors), self.rate.map(Bound::Rate), self.achieved.map(Bound::Achieved)];
        let bounds: Vec<String> = times.chain(others.into_iter().flatten()).map(|b| b.to_string()).collect();
        f.pad(&bounds.join(","))
    }
}

/// Text that is no objective.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ObjectiveError {
    /// Not a name and a bound.
    #[error("`{0}` is no bound: expected a figure and its bound, such as p99=5ms or errors=0.1%")]
    Malformed(String),
    /// A figure that has no bound.
    #[error(
        "`{0}` has no bound: expected mean, p50, p75, p90, p95, p99, p99.9, p99.99, max, errors, rate or achieved"
    )]
    UnknownFigure(String),
    /// The same figure again.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// A bound of zero time, which nothing meets.
    #[error("`{0}`: no response takes no time")]
    Zero(String),
    /// The bound is no quantity of its kind.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A greater figure with a smaller bound.
    #[error("{1} is never smaller than {0}: its bound cannot be")]
    Contradiction(&'static str, &'static str),
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let mut objective = Self::default();
        for part in text.split(',') {
            let malformed = || ObjectiveError::Malformed(crate::units::shortened(part));
            let (name, bound) = part.split_once('=').ok_or_else(malformed)?;
            objective.bound(name.trim(), bound.trim())?;
        }
        match objective.contradiction() {
            Some((lower, higher)) => Err(ObjectiveError::Contradiction(lower.name(), higher.name())),
            None => Ok(objective),
        }
    }
}

impl Objective {
    /// Adds one bound.
    fn bound(&mut self, name: &str, bound: &str) -> Result<(), ObjectiveError> {
        let before = match TimeFigure::ALL.into_iter().find(|figure| figure.name() == name) {
            Some(figure) => {
                let duration = parse_duration(bound)?;
                if duration.is_zero() {
                    return Err(ObjectiveError::Zero(format!("{name}={bound}")));
                }
                self.time_mut(figure).replace(duration).is_some()
            }
            None => match name {
                "errors" => self.errors.replace(parse_fraction(bound)?).is_some(),
                "rate" => self.rate.replace(parse_rate(bound)?).is_some(),
                "achieved" => self.achieved.replace(parse_fraction(bound)?).is_some(),
                _ => return Err(ObjectiveError::UnknownFigure(crate::units::shortened(name))),
            },
        };
        if before { Err(ObjectiveError::Twice(name.to_owned())) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_reads_as_written() {
        let text = "mean=1ms,p50=2ms,p99.9=1.5s,max=2s,errors=0.1%,rate=1000,achieved=99%";
        let objective: Objective = text.parse().unwrap();
        assert_eq!(objective.p99_9, Some(Duration::from_millis(1500)));
        assert_eq!(objective.errors, Some(0.001));
        assert_eq!(objective.to_string().parse(), Ok(objective));
        assert_eq!(objective.requests_needed(10.0).round(), 10_000.0);
    }

    #[test]
    fn slips_are_named() {
        let errors: Vec<String> =
            ["", "p99", "p98=1ms", "p99=5", "p99=0s", "p50=1ms,p50=2ms", "p50=2ms,p99=1ms", "errors=5"]
                .into_iter()
                .map(|text| text.parse::<Objective>().unwrap_err().to_string())
                .collect();
        insta::assert_snapshot!(errors.join("\n"), @r"
        `` is no bound: expected a figure and its bound, such as p99=5ms or errors=0.1%
        `p99` is no bound: expected a figure and its bound, such as p99=5ms or errors=0.1%
        `p98` has no bound: expected mean, p50, p75, p90, p95, p99, p99.9, p99.99, max, errors, rate or achieved
        `5` is not a duration: a unit is missing (us, ms, s, m, h), for example `500ms`
        `p99=0s`: no response takes no time
        `p50` is given twice
        p99 is never smaller than p50: its bound cannot be
        `5` is not a fraction: expected 0% to 100%, or 0 to 1, for example `0.1%`
        ");
    }

    #[test]
    fn bounds_hold_up_to_and_including_their_limit() {
        let bound = Bound::Time(TimeFigure::P99, Duration::from_millis(5));
        assert!(bound.holds(Some(5000.0)) && !bound.holds(Some(5000.1)));
        assert!(Bound::Achieved(0.99).holds(Some(0.99)) && !Bound::Achieved(0.99).holds(Some(0.98)));
        assert!(Bound::Errors(0.0).holds(Some(0.0)));
        assert!(!bound.holds(None), "a percentile among requests without a response");
    }
}
