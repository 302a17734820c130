//! Several istiods side by side: what increased, by type and by trigger.

use super::super::style::Options;
use super::super::tables::drawn_table;
use super::control_plane::{istiods, name};
use crate::format;
use results::{ControlPlaneFigures, FleetOfIstiod, FleetResult};
use std::collections::BTreeSet;

/// A figure of every istiod.
struct Row {
    name: String,
    values: Vec<Option<f64>>,
    /// Formats a value.
    shown: fn(f64) -> String,
}

/// Empty unless each istiod had a whole fleet.
pub(super) fn lines(result: &FleetResult, options: Options) -> Vec<String> {
    if result.by_istiod.len() < 2 {
        return Vec::new();
    }
    let reported: Vec<&ControlPlaneFigures> = istiods(result).collect();
    let mut header = vec!["Compared".to_owned()];
    for (place, own) in result.by_istiod.iter().enumerate() {
        let version =
            reported.get(place).filter(|figures| figures.version.is_some()).map(|figures| name(figures));
        header.push(
            version.map_or_else(|| own.istiod.clone(), |version| format!("{version} at {}", own.istiod)),
        );
    }
    header.extend((1..result.by_istiod.len()).map(|_| "ratio".to_owned()));
    let rows = rows(&result.by_istiod, &reported);
    let shown = rows.iter().map(|row| {
        let value = |value: &Option<f64>| value.map_or_else(|| format::ABSENT.to_owned(), row.shown);
        let ratio = |value: &Option<f64>| match (row.values[0], value) {
            (Some(first), Some(value)) if first > 0.0 => format!("×{:.2}", value / first),
            _ => format::ABSENT.to_owned(),
        };
        let values = row.values.iter().map(value);
        std::iter::once(row.name.clone()).chain(values).chain(row.values.iter().skip(1).map(ratio)).collect()
    });
    drawn_table(&header, shown, options)
}

fn rows(own: &[FleetOfIstiod], reported: &[&ControlPlaneFigures]) -> Vec<Row> {
    let measured = |name: &str, shown, value: &dyn Fn(&FleetOfIstiod) -> Option<f64>| Row {
        name: name.to_owned(),
        values: own.iter().map(value).collect(),
        shown,
    };
    let figure = |name: &str, shown, value: &dyn Fn(&ControlPlaneFigures) -> Option<f64>| Row {
        name: name.to_owned(),
        values: (0..own.len()).map(|place| reported.get(place).and_then(|figures| value(figures))).collect(),
        shown,
    };
    let count: fn(f64) -> String = |count| format::count(count as u64);
    let mut rows = vec![
        measured("first configuration p50", format::time, &|own| own.first_configuration_us.p50),
        measured("first configuration last", format::time, &|own| own.first_configuration_us.max),
        measured("convergence p50", format::time, &|own| own.convergence_us.p50),
        measured("convergence p99", format::time, &|own| own.convergence_us.p99),
        measured("never reached", count, &|own| Some(own.proxies.never as f64)),
        measured("bytes received", format::size, &|own| Some(own.bytes_received as f64)),
    ];
    let types: BTreeSet<&String> = own.iter().flat_map(|own| own.pushes.keys()).collect();
    for kind in types {
        let pushes = |own: &FleetOfIstiod| own.pushes.get(kind).cloned().unwrap_or_default();
        rows.push(measured(&format!("{kind} responses"), count, &|own| Some(pushes(own).count as f64)));
        rows.push(measured(&format!("{kind} bytes"), format::size, &|own| Some(pushes(own).bytes as f64)));
    }
    rows.extend([
        figure("istiod's CPU, s", format::digits, &|figures| figures.cpu_s),
        figure("istiod's peak memory", format::size, &|figures| Some(figures.memory_peak_bytes? as f64)),
    ]);
    let triggers: BTreeSet<&String> = reported.iter().flat_map(|figures| figures.triggers.keys()).collect();
    for trigger in triggers {
        let name = format!("pushes by trigger {trigger}");
        let count_of = |figures: &ControlPlaneFigures| {
            figures.failure.is_none().then(|| figures.triggers.get(trigger).copied().unwrap_or(0) as f64)
        };
        rows.push(figure(&name, count, &count_of));
    }
    rows
}
