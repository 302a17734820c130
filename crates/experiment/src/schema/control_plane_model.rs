//! What a control plane costs against the size of its mesh and its changes: four laws, each a sum of terms.

use super::estimate::Estimate;
use super::factor::Factors;
use super::scaling::MeasuredRange;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The cost models of a run: the main one, and those for other values of factors that the laws do not contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneModel {
    /// The one with most cells.
    #[serde(flatten)]
    pub main: ControlPlaneCosts,
    /// All others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ControlPlaneCosts>,
}

impl ControlPlaneModel {
    /// Every model, the main one first.
    pub fn all(&self) -> impl Iterator<Item = &ControlPlaneCosts> {
        std::iter::once(&self.main).chain(&self.others)
    }
}

/// The cost model of one kind of fleet. CPU and memory are of all istiods together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneCosts {
    /// Values of the factors that are no term of a law.
    #[serde(skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Kinds of proxies, such as `sidecar`.
    pub kinds: String,
    /// Number of istiods.
    pub istiods: usize,
    /// Configuration of a proxy, bytes: a constant, and per service and per pod that the proxy is told of.
    pub configuration: CostLaw,
    /// CPU of first configurations, seconds: a constant, per byte of configuration sent (proxies × configuration), and per
    /// connection (its handshake and certificate).
    pub connecting: CostLaw,
    /// CPU once all are connected, cores: a constant, per byte/s and per push/s that proxies are sent for changes.
    pub changing: CostLaw,
    /// What a change makes istiod send, by kind of the change.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, ChangeCosts>,
    /// Memory, bytes: a constant, per byte of configuration held (proxies × configuration), and per service of the mesh.
    pub memory: CostLaw,
    /// The ranges that were measured, by variable: `services`, `pods`, `proxies`, `changes_per_s` (arrivals per proxy and
    /// second), `configuration_bytes`, `pods_per_service`.
    pub measured: BTreeMap<String, MeasuredRange>,
}

/// What a change of one kind makes istiod send to each affected proxy: with scoping those of its namespace, else all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeCosts {
    /// Responses: a constant. Changes in quick succession are pushed together, so that it holds for the measured rates alone.
    pub pushes: CostLaw,
    /// Bytes: a constant, and per pod of a service for changes of endpoints, per byte of a proxy's configuration for others.
    pub bytes: CostLaw,
    /// Changes per second that were measured.
    pub per_s: Option<MeasuredRange>,
}

/// A cost as a sum of terms, fitted by least squares in each repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostLaw {
    /// Unit of the cost, such as `cores`.
    pub unit: String,
    /// Terms with their coefficients; empty where the law cannot be fitted.
    pub terms: Vec<CostTerm>,
    /// Variables that changed together with the terms before them, so that the trials do not tell them apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confounded: Vec<String>,
    /// Measured and fitted cost of each cell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<CostResidual>,
    /// Why it cannot be fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

impl CostLaw {
    /// The coefficient of a variable.
    #[must_use]
    pub fn coefficient(&self, variable: &str) -> Option<&Estimate> {
        self.terms.iter().find(|term| term.variable == variable).map(|term| &term.coefficient)
    }

    /// The greatest distance of a cell from the law, as a fraction of what was measured.
    #[must_use]
    pub fn greatest_residual(&self) -> Option<f64> {
        let distances = self.residuals.iter().filter(|residual| residual.measured > 0.0);
        distances.map(|residual| (residual.fitted / residual.measured - 1.0).abs()).max_by(f64::total_cmp)
    }
}

/// A term: its variable and what one of it costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostTerm {
    /// `1` for the constant, else such as `visible services`.
    pub variable: String,
    /// Cost of one, with the interval over the repeats.
    pub coefficient: Estimate,
}

/// A cell and the law.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostResidual {
    /// Values of the variables without the constant, in the order of the law's terms.
    pub at: Vec<f64>,
    /// Mean of the trials.
    pub measured: f64,
    /// By the law.
    pub fitted: f64,
    /// Number of trials.
    pub n: usize,
}
