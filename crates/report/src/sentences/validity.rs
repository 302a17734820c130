//! Which figures can be trusted: saturation, objective, path, and figures that the run is too short for.

use super::{Context, place};
use results::{Cell, Finding, FindingVerdict, HopProof, Metric};
use statistics::copies::grouped;
use statistics::objective::misses;
use statistics::words;

/// For more hops, a sentence gives the number of hops per protocol: the report lists each hop.
const MAX_HOPS: usize = 6;

/// A cell that did not keep up, with the rate that it completed.
pub(super) fn saturation(run: &Context<'_>, finding: &Finding) -> String {
    let (saturated, all) = (finding.n.unwrap_or(0), finding.of.unwrap_or(0));
    let trials = if all == 1 { "trial" } else { "trials" };
    let what = match finding.value {
        None => "its latencies would measure the queue, not the path".to_owned(),
        Some(rate) => {
            format!("{} were completed, and the latencies measure the queue, not the path", words::rate(rate))
        }
    };
    let place = finding.cell_key().map(words::place).unwrap_or_default();
    let clocks = run.cell(finding).map(both_clocks).unwrap_or_default();
    format!("{} is saturated in {saturated} of {all} {trials}: {what}.{clocks}", words::sentence(&place))
}

/// How a clock that starts at the actual send would show a saturated cell; empty if both clocks show the
/// same.
fn both_clocks(cell: &Cell) -> String {
    let Some(distribution) = cell.distribution.as_ref().filter(|distribution| distribution.clocks_differ())
    else {
        return String::new();
    };
    let (Some(median), Some(slowest_us)) = (distribution.at(50.0), distribution.slowest_answered_us()) else {
        return String::new();
    };
    let Some(service_us) = median.service_time_us else { return String::new() };
    let unanswered = 1.0 - distribution.answered as f64 / distribution.due as f64;
    let corrected = match median.response_time_us {
        Some(response_us) => format!("is {}", words::latency_value(response_us)),
        None => format!("is above {}", words::latency_value(slowest_us)),
    };
    let without = if unanswered > 0.0 {
        format!(", and {} of the due requests had no response", words::percent(unanswered))
    } else {
        String::new()
    };
    format!(
        " Uncorrected, from the actual send, the median reads {} and hides the queue; corrected, from the intended \
         start, it {corrected}{without}.",
        words::latency_value(service_us)
    )
}

/// In which cells the objective was met.
pub(super) fn objective(run: &Context<'_>, group: &[&Finding]) -> String {
    let is = |finding: &&&Finding, subject: &str| finding.subject.as_deref() == Some(subject);
    let met: Vec<String> = group
        .iter()
        .filter(|finding| is(finding, "met"))
        .filter_map(|finding| finding.cell_key().map(words::place))
        .collect();
    if met.len() == group.len() {
        return "Every mode met the objective under every load in this run.".to_owned();
    }
    let met = if met.is_empty() { "nowhere".to_owned() } else { format!("by {}", words::list(&met)) };
    let misses_of = |subject: &str| -> Vec<String> {
        let cells =
            group.iter().filter(|finding| is(finding, subject)).filter_map(|finding| run.cell(finding));
        cells.flat_map(|cell| misses(run.experiment, cell)).collect()
    };
    let clause = |lead: &str, misses: Vec<String>| match misses.is_empty() {
        true => String::new(),
        false => format!("; {lead}: {}", misses.join("; ")),
    };
    format!(
        "The objective was met {met} in this run{}{}.",
        clause("not met", misses_of("missed")),
        clause("not shown", misses_of("not-shown"))
    )
}

/// Drivers that did not meet the objective, judged by their slowest.
pub(super) fn driver_objective(finding: &Finding) -> String {
    let (n, of) = (finding.n.unwrap_or(0), finding.of.unwrap_or(0));
    let outcome = match finding.subject.as_deref() {
        Some("not-shown") if n == 1 => "is not shown to meet the objective",
        Some("not-shown") => "are not shown to meet the objective",
        _ => "missed the objective",
    };
    let figure = finding.metric().map_or("", |metric| metric.spoiled_by().name());
    let time = finding.estimate.as_ref().map(|time| format!(", {figure} {}", words::latency(time)));
    format!(
        "{}: {n} of {of} drivers {outcome}, the slowest {}{}.",
        place(finding),
        finding.driver.as_deref().unwrap_or_default(),
        time.unwrap_or_default()
    )
}

/// Percentiles that pauses of the machine can cause.
pub(super) fn machine_pauses(run: &Context<'_>, group: &[&Finding]) -> String {
    let shares = || group.iter().filter_map(|finding| finding.share);
    let (least, greatest) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    let share = match (words::percent(least), words::percent(greatest)) {
        (least, greatest) if least == greatest => greatest,
        (least, greatest) => format!("{} to {greatest}", least.trim_end_matches([' ', '%', '\u{a0}'])),
    };
    let name = percentile_name(group[0]);
    let measured = run.summary.cells.iter().filter(|cell| cell.valid > 0).count();
    let cells: Vec<String> =
        group.iter().filter_map(|finding| finding.cell_key().map(words::place)).collect();
    let of =
        if cells.len() == measured && measured > 1 { "every cell".to_owned() } else { words::list(&cells) };
    format!(
        "Pauses of this machine can make the {name} percentile of {of} in this run: as long as what it has above the median, \
         they reach about {share} of the requests."
    )
}

