//! The result of `meshmeter fleet` on a terminal.
//!
//! Read [`fleet_text`] for the order. `changes.rs` has the table of changes, `control_plane.rs` the figures
//! that istiod and its neighbours report and a breakdown of the time, `compared.rs` several istiods side by
//! side, `witnesses.rs` real sidecars.

mod changes;
mod compared;
mod control_plane;
mod witnesses;

use super::style::{Options, bold, plain, wrap};
use super::tables::drawn_table;
use crate::fleets::why_lost;
use crate::format::{self, SizeUnit, TimeUnit};
use experiment::settings::fleet::{ChangeKind, ProxyKind};
use results::{FleetChange, FleetOutage, FleetPushes, FleetResult, HistogramSummary};
use std::fmt::Write as _;

/// Shown if a percentile falls among proxies that were never reached.
const NEVER: &str = "never";
/// Maximum number of names listed per outage; the result has all.
const SHOWN_NAMES: usize = 3;

/// The result as text, ending with a line break.
#[must_use]
pub fn fleet_text(result: &FleetResult, options: Options) -> String {
    let mut lines = verdict(result, options);
    lines.extend(facts(result, options));
    for section in [
        changes::lines(result, options),
        witnesses::lines(result, options),
        pushes(result, options),
        control_plane::lines(result, options),
        compared::lines(result, options),
        shortfalls(result, options),
    ] {
        if !section.is_empty() {
            lines.push(String::new());
            lines.extend(section);
        }
    }
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{}", line.trim_end());
        text
    })
}

fn wrapped(text: &str, options: Options) -> Vec<String> {
    wrap(&format::unbroken(&plain(text)), options.width)
}

fn verdict(result: &FleetResult, options: Options) -> Vec<String> {
    let proxies = &result.proxies;
    let made = result.changes.iter().filter(|change| change.failure.is_none());
    let count: u64 = made.map(|change| change.made.max(1)).sum();
    let changes = match count {
        0 => String::new(),
        1 => " and the change".to_owned(),
        _ => format!(" and all {} changes", format::count(count)),
    };
    let all = proxies.converged == proxies.wanted && proxies.never == 0;
    let opening = if all {
        let proxies = format::counted(proxies.wanted, "proxy", "proxies");
        format!("All {proxies} got their configuration{changes}.")
    } else {
        let missing = proxies.wanted.saturating_sub(proxies.converged).max(proxies.never);
        format!(
            "NOT CONVERGED: {} of {} missed their configuration or a change.",
            format::count(missing),
            format::counted(proxies.wanted, "proxy", "proxies")
        )
    };
    let mut lines = vec![bold(&opening, options)];
    for reason in &result.verdict.reasons {
        lines.extend(wrapped(&format!("NOT VALID: {reason}"), options));
    }
    for note in &result.verdict.notes {
        lines.extend(wrapped(&format!("note: {note}"), options));
    }
    lines.push(String::new());
    lines
}

/// `name  value`, with continuation lines indented.
fn fact(name: &str, value: &str, options: Options) -> Vec<String> {
    const INDENT: usize = 22;
    let lines = wrap(&format::unbroken(&plain(value)), options.width.saturating_sub(INDENT).max(30));
    let name = |index: usize| if index == 0 { name } else { "" };
    lines.iter().enumerate().map(|(index, line)| format!("{:<INDENT$}{line}", name(index))).collect()
}

