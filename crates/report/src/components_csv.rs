//! What each component used and holds, as CSV: a header line, then one line per component of each cell.
//!
//! Estimates have three columns: the estimate, then `_low` and `_high` of the 95 % confidence interval. `_n`,
//! the number of trials, is at the end. A field is empty if there is no such figure. A field with a comma, a
//! quote or a line break is quoted as in RFC 4180.

use crate::csv_fields::{estimate_fields, factor_fields, line, load_fields, n_field};
use results::{Cell, ComponentSummary, Estimate, Role, Summary};

/// The table of a run.
#[must_use]
pub fn table(summary: &Summary) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cell in &summary.cells {
        for component in &cell.components {
            let fields = fields(cell, component);
            if lines.is_empty() {
                lines.push(line(fields.iter().map(|(name, _)| name.clone())));
            }
            lines.push(line(fields.into_iter().map(|(_, value)| value)));
        }
    }
    lines.concat()
}

/// Every field of a line, with its name.
fn fields(cell: &Cell, component: &ComponentSummary) -> Vec<(String, String)> {
    let mut fields = load_fields(cell);
    fields.push(("component".to_owned(), component.name.clone()));
    fields.push(("role".to_owned(), role(component.role).to_owned()));
    for (name, estimate) in estimates(component) {
        fields.extend(estimate_fields(name, estimate));
    }
    let counts = component.configuration.map(|configuration| configuration.counts).unwrap_or_default();
    let rejected = ("rejected updates", counts.rejected_updates);
    for (name, count) in counts.held().into_iter().chain([rejected]) {
        let count = count.map_or_else(String::new, |count| count.to_string());
        fields.push((name.replace(' ', "_"), count));
    }
    fields.extend(factor_fields(cell));
    fields.extend(estimates(component).map(|(name, estimate)| n_field(name, estimate)));
    fields
}

fn estimates(component: &ComponentSummary) -> [(&'static str, Option<Estimate>); 20] {
    let (before, after) = (component.heap_before_load, component.heap_after_load);
    let configuration = component.configuration;
    [
        ("cpu_cores", Some(component.cpu_cores)),
        ("cpu_cores_per_1000_rps", Some(component.cpu_cores_per_1000_rps)),
        ("memory_before_load_bytes", component.memory_before_load_bytes),
        ("memory_bytes", component.memory_bytes),
        ("memory_after_load_bytes", component.memory_after_load_bytes),
        ("memory_resident_bytes", component.memory_resident_bytes),
        ("memory_working_set_bytes", component.memory_working_set_bytes),
        ("memory_anonymous_before_load_bytes", component.memory_anonymous_before_load_bytes),
        ("memory_anonymous_bytes", component.memory_anonymous_bytes),
        ("memory_anonymous_after_load_bytes", component.memory_anonymous_after_load_bytes),
        ("heap_allocated_before_load_bytes", before.map(|heap| heap.allocated_bytes)),
        ("heap_before_load_bytes", before.map(|heap| heap.heap_bytes)),
        ("heap_allocated_after_load_bytes", after.map(|heap| heap.allocated_bytes)),
        ("heap_after_load_bytes", after.map(|heap| heap.heap_bytes)),
        ("network_bytes_received_s", component.network_bytes_received_s),
        ("network_bytes_sent_s", component.network_bytes_sent_s),
        ("configuration_size_bytes", configuration.map(|held| held.size_bytes)),
        ("configuration_dump_bytes", configuration.map(|held| held.dump_bytes)),
        ("configured_in_s", component.configured_in_s),
        ("further_domain_in_s", component.further_domain_in_s),
    ]
}

/// Name of the role, as in the summary.
fn role(role: Role) -> &'static str {
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

    fn summary() -> Summary {
        serde_json::from_str(include_str!("../tests/fixture/summary.json")).expect("the kept summary is good")
    }

    #[test]
    fn each_line_has_a_field_per_column() {
        let mut summary = summary();
        let names = table(&summary).lines().next().unwrap().split(',').count();
        let component = &mut summary.cells[1].components[0];
        component.configured_in_s = Some(Estimate { estimate: 0.5, low: None, high: Some(0.75), n: 2 });
        component.memory_before_load_bytes = Some(Estimate::single(f64::NAN));
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
