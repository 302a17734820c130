//! Costs of a control plane: the terms of its laws, and each cell compared with them.

use super::context::Context;
use crate::format::{self, Interval};
use crate::sentences::control_plane_model::bytes;
use experiment::file::label::setting;
use results::{ControlPlaneCosts, CostLaw, CostResidual, CostTerm, Estimate};
use serde::Serialize;

/// Models, the main one first.
#[derive(Debug, Serialize)]
pub struct ControlPlaneModelSection {
    models: Vec<Model>,
}

#[derive(Debug, Serialize)]
struct Model {
    /// Kinds of proxies, and the fixed factors.
    name: String,
    measured: String,
    laws: Vec<Law>,
}

#[derive(Debug, Serialize)]
struct Law {
    name: String,
    unit: String,
    refusal: Option<String>,
    /// Variables that cannot be separated from those of the terms.
    confounded: String,
    /// Variable and coefficient.
    terms: Vec<(String, String)>,
    /// Names of the variables of `cells`.
    variables: Vec<String>,
    cells: Vec<FittedCell>,
}

/// A measured cell and the law's value for it.
#[derive(Debug, Serialize)]
struct FittedCell {
    at: Vec<String>,
    measured: String,
    fitted: String,
    distance: String,
}

/// `None` if no fleet was swept.
pub fn control_plane_model(context: &Context) -> Option<ControlPlaneModelSection> {
    let model = context.run.summary.control_plane_model.as_ref()?;
    Some(ControlPlaneModelSection { models: model.all().map(described).collect() })
}

fn described(costs: &ControlPlaneCosts) -> Model {
    let factors =
        costs.factors.iter().map(|(key, value)| format!(", {}", setting(key, value))).collect::<String>();
    let range = |(name, range): (&String, &results::MeasuredRange)| {
        format!("{} {} to {}", name.replace('_', " "), format::digits(range.from), format::digits(range.to))
    };
    let laws = [
        ("CPU under changes", &costs.changing),
        ("CPU of first configurations", &costs.connecting),
        ("Memory", &costs.memory),
        ("Configuration of a proxy", &costs.configuration),
    ];
    let of_changes = costs.changes.iter().flat_map(|(kind, change)| {
        [
            (format!("Bytes per change and proxy, {kind}"), &change.bytes),
            (format!("Pushes per change and proxy, {kind}"), &change.pushes),
        ]
    });
    let laws = laws.map(|(name, law)| (name.to_owned(), law)).into_iter().chain(of_changes);
    Model {
        name: format!("{}{factors}", costs.kinds),
        measured: costs.measured.iter().map(range).collect::<Vec<_>>().join(", "),
        laws: laws.map(|(name, law)| fitted(name, law)).collect(),
    }
}

fn fitted(name: String, law: &CostLaw) -> Law {
    let is_bytes = law.unit == "bytes";
    let value = |value: f64| if is_bytes { bytes(&Estimate::single(value)) } else { format::digits(value) };
    let cell = |residual: &CostResidual| FittedCell {
        at: residual.at.iter().map(|value| format::digits(*value)).collect(),
        measured: value(residual.measured),
        fitted: value(residual.fitted),
        distance: format::percent((residual.fitted / residual.measured - 1.0).abs()),
    };
    Law {
        name,
        unit: law.unit.clone(),
        refusal: law.refusal.clone(),
        confounded: law.confounded.join(", "),
        terms: law.terms.iter().map(|term| (term_name(term), coefficient(term, is_bytes))).collect(),
        variables: law.terms.iter().skip(1).map(|term| term.variable.clone()).collect(),
        cells: law.residuals.iter().map(cell).collect(),
    }
}

fn term_name(term: &CostTerm) -> String {
    match unit(term) {
        ("", _) if term.variable == "1" => "constant".to_owned(),
        (unit, _) => format!("per {unit}{}", term.variable),
    }
}

/// Unit in which a coefficient is shown: a single byte or push costs almost nothing.
fn unit(term: &CostTerm) -> (&'static str, f64) {
    match term.variable.as_str() {
        "1" | "pods per service" => ("", 1.0),
        "connections" | "pushes/s" => ("1000 ", 1e3),
        _ => ("million of ", 1e6),
    }
}

fn coefficient(term: &CostTerm, is_bytes: bool) -> String {
    let factor = unit(term).1;
    let estimate = term.coefficient.map(|one| one * factor);
    if is_bytes { bytes(&estimate) } else { Interval::new(&estimate).text() }
}