fn facts(result: &FleetResult, options: Options) -> Vec<String> {
    let kinds =
        result.kinds.iter().map(|(kind, count)| format::counted(*count as u64, kind, &format!("{kind}s")));
    let kinds: Vec<String> = kinds.collect();
    let variant = if result.xds == "delta" { "delta xDS" } else { "state-of-the-world xDS" };
    let identity = match result.security.as_str() {
        "mutual-tls" => "certificates of istiod's CA",
        "token" => "tokens",
        _ => "plaintext, no identity",
    };
    let istiods = result.istiod.join(" and ");
    let mut lines =
        fact("fleet", &format!("{}: {variant}, {identity}, at {istiods}", kinds.join(", ")), options);
    if let Some(mesh) = &result.mesh {
        let objects =
            mesh.objects.iter().map(|(kind, count)| format!("{kind} {}", format::count(*count as u64)));
        let removed = match mesh.removed_s {
            Some(removed_s) => format!("removed in {}", format::duration(removed_s)),
            None => "kept".to_owned(),
        };
        let topology = mesh.topology.iter().map(|name| format!("topology {name}: ")).collect::<String>();
        let text = format!(
            "{topology}{}; written in {}, {removed} (run {})",
            objects.collect::<Vec<_>>().join(", "),
            format::duration(mesh.written_s),
            mesh.run_id
        );
        lines.extend(fact("mesh", &text, options));
    }
    for (name, times) in
        [("connected", &result.connect_us), ("first configuration", &result.first_configuration_us)]
    {
        if times.requests() > 0 {
            lines.extend(fact(name, &times_text(times), options));
        }
    }
    lines.extend(fleet_itself(result, options));
    lines
}

/// `p50 1.2 ms, p90 …, last …`, with the number of those that never arrived.
fn times_text(times: &HistogramSummary) -> String {
    let unit = TimeUnit::for_times([times.p50, times.p99, times.max].into_iter().flatten());
    let figures = [("p50", times.p50), ("p90", times.p90), ("p99", times.p99), ("last", times.max)];
    let shown = figures.into_iter().filter_map(|(name, time)| Some(format!("{name} {}", unit.time(time?))));
    let mut parts: Vec<String> = shown.collect();
    if times.censored > 0 {
        parts.push(format!("{NEVER} for {}", format::count(times.censored)));
    }
    parts.join(", ")
}

/// CPU, memory and lateness of the fleet itself, to rule it out as a cause.
fn fleet_itself(result: &FleetResult, options: Options) -> Vec<String> {
    let usage = &result.fleet;
    let mut parts = Vec::new();
    if result.duration_s > 0.0 {
        parts.push(format!(
            "{} in {}",
            format::cores(usage.cpu_s / result.duration_s),
            format::counted(usage.threads as u64, "thread", "threads")
        ));
    }
    let proxies = result.proxies.wanted.max(1) as f64;
    let settled = usage.memory_settled_bytes.unwrap_or(usage.memory_peak_bytes) as f64;
    parts.push(format!(
        "{} memory ({} per proxy)",
        format::size(usage.memory_peak_bytes as f64),
        format::size(settled / proxies)
    ));
    if usage.lag_us.count > 0 {
        let from = match (usage.clock.as_str(), usage.timestamp_error_p99_us) {
            ("kernel", Some(error_us)) => format!(
                "times of arrival are the kernel's, within {} at p99",
                format::time_or_above(Some(error_us), None)
            ),
            ("kernel", None) => "times of arrival are the kernel's".to_owned(),
            _ => "times of arrival are those of reading".to_owned(),
        };
        parts.push(format!(
            "read {} after receipt at p99; {from}",
            format::time_or_above(usage.lag_us.p99, None)
        ));
    }
    fact("the fleet itself", &parts.join(", "), options)
}

