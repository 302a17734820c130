//! `meshmeter.comparison-self-test/1`: `self-test.json`, what comparisons on a machine say of changes that are known.

use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// The value of [`ComparisonSelfTest::schema`].
pub const COMPARISON_SELF_TEST_SCHEMA: &str = "meshmeter.comparison-self-test/1";

/// Result of `meshmeter compare --self-test`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonSelfTest {
    /// Always [`COMPARISON_SELF_TEST_SCHEMA`].
    pub schema: String,
    /// Seed of the first comparison; each further one has the next.
    pub seed: u64,
    /// Time budget, seconds.
    pub budget_s: f64,
    /// Time used, seconds.
    pub elapsed_s: f64,
    /// Maximum number of repeats of each comparison.
    pub repeats: usize,
    /// Injected effect, as a fraction of the figure.
    pub effect: f64,
    /// Share of comparisons that may call any figure worse or better if nothing changed.
    pub alarm_rate: f64,
    /// True if the user or a failure stopped the self-test within its budget.
    pub interrupted: bool,
    /// One per kind of change.
    pub series: Vec<SelfTestSeries>,
}

/// Comparisons with one kind of change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelfTestSeries {
    /// The change.
    pub injected: InjectedEffect,
    /// CPU time that the change adds per request of the server, or of each proxy, microseconds.
    pub added_us: f64,
    /// The same relative to the figure, as the first comparison without a change measured it.
    pub relative: f64,
    /// Figure that must get worse; without a change, any figure is watched.
    pub figure: Option<Metric>,
    /// Comparisons that ended by themselves.
    pub comparisons: u64,
    /// Comparisons that called the figure, or any figure, worse.
    pub worse: u64,
    /// Comparisons that called the figure, or without a worse one any figure, better.
    pub better: u64,
    /// Comparisons that called the figure, or all figures, equivalent.
    pub equivalent: u64,
    /// Comparisons that decided neither.
    pub inconclusive: u64,
    /// Comparisons that failed for lack of data.
    pub failed: u64,
    /// False alarms (worse or better) if nothing was changed, otherwise effects found (worse), among comparisons that did not
    /// fail; absent without one.
    pub share: Option<CountedShare>,
}

/// Known change.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum InjectedEffect {
    /// Base and head are the same.
    #[serde(rename = "nothing")]
    Nothing,
    /// The server computes longer per request.
    #[serde(rename = "server.cpu-time")]
    ServerCpuTime,
    /// Each proxy computes longer per request.
    #[serde(rename = "proxy.cpu-time")]
    ProxyCpuTime,
}

impl InjectedEffect {
    /// All, in the order in which they are measured.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::ServerCpuTime, Self::ProxyCpuTime];

    /// Name in files and in the output: the setting that is changed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::ServerCpuTime => "server.cpu-time",
            Self::ProxyCpuTime => "proxy.cpu-time",
        }
    }

    /// Figure that the change makes worse.
    #[must_use]
    pub fn figure(self) -> Option<Metric> {
        match self {
            Self::Nothing => None,
            Self::ServerCpuTime => Some(Metric::ResponseTimeP50Us),
            Self::ProxyCpuTime => Some(Metric::ProxiesCpuCoresPer1000Rps),
        }
    }
}

/// A share of counted cases, with its exact 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedShare {
    /// Cases that count.
    pub count: u64,
    /// All cases.
    pub of: u64,
    /// `count` divided by `of`.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}
