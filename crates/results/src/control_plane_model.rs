//! Cost of a control plane as a function of its mesh and changes: four laws, each a sum of terms.

use crate::estimate::Estimate;
use crate::factor::Factors;
use crate::finding_verdict::FindingVerdict;
use crate::scaling::MeasuredRange;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Cost models of a run: the main one, and those for other values of factors that are not terms of the laws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneModel {
    /// Model of the fleet with the most cells.
    #[serde(flatten)]
    pub main: ControlPlaneCosts,
    /// All other models.
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
    /// Values of factors that are not terms of a law.
    #[serde(skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Kinds of proxies, such as `sidecar`.
    pub kinds: String,
    /// Number of istiods.
    pub istiods: usize,
    /// Configuration per proxy, bytes: a constant, and per service and pod that is pushed to the proxy.
    pub configuration: CostLaw,
    /// CPU of first configurations, seconds: a constant, per byte of configuration sent (proxies ×
    /// configuration), and per connection (handshake and certificate).
    pub connecting: CostLaw,
    /// CPU once all are connected, cores: a constant, per byte/s and per push/s sent to proxies for changes.
    pub changing: CostLaw,
    /// Responses that a change causes istiod to send, by kind of change.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, ChangeCosts>,
    /// Memory, bytes: a constant, per byte of configuration held (proxies × configuration), and per service
    /// of the mesh.
    pub memory: CostLaw,
    /// Measured range of each variable: `services`, `pods`, `proxies`, `changes_per_s` (arrivals per proxy
    /// and second), `configuration_bytes`, `pods_per_service`.
    pub measured: BTreeMap<String, MeasuredRange>,
}

/// Cost of a change of one kind, per affected proxy: with scoping the proxies of its namespace, otherwise
/// all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeCosts {
    /// Responses: a constant. Changes in quick succession are pushed together, so it only holds for the
    /// measured rates.
    pub pushes: CostLaw,
    /// Bytes: a constant, plus per pod of a service for endpoint changes, or per byte of a proxy's
    /// configuration for others.
    pub bytes: CostLaw,
    /// Measured rate of changes, per second.
    pub per_s: Option<MeasuredRange>,
}

/// A cost as a sum of terms, fitted by least squares in each repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostLaw {
    /// Unit of the cost, such as `cores`.
    pub unit: String,
    /// Terms with their coefficients; empty if the law cannot be fitted.
    pub terms: Vec<CostTerm>,
    /// Variables that changed together with earlier terms, so that the trials cannot separate them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confounded: Vec<String>,
    /// Measured and fitted cost of each cell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<CostResidual>,
    /// Why the law cannot be fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

impl CostLaw {
    /// The coefficient of a variable.
    #[must_use]
    pub fn coefficient(&self, variable: &str) -> Option<&Estimate> {
        self.terms.iter().find(|term| term.variable == variable).map(|term| &term.coefficient)
    }

    /// Maximum residual of a cell, as a fraction of its measured value.
    #[must_use]
    pub fn greatest_residual(&self) -> Option<f64> {
        let distances = self.residuals.iter().filter(|residual| residual.measured > 0.0);
        distances.map(|residual| (residual.fitted / residual.measured - 1.0).abs()).max_by(f64::total_cmp)
    }
}

/// A term of a cost law: a variable and its cost per unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostTerm {
    /// `1` for the constant, otherwise a name such as `visible services`.
    pub variable: String,
    /// Cost per unit, with the interval over the repeats.
    pub coefficient: Estimate,
    /// Whether the first slope of a law of the main model is shown, among all that the run tests; absent elsewhere, and in
    /// results of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FindingVerdict>,
}

/// Measured and fitted cost of one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostResidual {
    /// Values of the variables, without the constant, in the order of the law's terms.
    pub at: Vec<f64>,
    /// Mean of the trials.
    pub measured: f64,
    /// Value given by the law.
    pub fitted: f64,
    /// Number of trials.
    pub n: usize,
}
