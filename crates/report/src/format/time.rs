//! Times, durations and timestamps.

use super::interval::Interval;
use super::number::{decimals_for, fixed, tick, with_unit};
use results::{Estimate, Figure, Percentiles};

/// Unit of the times in one table or chart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeUnit {
    /// µs.
    Microseconds,
    /// ms.
    Milliseconds,
    /// s.
    Seconds,
}

impl TimeUnit {
    /// The unit that suits these times (in microseconds) together: that of the greatest, or milliseconds if
    /// there are none.
    pub fn for_times(times_us: impl IntoIterator<Item = f64>) -> Self {
        let greatest_us =
            times_us.into_iter().filter(|time| time.is_finite()).map(f64::abs).fold(0.0, f64::max);
        if greatest_us > 0.0 && greatest_us < 1e3 {
            Self::Microseconds
        } else if greatest_us < 10e6 {
            Self::Milliseconds
        } else {
            Self::Seconds
        }
    }

    /// Microseconds per unit.
    #[must_use]
    pub fn us(self) -> f64 {
        match self {
            Self::Microseconds => 1.0,
            Self::Milliseconds => 1e3,
            Self::Seconds => 1e6,
        }
    }

    /// `µs`, `ms` or `s`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    /// The time in this unit without its symbol, no finer than the resolution of histograms.
    #[must_use]
    pub fn number(self, time_us: f64) -> String {
        if time_us == 0.0 {
            return "0".to_owned();
        }
        let time = time_us / self.us();
        fixed(time, decimals_for(time.abs(), 3).min(self.most_decimals()))
    }

    /// Histograms resolve a microsecond; means over trials may have one more digit.
    fn most_decimals(self) -> i32 {
        match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 3,
            Self::Seconds => 6,
        }
    }

    /// The time with its unit.
    #[must_use]
    pub fn time(self, time_us: f64) -> String {
        with_unit(&self.number(time_us), self.symbol())
    }

    /// Like [`Self::number`]; `> 10 s` for a request without a response, which took longer than `above_us`.
    #[must_use]
    pub fn number_or_above(self, time_us: Option<f64>, above_us: Option<f64>) -> String {
        time_us.map_or_else(|| above(above_us), |time_us| self.number(time_us))
    }

    /// A percentile and its interval in this unit, without its symbol; `> 10 s` if it falls among requests
    /// without a response.
    #[must_use]
    pub fn percentile(self, times: Option<&Percentiles>, figure: Figure) -> Interval {
        let Some(times) = times else { return Interval::absent() };
        match (times.figure(figure), times.censored(figure)) {
            (Some(estimate), _) => self.interval(&estimate),
            (None, Some(censored)) => Interval { estimate: above(censored.above_us), range: None },
            (None, None) => Interval::absent(),
        }
    }

    /// An estimate and its interval in this unit, without its symbol.
    #[must_use]
    pub fn interval(self, estimate_us: &Estimate) -> Interval {
        Interval::rounded(estimate_us, 1.0 / self.us(), self.most_decimals())
    }
}

/// A single time, given in microseconds, in a suitable unit.
#[must_use]
pub fn time(time_us: f64) -> String {
    TimeUnit::for_times([time_us]).time(time_us)
}

/// Like [`time`]; `> 10 s` for a request without a response, which took longer than `above_us`.
#[must_use]
pub fn time_or_above(time_us: Option<f64>, above_us: Option<f64>) -> String {
    time_us.map_or_else(|| above(above_us), time)
}

/// `> 10 s`: the time of a request without a response; `no response` if no lower bound is known, or it says nothing.
#[must_use]
pub fn above(above_us: Option<f64>) -> String {
    let Some(above_us) = above_us.filter(|above_us| *above_us > 0.0) else { return "no response".to_owned() };
    let unit = TimeUnit::for_times([above_us]);
    format!(">\u{a0}{}", with_unit(&tick(above_us / unit.us()), unit.symbol()))
}

/// A duration in seconds as text: `20 s`, `2 min 30 s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 120.0 {
        return with_unit(&tick(seconds), "s");
    }
    let whole = seconds.round() as u64;
    let (minutes, rest) = (whole / 60, whole % 60);
    if rest == 0 { format!("{minutes}\u{a0}min") } else { format!("{minutes}\u{a0}min {rest}\u{a0}s") }
}

/// An RFC 3339 time as `2026-11-20 09:49 UTC`; other text is returned unchanged.
#[must_use]
pub fn moment(rfc3339: &str) -> String {
    match rfc3339.parse::<jiff::Timestamp>() {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => rfc3339.to_owned(),
    }
}
