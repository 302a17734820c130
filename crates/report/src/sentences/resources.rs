//! CPU and memory.

use super::{Context, at, place};
use experiment::mesh_settings::ZtunnelPlacement;
use results::{Cell, Finding, Metric, Mode};
use statistics::words;

/// CPU and memory of each proxy of a mode.
pub(super) fn proxy_usage(run: &Context<'_>, group: &[&Finding]) -> String {
    let proxies = group.chunk_by(|one, next| one.subject == next.subject);
    let cell = run.cell(group[0]);
    let proxies: Vec<String> = proxies
        .map(|of_proxy| match of_proxy[0].candidates {
            Some(copies) => usage_of_copies(copies, of_proxy),
            None => usage(run, cell, of_proxy),
        })
        .collect();
    format!("{}: {}.", place(group[0]), proxies.join("; "))
}

/// Example: `a-proxy uses 0.21 cores (0.20–0.22) and 110 MB (108–112), 29 MB of it anonymous`.
fn usage(run: &Context<'_>, cell: Option<&Cell>, of_proxy: &[&Finding]) -> String {
    let name = of_proxy[0].subject.as_deref().unwrap_or_default();
    let is_shared = run.experiment.istio.ztunnel == ZtunnelPlacement::Shared
        && of_proxy[0].mode.is_some_and(Mode::is_ambient)
        && name == "ztunnel";
    let whose = if is_shared { " (one for both sides)" } else { "" };
    let mut component = cell.iter().flat_map(|cell| &cell.components);
    let anonymous = component
        .find(|component| component.name == name)
        .and_then(|it| it.estimate(Metric::MemoryAnonymousBytes));
    let anonymous =
        anonymous.filter(|_| has(of_proxy, Metric::MemoryBytes)).map_or_else(String::new, |bytes| {
            format!(", {} of it anonymous", words::memory_value(bytes.estimate))
        });
    format!("{name}{whose} uses {}{anonymous}", cpu_and_memory(of_proxy))
}

/// Example: `50 a-proxy use 2.5 cores and 1900 MB in all, each 0.05 cores (0.04–0.06) and 38 MB (35–41)`,
/// with medians of copies and their range.
fn usage_of_copies(copies: usize, of_proxy: &[&Finding]) -> String {
    let sums: Vec<String> = of_proxy
        .iter()
        .filter_map(|finding| {
            let sum = finding.value?;
            let is_cpu = finding.is_of(Metric::CpuCores);
            Some(if is_cpu { words::cores_value(sum) } else { words::memory_value(sum) })
        })
        .collect();
    let name = of_proxy[0].subject.as_deref().unwrap_or_default();
    format!("{copies} {name} use {} in all, each {}", words::list(&sums), cpu_and_memory(of_proxy))
}

/// Example: `0.21 cores (0.20–0.22) and 41 MB`.
fn cpu_and_memory(of_component: &[&Finding]) -> String {
    let amounts = of_component.iter().filter_map(|finding| {
        let estimate = finding.estimate.as_ref()?;
        Some(if finding.is_of(Metric::CpuCores) { words::cores(estimate) } else { words::memory(estimate) })
    });
    words::list(&amounts.collect::<Vec<_>>())
}

fn has(findings: &[&Finding], figure: Metric) -> bool {
    findings.iter().any(|finding| finding.is_of(figure))
}

/// CPU and memory of the control plane.
pub(super) fn control_plane(group: &[&Finding]) -> String {
    let components = group.chunk_by(|one, next| one.subject == next.subject).map(|of_component| {
        let name = of_component[0].subject.as_deref().unwrap_or_default();
        format!("{name} {}", cpu_and_memory(of_component))
    });
    let during = group[0].cell_key().map(words::place).unwrap_or_default();
    format!("The control plane during {during} in this run: {}.", components.collect::<Vec<_>>().join("; "))
}

/// CPU of a proxy at the lowest and at the highest rate.
pub(super) fn cpu_scaling(run: &Context<'_>, group: &[&Finding]) -> String {
    let of = |figure: Metric| -> Vec<(String, String)> {
        let findings = group.iter().filter(|finding| finding.is_of(figure));
        let parts = findings.filter_map(|finding| {
            Some((words::cores_value(finding.value?), finding.conditions().map(words::at)?))
        });
        parts.collect()
    };
    let (cores, per_1000_rps) = (of(Metric::CpuCores), of(Metric::CpuCoresPer1000Rps));
    let ([(low, at_low), (high, at_high)], [(low_per, _), (high_per, _)]) =
        (cores.as_slice(), per_1000_rps.as_slice())
    else {
        return String::new();
    };
    let subject = group[0].mode.map(|mode| run.subject(mode)).unwrap_or_default();
    format!(
        "With {subject} a proxy uses {low} {at_low} and {high} {at_high} in this run, that is {low_per} and {high_per} per \
         1000 requests/s."
    )
}

/// What pods reserve, and how much of it they used.
pub(super) fn reservation(group: &[&Finding]) -> String {
    let (app, mesh): (Vec<&Finding>, Vec<&Finding>) =
        group.iter().partition(|finding| finding.subject.as_deref() == Some("application"));
    let meshes: Vec<String> = mesh
        .chunk_by(|one, next| one.mode == next.mode)
        .map(|of_mode| format!("with {} {}", of_mode[0].mode.map_or("", words::mode), amount(of_mode)))
        .collect();
    let mesh = match meshes.is_empty() {
        true => String::new(),
        false => format!("; the mesh {}", words::list(&meshes)),
    };
    format!("Reserved against used {}: the application {}{mesh}.", at(group[0]), amount(&app))
}

/// `reserves 14.00 cores (3.0% used) and 10.5 GB (2.0% used)`.
fn amount(of_group: &[&Finding]) -> String {
    let amounts: Vec<String> = of_group
        .iter()
        .filter_map(|finding| {
            let reserved = finding.value?;
            let text = if finding.is_of(Metric::ReservedCpuCores) {
                words::cores_value(reserved)
            } else {
                words::memory_value(reserved)
            };
            let used = finding.estimate.map_or_else(String::new, |used| {
                format!(" ({} used)", words::percent(used.estimate / reserved))
            });
            Some(text + &used)
        })
        .collect();
    format!("reserves {}", amounts.join(" and "))
}
