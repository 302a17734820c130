//! Figures of a trial. A verdict can spoil each of them separately.

use serde::{Deserialize, Serialize};

/// Figure of a trial. For a fleet, times are from a change until its arrival at the proxies.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// Mean response time.
    Mean,
    /// Median response time.
    P50,
    /// 75th percentile of response times.
    P75,
    /// 90th percentile of response times.
    P90,
    /// 95th percentile of response times.
    P95,
    /// 99th percentile of response times.
    P99,
    /// 99.9th percentile of response times.
    #[serde(rename = "p99.9")]
    P99_9,
    /// 99.99th percentile of response times.
    #[serde(rename = "p99.99")]
    P99_99,
    /// Maximum response time.
    Max,
    /// Requests per second, if the load does not determine them.
    Throughput,
    /// CPU of components.
    Cpu,
    /// Memory of components.
    Memory,
    /// Network traffic of components.
    Network,
}

impl Figure {
    /// All figures, in the order in which they are listed.
    pub const ALL: [Self; 13] = [
        Self::Mean,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P99_9,
        Self::P99_99,
        Self::Max,
        Self::Throughput,
        Self::Cpu,
        Self::Memory,
        Self::Network,
    ];

    /// Figures of response times, which can have a bound; from the median on, values never decrease.
    pub const TIMES: [Self; 9] = *Self::ALL.first_chunk().unwrap();

    /// Value of this figure in a list of all [`Self::TIMES`]; absent for other figures.
    pub(crate) fn of_times<T>(self, values: [T; Self::TIMES.len()]) -> Option<T> {
        Self::TIMES.into_iter().zip(values).find_map(|(figure, value)| (figure == self).then_some(value))
    }

    /// Percentile, 0 to 100; absent for the maximum and other figures.
    #[must_use]
    pub fn percentile(self) -> Option<f64> {
        Some(self.quantile().filter(|_| self != Self::Max)? * 100.0)
    }

    /// Name in objectives and result files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P75 => "p75",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
            Self::P99_99 => "p99.99",
            Self::Max => "max",
            Self::Throughput => "throughput",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Network => "network",
        }
    }

    /// Quantile, 0 to 1: the share of requests at or below a percentile; 1 for the maximum; absent for other
    /// figures.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        Some(match self {
            Self::P50 => 0.5,
            Self::P75 => 0.75,
            Self::P90 => 0.9,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::P99_9 => 0.999,
            Self::P99_99 => 0.9999,
            Self::Max => 1.0,
            Self::Mean | Self::Throughput | Self::Cpu | Self::Memory | Self::Network => return None,
        })
    }
}

/// Set of figures; in result files, a list of their names.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Figure>", into = "Vec<Figure>")]
pub struct Figures(u16);

impl Figures {
    /// Empty set.
    #[must_use]
    pub const fn none() -> Self {
        Self(0)
    }

    /// Set of all figures.
    #[must_use]
    pub fn all() -> Self {
        Figure::ALL.into_iter().collect()
    }

    /// All response-time figures: mean, percentiles and maximum.
    #[must_use]
    pub fn times() -> Self {
        Self::times_from(Figure::P50).with(Figure::Mean)
    }

    /// A percentile of the response time, all higher ones and the maximum, but not the mean.
    #[must_use]
    pub fn times_from(percentile: Figure) -> Self {
        Figure::ALL
            .into_iter()
            .filter(|figure| figure.quantile().is_some() && *figure >= percentile)
            .collect()
    }

    /// Adds a figure to the set.
    #[must_use]
    pub fn with(self, figure: Figure) -> Self {
        Self(self.0 | bit(figure))
    }

    /// Union of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Figures of the set that are not in another one.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True if a figure is in the set.
    #[must_use]
    pub fn contains(self, figure: Figure) -> bool {
        self.0 & bit(figure) != 0
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Figures of the set, in the order of [`Figure::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Figure> {
        Figure::ALL.into_iter().filter(move |figure| self.contains(*figure))
    }
}

/// Bit of a figure.
fn bit(figure: Figure) -> u16 {
    1 << figure as u16
}

impl FromIterator<Figure> for Figures {
    fn from_iter<I: IntoIterator<Item = Figure>>(figures: I) -> Self {
        figures.into_iter().fold(Self::none(), Self::with)
    }
}

impl From<Vec<Figure>> for Figures {
    fn from(figures: Vec<Figure>) -> Self {
        figures.into_iter().collect()
    }
}

impl From<Figures> for Vec<Figure> {
    fn from(figures: Figures) -> Self {
        figures.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_a_list_of_names_in_files() {
        let tail = Figures::times_from(Figure::P99);
        assert_eq!(serde_json::to_string(&tail).unwrap(), r#"["p99","p99.9","p99.99","max"]"#);
        assert_eq!(serde_json::from_str::<Figures>(r#"["max","p99","p99.9","p99.99"]"#).unwrap(), tail);
        for figure in Figure::ALL {
            assert_eq!(serde_json::to_value(figure).unwrap(), figure.name());
        }
    }

    #[test]
    fn times_are_mean_percentiles_and_maximum() {
        assert_eq!(Figures::times().iter().count(), 9);
        assert!(Figures::times().contains(Figure::Mean) && !Figures::times().contains(Figure::Throughput));
        assert!(!Figures::times_from(Figure::P99).contains(Figure::P95));
        let both = Figures::times_from(Figure::Max).union(Figures::none().with(Figure::Cpu));
        assert_eq!(both.iter().collect::<Vec<_>>(), [Figure::Max, Figure::Cpu]);
    }
}
