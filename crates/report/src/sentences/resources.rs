//! CPU and memory.

use super::said::Said;
use super::{Context, at_first, of_cell};
use crate::format;
use experiment::mesh_settings::ZtunnelPlacement;
use results::finding::{Judged, Measured, OfCell, ProxyUsage, Reservation, Reserving, Usage, Value};
use results::{Cell, Metric, Role, ServiceSummary};
use statistics::words;

/// CPU and memory of the proxies of a mode: the sums first, each proxy or kind of proxies in the detail.
pub(super) fn proxy_usage(run: &Context<'_>, group: &[&ProxyUsage]) -> Said {
    let proxies: Vec<&[&ProxyUsage]> = group.chunk_by(|one, next| one.subject == next.subject).collect();
    let cell = run.cell(group[0].place.key());
    let of_each = |of_proxy: &&[&ProxyUsage]| match of_proxy[0].copies {
        Some(copies) => usage_of_copies(copies, of_proxy),
        None => usage(run, cell, of_proxy, &of_proxy[0].subject),
    };
    let total = cell.and_then(|cell| cell.total(Role::Proxy));
    let each: Vec<String> = proxies.iter().map(of_each).collect();
    let Some((cell, total)) = cell.zip(total) else {
        return of_cell(&group[0].place, |place| Said::from(format!("{place}: {}.", each.join("; "))));
    };
    let memory = total.memory_bytes.map(|bytes| format!(" and {}", format::size(bytes.estimate)));
    let uses = format!("{}{}", format::cores(total.cpu_cores.estimate), memory.unwrap_or_default());
    let (only, most) = match total.components {
        1 => (group[0].subject.as_str(), ""),
        _ => ("", most_of(cell).unwrap_or_default()),
    };
    let text = |place: &str, names: &[String]| {
        let subject = match names[0].as_str() {
            "" => format!("{} proxies use", total.components),
            only => format!("{only} uses"),
        };
        let most = if most.is_empty() { String::new() } else { format!("; most in {}", names[1]) };
        format!("{place}: {subject} {uses}{most}.")
    };
    of_cell(&group[0].place, |place| Said::with_names(&[only, most], |names| text(place, names)))
        .and(&format!("{}.", words::sentence(&each.join("; "))))
}

/// The service whose proxies use most CPU, of several; `None` if no other uses less.
fn most_of(cell: &Cell) -> Option<&str> {
    let cores = |service: &&ServiceSummary| service.proxy_cpu_cores.map_or(0.0, |cores| cores.estimate);
    let most = cell.services.iter().max_by(|one, other| cores(one).total_cmp(&cores(other)))?;
    let is_less = cell.services.iter().any(|service| cores(&service) < cores(&most));
    is_less.then_some(most.name.as_str())
}

/// Example: `a-proxy uses 0.21 cores (0.20–0.22) and 110 MB (108–112), 29 MB of it anonymous`.
fn usage(run: &Context<'_>, cell: Option<&Cell>, of_proxy: &[&ProxyUsage], name: &str) -> String {
    let ProxyUsage { place, subject, .. } = of_proxy[0];
    let is_shared = run.experiment.istio.ztunnel == ZtunnelPlacement::Shared
        && place.mode.is_ambient()
        && subject == "ztunnel";
    let whose = if is_shared { " (one for both sides)" } else { "" };
    let mut component = cell.iter().flat_map(|cell| &cell.components);
    let anonymous = component
        .find(|component| component.name == *subject)
        .and_then(|it| it.estimate(Metric::MemoryAnonymousBytes))
        .filter(|_| of_proxy.iter().any(|usage| usage.measured.figure == Metric::MemoryBytes))
        .map_or_else(String::new, |bytes| {
            format!(", {} of it anonymous", words::memory_value(bytes.estimate))
        });
    let amounts = cpu_and_memory(of_proxy.iter().map(|usage| &usage.measured));
    format!("{name}{whose} uses {amounts}{anonymous}")
}

