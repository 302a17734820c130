//! Which figures can be trusted: saturation, objective, path, and figures that the run is too short for.

use super::Context;
use super::said::Said;
use crate::format;
use results::finding::{
    About, DriversObjective, Empty, Event, Judged, MachinePauses, ObjectiveOutcome, OfCell, PathCheck,
    PublishedCheck, Value,
};
use results::{Cell, DriverObjective, FindingVerdict, HopProof, Metric};
use statistics::copies::{MAX_UNFOLDED, grouped};
use statistics::objective::misses;
use statistics::words;

/// A cell that did not keep up, with the rate that it completed.
pub(super) fn saturation(run: &Context<'_>, saturated: &OfCell<Judged<Option<Value>>>) -> String {
    let OfCell { place, trials, content: Judged { figure: completed, .. } } = saturated;
    let noun = if trials.of == 1 { "trial" } else { "trials" };
    let completed = completed.map(|rate| format!(": {} were completed", words::rate(rate.value)));
    let clocks = run.cell(place.key()).map(both_clocks).unwrap_or_default();
    format!(
        "{} is saturated in {} of {} {noun}{}; its latencies measure the queue, not the path.{clocks}",
        super::place(place),
        trials.n,
        trials.of,
        completed.unwrap_or_default()
    )
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
        " Uncorrected, from the actual send, the median is {} and hides the queue; corrected, from the intended \
         start, it {corrected}{without}.",
        words::latency_value(service_us)
    )
}

/// In which cells the objective was met.
pub(super) fn objective(run: &Context<'_>, group: &[&OfCell<ObjectiveOutcome>]) -> Said {
    let of = |outcome| group.iter().filter(move |one| one.content.outcome == outcome);
    let met: Vec<String> = of(DriverObjective::Met).map(|one| words::brief_place(one.place.key())).collect();
    if met.len() == group.len() {
        return Said::from("Every mode met the objective under every load.".to_owned());
    }
    let clause = |lead: &str, outcome: DriverObjective| {
        let cells = of(outcome).filter_map(|one| run.cell(one.place.key()));
        let misses: Vec<String> = cells.flat_map(|cell| misses(run.experiment, cell)).collect();
        if misses.is_empty() { String::new() } else { format!("{lead}: {}. ", misses.join("; ")) }
    };
    let counted = |(outcome, name)| match of(outcome).count() {
        0 => None,
        count => Some(format!("{name} {count}")),
    };
    let others = [(DriverObjective::Missed, "missed by"), (DriverObjective::NotShown, "not shown for")];
    let others: Vec<String> = others.into_iter().filter_map(counted).collect();
    let detail = format!(
        "{}{}{}",
        clause("Missed", DriverObjective::Missed),
        clause("Not shown", DriverObjective::NotShown),
        if met.is_empty() { String::new() } else { format!("Met by {}.", words::list(&met)) }
    );
    let line = format!("Objective: met by {} of {} cells, {}.", met.len(), group.len(), others.join(", "));
    Said::from(line).and(detail.trim_end())
}

/// Drivers that did not meet the objective, judged by their slowest.
pub(super) fn driver_objective(drivers: &OfCell<DriversObjective>) -> Said {
    let OfCell { place, trials: count, content } = drivers;
    let DriversObjective { decisive, driver, .. } = content;
    let outcome = match content.outcome {
        DriverObjective::NotShown if count.n == 1 => "is not shown to meet the objective",
        DriverObjective::NotShown => "are not shown to meet the objective",
        _ => "missed the objective",
    };
    let figure = decisive.figure.spoiled_by().name();
    let time = decisive.estimate.as_ref().map(|time| format!(", {figure} {}", words::latency(time)));
    let (time, place) = (time.unwrap_or_default(), super::place(place));
    Said::with_names(&[driver], |names| {
        format!("{place}: {} of {} drivers {outcome}; the slowest {}{time}.", count.n, count.of, names[0])
    })
}

