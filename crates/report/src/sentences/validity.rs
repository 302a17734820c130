//! Which figures can be trusted: saturation, objective, path, and figures that the run is too short for.

use super::Context;
use results::finding::{
    About, DriversObjective, Empty, Event, Judged, MachinePauses, ObjectiveOutcome, OfCell, PathCheck,
    PublishedCheck, Value,
};
use results::{Cell, DriverObjective, FindingVerdict, HopProof, Metric};
use statistics::copies::grouped;
use statistics::objective::misses;
use statistics::words;

/// For more hops, a sentence gives the number of hops per protocol: the report lists each hop.
const MAX_HOPS: usize = 6;

/// A cell that did not keep up, with the rate that it completed.
pub(super) fn saturation(run: &Context<'_>, saturated: &OfCell<Judged<Option<Value>>>) -> String {
    let OfCell { place, trials, content: Judged { figure: completed, .. } } = saturated;
    let noun = if trials.of == 1 { "trial" } else { "trials" };
    let what = match completed {
        None => "its latencies would measure the queue, not the path".to_owned(),
        Some(rate) => {
            let rate = words::rate(rate.value);
            format!("{rate} were completed, and the latencies measure the queue, not the path")
        }
    };
    let clocks = run.cell(place.key()).map(both_clocks).unwrap_or_default();
    let place = words::sentence(&words::place(place.key()));
    format!("{place} is saturated in {} of {} {noun}: {what}.{clocks}", trials.n, trials.of)
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
pub(super) fn objective(run: &Context<'_>, group: &[&OfCell<ObjectiveOutcome>]) -> String {
    let of = |outcome| group.iter().filter(move |one| one.content.outcome == outcome);
    let met: Vec<String> = of(DriverObjective::Met).map(|one| words::place(one.place.key())).collect();
    if met.len() == group.len() {
        return "Every mode met the objective under every load in this run.".to_owned();
    }
    let met = if met.is_empty() { "nowhere".to_owned() } else { format!("by {}", words::list(&met)) };
    let clause = |lead: &str, outcome: DriverObjective| {
        let cells = of(outcome).filter_map(|one| run.cell(one.place.key()));
        let misses: Vec<String> = cells.flat_map(|cell| misses(run.experiment, cell)).collect();
        if misses.is_empty() { String::new() } else { format!("; {lead}: {}", misses.join("; ")) }
    };
    format!(
        "The objective was met {met} in this run{}{}.",
        clause("not met", DriverObjective::Missed),
        clause("not shown", DriverObjective::NotShown)
    )
}

/// Drivers that did not meet the objective, judged by their slowest.
pub(super) fn driver_objective(drivers: &OfCell<DriversObjective>) -> String {
    let OfCell { place, trials: count, content } = drivers;
    let DriversObjective { decisive, driver, .. } = content;
    let outcome = match content.outcome {
        DriverObjective::NotShown if count.n == 1 => "is not shown to meet the objective",
        DriverObjective::NotShown => "are not shown to meet the objective",
        _ => "missed the objective",
    };
    let figure = decisive.figure.spoiled_by().name();
    let time = decisive.estimate.as_ref().map(|time| format!(", {figure} {}", words::latency(time)));
    format!(
        "{}: {} of {} drivers {outcome}, the slowest {driver}{}.",
        super::place(place),
        count.n,
        count.of,
        time.unwrap_or_default()
    )
}

/// Percentiles that pauses of the machine can cause.
pub(super) fn machine_pauses(run: &Context<'_>, group: &[&OfCell<MachinePauses>]) -> String {
    let shares = || group.iter().map(|pauses| pauses.content.share);
    let (least, greatest) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    let share = match (words::percent(least), words::percent(greatest)) {
        (least, greatest) if least == greatest => greatest,
        (least, greatest) => format!("{} to {greatest}", least.trim_end_matches([' ', '%', '\u{a0}'])),
    };
    let name = percentile_name(group[0].content.measured.figure);
    let measured = run.summary.cells.iter().filter(|cell| cell.valid > 0).count();
    let cells: Vec<String> = group.iter().map(|pauses| words::place(pauses.place.key())).collect();
    let of =
        if cells.len() == measured && measured > 1 { "every cell".to_owned() } else { words::list(&cells) };
    format!(
        "Pauses of this machine can make the {name} percentile of {of} in this run: as long as what it has above the median, \
         they reach about {share} of the requests."
    )
}

fn percentile_name(figure: Metric) -> &'static str {
    if figure == Metric::ResponseTimeP99Us { "99th" } else { "99.9th" }
}

/// What the proxies' own counters prove about a mode.
pub(super) fn path(run: &Context<'_>, path: &PathCheck) -> String {
    let subject = run.subject(path.mode);
    if path.verdict != FindingVerdict::Shown {
        return format!("Path of {subject}: not proven in every trial.");
    }
    let cells: Vec<&Cell> =
        run.summary.cells.iter().filter(|cell| cell.mode == path.mode && cell.valid > 0).collect();
    let Some(first) = cells.first() else { return String::new() };
    let (who, whose) = on_the_path(&first.path.proxies);
    let tls = match cells.iter().map(|cell| cell.path.mtls).min().flatten() {
        Some(true) => ", over mutual TLS",
        _ => "",
    };
    let verb =
        if path.figure == Metric::Connections { "carried every connection" } else { "saw every request" };
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
pub(super) fn few_samples(few: &About<Event, Value>) -> String {
    let name = percentile_name(few.figure.figure);
    let fewest = few.figure.value;
    let events = match (few.subject, fewest == 1.0) {
        (Event::Episodes, true) => "separate event",
        (Event::Episodes, false) => "separate events",
        (Event::Requests, true) => "request",
        (Event::Requests, false) => "requests",
    };
    format!(
        "The {name} percentile rests on as few as {fewest:.0} {events} in a trial: too few to say more of it than the \
         table shows."
    )
}

/// Cells with a single valid trial.
pub(super) fn single_trials(group: &[&OfCell<Empty>]) -> String {
    let cells: Vec<String> = group.iter().map(|one| words::place(one.place.key())).collect();
    format!("One valid trial alone has no interval and shows no difference: {}.", words::list(&cells))
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
    format!("Of {} published {figures}, by the intervals of this run: {}.", group.len(), words::list(&parts))
}
