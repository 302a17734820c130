//! Usage and holdings of each component, as CSV: one line per component of each cell ([`crate::csv_fields`]).

use crate::csv_fields::{self, Fields, optional};
use results::{Cell, ComponentSummary, Metric, Role, Summary};

/// The table of a run.
#[must_use]
pub fn table(summary: &Summary) -> String {
    let cells = summary.cells.iter();
    let rows = cells.flat_map(|cell| cell.components.iter().map(move |component| fields(cell, component)));
    csv_fields::table(rows)
}

fn fields(cell: &Cell, component: &ComponentSummary) -> Fields {
    let fields = Fields::of_cell(cell).text("component", &component.name).text("role", role(component.role));
    let fields = Metric::of_components()
        .fold(fields, |fields, metric| fields.estimate(metric.key(), component.estimate(metric)));
    let counts = component.configuration.map(|configuration| configuration.counts).unwrap_or_default();
    let counts = counts.held().into_iter().chain([("rejected updates", counts.rejected_updates)]);
    counts.fold(fields, |fields, (name, count)| fields.text(&name.replace(' ', "_"), optional(count)))
}

/// Name of the role, as in the summary.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Proxy => "proxy",
        Role::App => "app",
        Role::Generator => "generator",
        Role::ControlPlane => "control-plane",
        Role::FilterService => "filter-service",
        Role::Kernel => "kernel",
        Role::Observer => "observer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Estimate;

    fn summary() -> Summary {
        serde_json::from_str(include_str!("../tests/fixture/summary.json")).expect("the kept summary is good")
    }

    #[test]
    fn each_line_has_a_field_per_column() {
        let mut summary = summary();
        let names = table(&summary).lines().next().unwrap().split(',').count();
        let component = &mut summary.cells[1].components[0];
        let in_s = Estimate { estimate: 0.5, low: None, high: Some(0.75), n: 2, alone: None };
        let unreadable = Estimate::single(f64::NAN);
        component.estimates.set(Metric::ConfiguredInS, Some(in_s));
        component.estimates.set(Metric::MemoryBeforeLoadBytes, Some(unreadable));
        let text = table(&summary);
        let components: usize = summary.cells.iter().map(|cell| cell.components.len()).sum();
        assert_eq!(text.lines().count(), components + 1);
        assert!(text.lines().all(|line| line.split(',').count() == names), "{text}");
        assert!(text.contains(",0.5,,0.75,") && !text.contains("NaN"), "{text}");
        let column = |name: &str| text.lines().next()?.split(',').position(|known| known == name);
        let n = column("configured_in_s_n").expect("the number of trials stands beside each estimate");
        assert!(text.lines().any(|line| line.split(',').nth(n) == Some("2")), "{text}");
    }

    #[test]
    fn component_name_cannot_add_fields_or_lines() {
        let mut summary = summary();
        summary.cells[0].components[0].name = "a,\"b\"\nc".to_owned();
        assert!(table(&summary).contains(",\"a,\"\"b\"\"\nc\","));
    }

    #[test]
    fn run_without_components_has_empty_table() {
        assert_eq!(table(&Summary { cells: Vec::new(), ..summary() }), "");
    }
}
