//! Drivers: sources of load in a trial, and their results.

use crate::disturbed::DisturbedFigures;
use crate::estimate::{Estimate, Percentiles};
use crate::figure::Figure;
use crate::fleet::FleetResult;
use crate::load::LoadResult;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// A driver of a trial, as stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverRecord {
    /// Name in the topology, unique among the drivers.
    pub name: String,
    /// Namespace of its workload; empty if the topology has a single one.
    #[serde(default)]
    pub namespace: String,
    /// Qualified name of its target workload.
    #[serde(default)]
    pub target: String,
    /// Result of its load; absent if it has none, and for a single driver, whose result is the trial's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<LoadResult>,
    /// Result, if it is a fleet of simulated proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetResult>,
    /// Whether its figures may enter estimates: its own reasons, and those of the environment that spoil its
    /// figures. Reasons that only concern other drivers are left out. The verdict of a single driver is the
    /// trial's.
    pub verdict: Verdict,
}

/// A driver of a trial with its result, independent of where it is stored.
#[derive(Clone, Copy, Debug)]
pub struct DriverView<'a> {
    /// Name in the topology.
    pub name: &'a str,
    /// Namespace; empty if the topology has a single one.
    pub namespace: &'a str,
    /// Qualified name of its target workload.
    pub target: &'a str,
    /// Result of its load; absent if it has none.
    pub result: Option<&'a LoadResult>,
    /// Whether its figures may enter estimates.
    pub verdict: &'a Verdict,
}

impl<'a> DriverView<'a> {
    pub(super) fn new(driver: &'a DriverRecord) -> Self {
        Self {
            name: &driver.name,
            namespace: &driver.namespace,
            target: &driver.target,
            result: driver.result.as_ref(),
            verdict: &driver.verdict,
        }
    }

    /// True if its median may enter estimates.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.is_usable(Figure::P50)
    }

    /// True if a figure may enter estimates: no reason spoils it, and some requests got a response.
    #[must_use]
    pub fn is_usable(&self, figure: Figure) -> bool {
        self.verdict.is_usable(figure) && self.result.is_some_and(|result| result.response_time_us.count > 0)
    }
}

/// A driver, summarized over the trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverSummary {
    /// Name in the topology.
    pub name: String,
    /// Namespace; empty if the topology has a single one.
    pub namespace: String,
    /// Qualified name of its target workload.
    #[serde(default)]
    pub target: String,
    /// Repeats in which its own figures are valid (other drivers' may not be). Only these enter its
    /// estimates.
    pub valid: usize,
    /// `valid`, or the most common kind of reason why not.
    pub verdict: String,
    /// Response time; absent if none of its trials is valid.
    pub response_time_us: Option<Percentiles>,
    /// Responses per second.
    pub rate_completed: Option<Estimate>,
    /// Fraction of sent requests that failed or had an error status, over all trials, 0 to 1.
    pub errors: f64,
    /// Upper end of its one-sided 95 % confidence interval; absent if nothing was sent, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_high: Option<f64>,
    /// The experiment's objective for this driver; absent if it has none.
    pub objective: Option<DriverObjective>,
    /// Figures of trials that noise of the machine disturbed, in no estimate:
    /// `response_time_p50_us`, `…_p90_us`, `…_p99_us`, `rate_completed`.
    #[serde(default, skip_serializing_if = "DisturbedFigures::is_empty")]
    pub disturbed: DisturbedFigures,
}

/// Whether a driver or a cell met the objective, by its confidence intervals.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverObjective {
    /// Every interval is within its bound.
    Met,
    /// An interval is beyond its bound, there were too many errors, or the target did not keep up with the
    /// offered rate.
    Missed,
    /// An interval contains its bound, there is no interval, or a trial failed.
    NotShown,
}

impl DriverObjective {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotShown => "not-shown",
        }
    }
}