/// Responses received, by type.
fn pushes(result: &FleetResult, options: Options) -> Vec<String> {
    if result.pushes.is_empty() {
        return Vec::new();
    }
    let unit = SizeUnit::for_sizes(result.pushes.values().map(|pushes| pushes.bytes as f64));
    let header =
        ["Received", "responses", "resources", "removed", &format!("bytes, {}", unit.symbol()), "mostly for"];
    let row = |(kind, pushes): (&String, &FleetPushes)| {
        vec![
            kind.clone(),
            format::count(pushes.count),
            format::count(pushes.resources),
            format::count(pushes.removed),
            format::tick(pushes.bytes as f64 / unit.bytes()),
            triggers(pushes),
        ]
    };
    let mut lines = drawn_table(&header.map(str::to_owned), result.pushes.iter().map(row), options);
    let per_proxy = result.bytes_received as f64 / result.proxies.wanted.max(1) as f64;
    // What a gateway is configured with is mostly its routes.
    let routes: u64 = result.pushes.values().map(|pushes| pushes.routes).sum();
    let has_gateways = result.kinds.contains_key(ProxyKind::Gateway.name());
    let routes = if has_gateways { format!(" with {} routes", format::count(routes)) } else { String::new() };
    let counts = format!(
        "{} in all{routes}, {} per proxy; {} acknowledged, {} rejected.",
        format::size(result.bytes_received as f64),
        format::size(per_proxy),
        format::count(result.acknowledgements),
        format::count(result.rejections)
    );
    lines.extend(wrapped(&counts, options));
    lines
}

/// The most frequent triggers of a type: `connect 200, endpoint-added 40`.
fn triggers(pushes: &FleetPushes) -> String {
    const SHOWN: usize = 2;
    let mut triggers: Vec<(&String, &u64)> = pushes.by_trigger.iter().collect();
    triggers.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown =
        triggers.iter().take(SHOWN).map(|(trigger, count)| format!("{trigger} {}", format::count(**count)));
    plain(&shown.collect::<Vec<_>>().join(", "))
}

/// Sentences about missing proxies, failures, outages and protocol violations.
fn shortfalls(result: &FleetResult, options: Options) -> Vec<String> {
    let mut sentences = Vec::new();
    if !result.proxies.never_names.is_empty() {
        sentences
            .push(format!("Not converged: {}.", named(&result.proxies.never_names, result.proxies.never)));
    }
    for change in result.changes.iter() {
        if let Some(failure) = &change.failure {
            sentences.push(format!("{} at {} failed: {failure}", change.kind, format::duration(change.at)));
        }
    }
    let without_proxies = |change: &&FleetChange| change.expected == 0 && change.failure.is_none();
    for change in result.changes.iter().filter(without_proxies) {
        sentences.push(format!(
            "{} at {} concerns no proxy of this fleet.",
            change.kind,
            format::duration(change.at)
        ));
    }
    sentences.extend(result.cut_off.iter().filter(|outage| outage.proxies > 0).map(outage));
    for (kind, count) in &result.violations {
        let streams = format::counted(*count, "broken stream or violation", "broken streams or violations");
        sentences.push(format!("{streams} of the protocol: {kind}."));
    }
    sentences.iter().flat_map(|sentence| wrapped(sentence, options)).collect()
}

fn outage(outage: &FleetOutage) -> String {
    let recovered = match (outage.recovery_us.count, outage.recovery_us.censored) {
        (0, _) => "none of them recovered".to_owned(),
        (_, 0) => format!(
            "all were complete again after {} at the latest",
            format::time_or_above(outage.recovery_us.max, None)
        ),
        (count, _) => format!("{} of them were complete again", format::count(count)),
    };
    let why = why_lost(&outage.cause).map(|why| format!(": {why}")).unwrap_or_default();
    format!(
        "{} at {}: {} {} ({}){why}; {recovered}.",
        outage.cause,
        format::duration(outage.at),
        format::counted(outage.proxies, "proxy", "proxies"),
        if outage.cause == ChangeKind::LinkDown.name() { "were cut off" } else { "lost their connection" },
        named(&outage.names[..outage.names.len().min(SHOWN_NAMES)], outage.proxies)
    )
}

/// The first names, and how many more there are.
fn named(names: &[String], of: u64) -> String {
    let more = of.saturating_sub(names.len() as u64);
    let more = if more > 0 { format!(" and {} more", format::count(more)) } else { String::new() };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests;