/// Percentiles that pauses of the machine can cause.
pub(super) fn machine_pauses(run: &Context<'_>, group: &[&OfCell<MachinePauses>]) -> Said {
    let shares = || group.iter().map(|pauses| pauses.content.share);
    let (least, greatest) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    let share = match (words::percent(least), words::percent(greatest)) {
        (least, greatest) if least == greatest => greatest,
        (least, greatest) => format!("{} to {greatest}", least.trim_end_matches([' ', '%', '\u{a0}'])),
    };
    let name = percentile_name(group[0].content.measured.figure);
    let measured = run.summary.cells.iter().filter(|cell| cell.valid > 0).count();
    let cells: Vec<String> = group.iter().map(|pauses| words::brief_place(pauses.place.key())).collect();
    let of = match cells.as_slice() {
        cells if cells.len() == measured && measured > 1 => "every cell".to_owned(),
        [only] => only.clone(),
        cells => format!("{} cells", cells.len()),
    };
    let said = Said::from(format!("Pauses of this machine can cause {name} of {of}."))
        .and(&format!("Pauses as long as its excess over the median affect about {share} of the requests."));
    if cells.len() > 1 { said.and(&format!("Cells: {}.", words::list(&cells))) } else { said }
}

fn percentile_name(figure: Metric) -> &'static str {
    if figure == Metric::ResponseTimeP99Us { "p99" } else { "p99.9" }
}

/// Proof of a mode's path by the proxies' own counters: `Path of sidecar: every proxy carried its connections over mTLS; 11 hops
/// HTTP/1.1, 3 opaque TCP.`
pub(super) fn path(run: &Context<'_>, path: &PathCheck) -> Said {
    let subject = words::mode(path.mode);
    if path.verdict != FindingVerdict::Shown {
        return Said::from(format!("Path of {subject}: not proven in every trial."));
    }
    let cells: Vec<&Cell> =
        run.summary.cells.iter().filter(|cell| cell.mode == path.mode && cell.valid > 0).collect();
    let Some(first) = cells.first() else { return Said::default() };
    let what = if path.figure == Metric::Connections { "connections" } else { "requests" };
    let tls = match cells.iter().map(|cell| cell.path.mtls).min().flatten() {
        // Calls from and to the other pods are plaintext, or TLS of their own.
        Some(true) if run.has_outsiders(path.mode) => ", over mTLS between pods of the mesh",
        Some(true) => " over mTLS",
        _ => "",
    };
    let mut names = first.path.proxies.clone();
    names.sort_unstable();
    names.dedup();
    let proxies = if names.len() == 1 { "the proxy" } else { "every proxy" };
    let line = format!("Path of {subject}: {proxies} carried its {what}{tls}{}.", hops(&cells));
    let counters =
        if names.len() > MAX_UNFOLDED { format!("{} proxies", names.len()) } else { words::list(&names) };
    Said::from(line).and(&format!("By the counters of {counters}."))
}

/// Number of hops of a mode's path by protocol, as the end of a sentence; empty if older results lack them.
fn hops(cells: &[&Cell]) -> String {
    let hops = HopProof::of_all(cells.iter().map(|cell| cell.path.hops.as_slice()));
    let of_protocol = grouped(&hops, HopProof::describe).into_iter().enumerate();
    let counted = |(index, (protocol, hops)): (usize, (String, Vec<&HopProof>))| match index {
        0 => format!("{} {protocol}", format::counted(hops.len() as u64, "hop", "hops")),
        _ => format!("{} {protocol}", hops.len()),
    };
    let counted: Vec<String> = of_protocol.map(counted).collect();
    if counted.is_empty() { String::new() } else { format!("; {}", counted.join(", ")) }
}

/// A percentile that has few requests beyond it.
pub(super) fn few_samples(few: &About<Event, Value>) -> String {
    let name = percentile_name(few.figure.figure);
    let fewest = few.figure.value;
    let events = match (few.subject, fewest == 1.0) {
        (Event::Episodes, true) => "separate event",
        (Event::Episodes, false) => "separate events",
        (Event::Requests, true) => "request",
        (Event::Requests, false) => "requests",
    };
    format!("{name} rests on as few as {fewest:.0} {events} in a trial, too few for a finding.")
}

/// Cells with a single valid trial.
pub(super) fn single_trials(group: &[&OfCell<Empty>]) -> Said {
    let cells: Vec<String> = group.iter().map(|one| words::brief_place(one.place.key())).collect();
    let count = format::counted(cells.len() as u64, "cell has", "cells have");
    Said::from(format!("{count} a single valid trial, which has no interval and cannot show a difference."))
        .and(&format!("{}.", words::sentence(&words::list(&cells))))
}

/// Agreement with published figures.
pub(super) fn published(group: &[&PublishedCheck]) -> String {
    let count = |verdict, is_measured: bool| {
        let has_figure = |one: &&&PublishedCheck| one.estimate.is_some() || one.value.is_some();
        group.iter().filter(|one| one.verdict == verdict && has_figure(one) == is_measured).count()
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
    format!("Of {} published {figures}: {}.", group.len(), words::list(&parts))
}
