//! Costs of a control plane by its fitted laws.

use super::Context;
use crate::format::{self, Interval};
use experiment::schema::{ChangeCosts, ControlPlaneCosts, CostLaw, Estimate, Finding};

/// Sentence about a law of the main model.
pub(super) fn cost(run: &Context<'_>, finding: &Finding) -> String {
    let Some(model) = &run.summary.control_plane_model else { return String::new() };
    let costs = &model.main;
    match finding.subject.as_deref() {
        Some("configuration") => configuration(costs),
        Some("connecting") => connecting(costs),
        Some("changing") => changing(costs),
        Some("memory") => memory(costs),
        _ => String::new(),
    }
}

fn changing(costs: &ControlPlaneCosts) -> String {
    let law = &costs.changing;
    let parts = law.terms.iter().skip(1).map(|term| match term.variable.as_str() {
        "pushes/s" => format!(", and {} per 1000 pushes/s", scaled(&term.coefficient, 1e3, "cores")),
        _ => format!(", and {} per MB/s that changes make it send", scaled(&term.coefficient, 1e6, "cores")),
    });
    let first = format!(
        "{} {} while nothing changes{}{}{}.",
        istiods(costs, "uses", "use"),
        constant(law, "cores"),
        parts.collect::<String>(),
        confounded(law),
        fit(law)
    );
    std::iter::once(first).chain(changes(costs)).collect::<Vec<_>>().join(" ")
}

/// Bytes of a change by its kind, for the measured mesh.
fn changes(costs: &ControlPlaneCosts) -> Option<String> {
    let of_kind = |(kind, change): (&String, &ChangeCosts)| {
        let cells = &change.bytes.residuals;
        let mean = cells.iter().map(|cell| cell.measured).sum::<f64>() / cells.len() as f64;
        (!cells.is_empty()).then(|| format!("{kind} {}", bytes(&Estimate::single(mean))))
    };
    let kinds: Vec<String> = costs.changes.iter().filter_map(of_kind).collect();
    (!kinds.is_empty()).then(|| {
        format!("A change sends each affected proxy, on average over the cells: {}.", kinds.join(", "))
    })
}

/// Variables that the trials cannot separate from those before them.
fn confounded(law: &CostLaw) -> String {
    match law.confounded.as_slice() {
        [] => String::new(),
        others => format!("; {} changed in proportion and are not told apart", others.join(" and ")),
    }
}

fn memory(costs: &ControlPlaneCosts) -> String {
    let law = &costs.memory;
    let parts = law.terms.iter().skip(1).map(|term| match term.variable.as_str() {
        "services" => format!("{} per service", bytes(&term.coefficient)),
        _ => format!(
            "{} per MB of configuration held for proxies",
            bytes(&term.coefficient.map(|one| one * 1e6))
        ),
    });
    format!(
        "{} {}{}{}.",
        istiods(costs, "holds", "hold"),
        law.terms.first().map(|term| bytes(&term.coefficient)).unwrap_or_default(),
        parts.map(|part| format!(", and {part}")).collect::<String>(),
        fit(law)
    )
}

fn configuration(costs: &ControlPlaneCosts) -> String {
    let law = &costs.configuration;
    let parts = law.terms.iter().map(|term| match term.variable.as_str() {
        "visible services" => format!("{} per service", bytes(&term.coefficient)),
        "visible pods" => format!("{} per pod", bytes(&term.coefficient)),
        _ => bytes(&term.coefficient),
    });
    let parts: Vec<String> = parts.collect();
    format!(
        "A proxy ({}) is sent {} that it sees{}{}.",
        costs.kinds,
        parts.join(", and "),
        confounded(law),
        fit(law)
    )
}

fn connecting(costs: &ControlPlaneCosts) -> String {
    let law = &costs.connecting;
    let parts = law.terms.iter().skip(1).map(|term| match term.variable.as_str() {
        "connections" => format!(", and {} per 1000 connections", scaled(&term.coefficient, 1e3, "s")),
        _ => format!(", and {} per MB sent", scaled(&term.coefficient, 1e6, "s")),
    });
    format!(
        "First configurations take {} of CPU{}{}{}.",
        constant(law, "s"),
        parts.collect::<String>(),
        confounded(law),
        fit(law)
    )
}

fn istiods(costs: &ControlPlaneCosts, one: &str, many: &str) -> String {
    if costs.istiods > 1 {
        format!("{} istiods together {many}", costs.istiods)
    } else {
        format!("istiod {one}")
    }
}

fn constant(law: &CostLaw, unit: &str) -> String {
    law.terms.first().map(|term| scaled(&term.coefficient, 1.0, unit)).unwrap_or_default()
}

fn scaled(estimate: &Estimate, factor: f64, unit: &str) -> String {
    Interval::scaled(estimate, factor).text_with_unit(unit)
}

/// Formats a coefficient of a cost in bytes, with the unit chosen by the estimate.
pub(crate) fn bytes(estimate: &Estimate) -> String {
    let (unit, size) = match estimate.estimate.abs() {
        1e9.. => ("GB", 1e9),
        1e6.. => ("MB", 1e6),
        1e3.. => ("kB", 1e3),
        _ => ("bytes", 1.0),
    };
    scaled(estimate, 1.0 / size, unit)
}

/// Maximum deviation of a cell from the law.
fn fit(law: &CostLaw) -> String {
    law.greatest_residual()
        .map(|residual| format!("; cells lie within {} of the law", format::percent(residual)))
        .unwrap_or_default()
}