/// Example: `50 a-proxy use 2.5 cores and 1900 MB in all, each 0.05 cores (0.04–0.06) and 38 MB (35–41)`,
/// with medians of copies and their range.
fn usage_of_copies(copies: usize, of_proxy: &[&ProxyUsage]) -> String {
    let sums = of_proxy.iter().map(|usage| match usage.measured {
        Measured { figure: Metric::CpuCores, value, .. } => words::cores_value(value),
        Measured { value, .. } => words::memory_value(value),
    });
    let sums = words::list(&sums.collect::<Vec<_>>());
    let each = cpu_and_memory(of_proxy.iter().map(|usage| &usage.measured));
    format!("{copies} {} use {sums} in all, each {each}", of_proxy[0].subject)
}

/// Example: `0.21 cores (0.20–0.22) and 41 MB`.
fn cpu_and_memory<'a>(of_component: impl Iterator<Item = &'a Measured>) -> String {
    let amounts = of_component.map(|measured| match measured.figure {
        Metric::CpuCores => words::cores(&measured.estimate),
        _ => words::memory(&measured.estimate),
    });
    words::list(&amounts.collect::<Vec<_>>())
}

/// CPU and memory of the control plane.
pub(super) fn control_plane(group: &[&Usage]) -> String {
    let components =
        group.chunk_by(|one, next| one.content.subject == next.content.subject).map(|of_component| {
            let amounts = cpu_and_memory(of_component.iter().map(|usage| &usage.content.figure));
            format!("{} {amounts}", of_component[0].content.subject)
        });
    let components = components.collect::<Vec<_>>().join("; ");
    format!("Control plane, {}: {components}.", words::brief_place(group[0].place.key()))
}

/// CPU of a proxy at the lowest and at the highest rate.
pub(super) fn cpu_scaling(run: &Context<'_>, group: &[&OfCell<Judged<Value>>]) -> Said {
    let of = |figure: Metric| -> Vec<(String, String)> {
        let shown = group.iter().filter(|one| one.content.figure.figure == figure);
        let text = |one: &&OfCell<Judged<Value>>| {
            (words::cores_value(one.content.figure.value), words::brief_at(one.place.conditions()))
        };
        shown.map(text).collect()
    };
    let (cores, per_1000_rps) = (of(Metric::CpuCores), of(Metric::CpuCoresPer1000Rps));
    let ([(low, at_low), (high, at_high)], [(low_per, _), (high_per, _)]) =
        (cores.as_slice(), per_1000_rps.as_slice())
    else {
        return Said::default();
    };
    let text = |and: &str| {
        Said::from(format!(
            "With {} a proxy uses {low} {at_low}{and}{high} {at_high}; that is {low_per} and {high_per} per 1000 requests/s.",
            run.subject(group[0].place.mode)
        ))
    };
    Some(text(" and ")).filter(Said::is_whole).unwrap_or_else(|| text("; "))
}

/// What pods reserve, and how much of it they used.
pub(super) fn reservation(group: &[&OfCell<Reservation>]) -> String {
    let (app, mesh): (Vec<&OfCell<Reservation>>, Vec<&OfCell<Reservation>>) =
        group.iter().partition(|reservation| reservation.content.pods == Reserving::Application);
    let mesh: String = mesh
        .chunk_by(|one, next| one.place.mode == next.place.mode)
        .map(|of_mode| format!("; the mesh {} with {}", amount(of_mode), words::mode(of_mode[0].place.mode)))
        .collect();
    format!("{} the application {}{mesh}.", at_first(group[0].place.conditions()), amount(&app))
}

/// `reserves 14.00 cores (3.0% used) and 10.5 GB (2.0% used)`.
fn amount(of_group: &[&OfCell<Reservation>]) -> String {
    let amounts = of_group.iter().map(|one| {
        let Reservation { reserved, used, .. } = &one.content;
        let text = match reserved.figure {
            Metric::ReservedCpuCores => words::cores_value(reserved.value),
            _ => words::memory_value(reserved.value),
        };
        let used = used.map_or_else(String::new, |used| {
            format!(" ({} used)", words::percent(used.estimate / reserved.value))
        });
        text + &used
    });
    format!("reserves {}", amounts.collect::<Vec<_>>().join(" and "))
}