fn percentile_name(finding: &Finding) -> &'static str {
    if finding.is_of(Metric::ResponseTimeP99Us) { "99th" } else { "99.9th" }
}

/// What the proxies' own counters prove about a mode.
pub(super) fn path(run: &Context<'_>, finding: &Finding) -> String {
    let Some(mode) = finding.mode else { return String::new() };
    let subject = run.subject(mode);
    if finding.verdict != Some(FindingVerdict::Shown) {
        return format!("Path of {subject}: not proven in every trial.");
    }
    let cells: Vec<&Cell> =
        run.summary.cells.iter().filter(|cell| cell.mode == mode && cell.valid > 0).collect();
    let Some(first) = cells.first() else { return String::new() };
    let (who, whose) = on_the_path(&first.path.proxies);
    let tls = match cells.iter().map(|cell| cell.path.mtls).min().flatten() {
        Some(true) => ", over mutual TLS",
        _ => "",
    };
    let verb =
        if finding.is_of(Metric::Connections) { "carried every connection" } else { "saw every request" };
    format!("Path of {subject}: {who} {verb}{tls}, by {whose} own counters{}.", spoken(&cells))
}

/// Protocols on the hops of a mode's path, as the end of a sentence; empty if older results lack them.
fn spoken(cells: &[&Cell]) -> String {
    let hops = HopProof::of_all(cells.iter().map(|cell| cell.path.hops.as_slice()));
    let Some(first) = hops.first().map(HopProof::describe) else { return String::new() };
    if hops.iter().all(|hop| hop.describe() == first) {
        return format!("; every hop spoke {first}");
    }
    if hops.len() > MAX_HOPS {
        let spoken = grouped(&hops, HopProof::describe);
        let each = spoken.iter().map(|(words, hops)| format!("{words} on {} hops", hops.len()));
        return format!("; spoken was {}", words::list(&each.collect::<Vec<_>>()));
    }
    let each = hops.iter().map(|hop| format!("{} from {} to {}", hop.describe(), hop.from, hop.to));
    format!("; spoken was {}", words::list(&each.collect::<Vec<_>>()))
}

/// The proxies of a path as the subject of a sentence, with the possessive for their counters. A proxy that
/// is passed twice counts once.
fn on_the_path(proxies: &[String]) -> (String, &'static str) {
    let mut names: Vec<&String> = Vec::new();
    for name in proxies {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() < proxies.len() && names.len() <= MAX_HOPS {
        let passed = |name: &&String| match proxies.iter().filter(|other| other == name).count() {
            1 => (*name).clone(),
            _ => format!("{name} (on both sides)"),
        };
        let subject = words::list(&names.iter().map(passed).collect::<Vec<_>>());
        return (subject, if names.len() == 1 { "its" } else { "their" });
    }
    match names.len() {
        1 => ("the proxy".to_owned(), "its"),
        2 => ("both proxies".to_owned(), "their"),
        more => (format!("all {more} proxies"), "their"),
    }
}

/// A percentile that has few requests beyond it.
pub(super) fn few_samples(finding: &Finding) -> String {
    let name = percentile_name(finding);
    let fewest = finding.value.unwrap_or(0.0);
    let requests = match (finding.subject.as_deref(), fewest == 1.0) {
        (Some("episodes"), true) => "separate event",
        (Some("episodes"), false) => "separate events",
        (_, true) => "request",
        (_, false) => "requests",
    };
    format!(
        "The {name} percentile rests on as few as {fewest:.0} {requests} in a trial: too few to say more of it than the \
         table shows."
    )
}

/// Cells with a single valid trial.
pub(super) fn single_trials(group: &[&Finding]) -> String {
    let cells = group.iter().filter_map(|finding| finding.cell_key().map(words::place));
    format!(
        "One valid trial alone has no interval and shows no difference: {}.",
        words::list(&cells.collect::<Vec<_>>())
    )
}

/// Agreement with published figures.
pub(super) fn published(group: &[&Finding]) -> String {
    let count = |verdict, is_measured: bool| {
        let of_verdict = group.iter().filter(|finding| finding.verdict == Some(verdict));
        of_verdict
            .filter(|finding| (finding.estimate.is_some() || finding.value.is_some()) == is_measured)
            .count()
    };
    let parts = [
        (count(FindingVerdict::Shown, true), ("agrees", "agree")),
        (count(FindingVerdict::NotShown, true), ("differs", "differ")),
        (count(FindingVerdict::CannotTell, true), ("is too uncertain to tell", "are too uncertain to tell")),
        (count(FindingVerdict::CannotTell, false), ("was not measured here", "were not measured here")),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, (one, many))| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    let figures = if group.len() == 1 { "figure" } else { "figures" };
    format!("Of {} published {figures}, by the intervals of this run: {}.", group.len(), words::list(&parts))
}
