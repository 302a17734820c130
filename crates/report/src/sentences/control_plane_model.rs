//! Costs of a control plane by its fitted laws.

use super::Context;
use crate::format::{self, Interval};
use results::finding::Law;
use results::{ChangeCosts, ControlPlaneCosts, CostLaw, Estimate};

/// Sentence about a law of the main model.
pub(super) fn cost(run: &Context<'_>, law: Law) -> String {
    let Some(model) = &run.summary.control_plane_model else { return String::new() };
    let sentence = match law {
        Law::Configuration => configuration,
        Law::Connecting => connecting,
        Law::Changing => changing,
        Law::Memory => memory,
    };
    sentence(&model.main)
}

fn changing(costs: &ControlPlaneCosts) -> String {
    let law = &costs.changing;
    let parts = law.terms.iter().skip(1).map(|term| match term.variable.as_str() {
        "pushes/s" => format!("; {} per 1000 pushes/s", cost_of(&term.coefficient, 1e3, "cores")),
        _ => format!("; {} per MB/s that changes make it send", cost_of(&term.coefficient, 1e6, "cores")),
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
        others => format!("; {} changed in proportion and cannot be separated", others.join(" and ")),
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
        parts.map(|part| format!("; {part}")).collect::<String>(),
        fit(law)
    )
}

fn configuration(costs: &ControlPlaneCosts) -> String {
    let law = &costs.configuration;
    let parts = law.terms.iter().map(|term| match term.variable.as_str() {
        "visible services" => format!("{} per service that it sees", bytes(&term.coefficient)),
        "visible pods" => format!("{} per pod that it sees", bytes(&term.coefficient)),
        _ => bytes(&term.coefficient),
    });
    let parts: Vec<String> = parts.collect();
    format!("A proxy ({}) is sent {}{}{}.", costs.kinds, parts.join("; "), confounded(law), fit(law))
}

fn connecting(costs: &ControlPlaneCosts) -> String {
    let law = &costs.connecting;
    let parts = law.terms.iter().skip(1).map(|term| match term.variable.as_str() {
        "connections" => format!("; {} per 1000 connections", cost_of(&term.coefficient, 1e3, "s")),
        _ => format!("; {} per MB sent", cost_of(&term.coefficient, 1e6, "s")),
    });
    format!(
        "First configurations take {}{}{}{}.",
        constant(law, "s of CPU"),
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
    law.terms.first().map(|term| cost_of(&term.coefficient, 1.0, unit)).unwrap_or_default()
}

/// A coefficient as a cost. The laws do not bound coefficients, and nothing costs less than nothing.
fn cost_of(coefficient: &Estimate, factor: f64, unit: &str) -> String {
    let text = scaled(coefficient, factor, unit);
    if coefficient.estimate < 0.0 { format!("nothing that shows ({text} by the law)") } else { text }
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

#[cfg(test)]
mod tests {
    use super::*;
    use results::CostTerm;

    fn law(coefficients: &[(&str, f64)]) -> CostLaw {
        let term = |(variable, value): &(&str, f64)| CostTerm {
            variable: (*variable).to_owned(),
            coefficient: Estimate::single(*value),
            verdict: None,
        };
        CostLaw { terms: coefficients.iter().map(term).collect(), ..CostLaw::default() }
    }

    fn costs(constant: f64) -> ControlPlaneCosts {
        ControlPlaneCosts {
            istiods: 1,
            changing: law(&[("1", constant), ("bytes/s", 1.16e-8), ("pushes/s", 3.49e-4)]),
            connecting: law(&[("1", constant), ("bytes of first configurations", 3.84e-8)]),
            ..ControlPlaneCosts::default()
        }
    }

    /// With ordinary spaces between numbers and units.
    fn spaced(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn costs_are_in_words() {
        insta::assert_snapshot!(
            spaced(&changing(&costs(0.004))),
            @"istiod uses 0.00400 cores while nothing changes; 0.0116 cores per MB/s that changes make it send; 0.349 cores per 1000 pushes/s."
        );
        insta::assert_snapshot!(spaced(&connecting(&costs(0.004))), @"First configurations take 0.00400 s of CPU; 0.0384 s per MB sent.");
    }

    #[test]
    fn no_cost_is_below_zero() {
        insta::assert_snapshot!(
            spaced(&changing(&costs(-0.0038))),
            @"istiod uses nothing that shows (−0.00380 cores by the law) while nothing changes; 0.0116 cores per MB/s that changes make it send; 0.349 cores per 1000 pushes/s."
        );
        insta::assert_snapshot!(
            spaced(&connecting(&costs(-0.0038))),
            @"First configurations take nothing that shows (−0.00380 s of CPU by the law); 0.0384 s per MB sent."
        );
    }
}
