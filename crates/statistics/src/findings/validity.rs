//! Sentences on what may be trusted: saturation, objective, path, what was left out, and what the run cannot say.

use super::run::Run;
use super::words;
use crate::copies::grouped;
use crate::objective::misses;
use crate::summary::distribution::is_saturated;
use crate::trials::is_valid;
use crate::trials::reason_kind;
use experiment::Mode;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use experiment::schema::{Cell, HopProof, TrialRecord, UnavailableMode};
use std::collections::BTreeMap;

/// More places than these are told by mode alone: the report lists every trial.
const MOST_PLACES: usize = 6;

/// Of more hops than these a sentence says how many spoke what: the report lists them.
const MAX_HOPS: usize = 6;

/// Cells that did not keep up, with what they completed.
pub(super) fn saturation(run: &Run<'_>) -> Vec<String> {
    // Where another reason comes first, such as another process that took the CPU, it may be why the target did not keep up.
    let is_saturated = |trial: &&&TrialRecord| is_saturated(trial);
    let saturated = |cell: &&Cell| {
        let trials = run.trials.of(cell.key());
        trials.iter().filter(is_saturated).count() * 2 > trials.len()
    };
    run.summary
        .cells
        .iter()
        .filter(saturated)
        .map(|cell| {
            let completed: Vec<f64> = run
                .trials
                .of(cell.key())
                .iter()
                .filter(is_saturated)
                .filter_map(|trial| Some(trial.result.as_ref()?.rate.completed))
                .collect();
            let what = if completed.is_empty() {
                "its latencies would measure the queue, not the path".to_owned()
            } else {
                let mean = completed.iter().sum::<f64>() / completed.len() as f64;
                format!(
                    "{} were answered, and its latencies measure the queue, not the path",
                    words::rate(mean)
                )
            };
            format!("{} is saturated: {what}.{}", words::sentence(&words::cell(cell)), both_clocks(cell))
        })
        .collect()
}

/// What a clock that starts at the actual send makes of a saturated cell; empty where both read alike.
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

/// Where the objective was met.
pub(super) fn objective(run: &Run<'_>) -> Vec<String> {
    if run.experiment.objective.is_empty() {
        return Vec::new();
    }
    let missed: Vec<String> =
        run.summary.cells.iter().flat_map(|cell| misses(run.experiment, cell)).collect();
    if missed.is_empty() {
        return vec!["Every mode met the objective under every load.".into()];
    }
    let met: Vec<String> = run
        .summary
        .cells
        .iter()
        .filter(|cell| misses(run.experiment, cell).is_empty())
        .map(words::cell)
        .collect();
    let met = if met.is_empty() { "nowhere".to_owned() } else { format!("by {}", words::list(&met)) };
    vec![format!("The objective was met {met}; not met: {}.", missed.join("; "))]
}

/// What the proxies' own counters prove, by mode.
pub(super) fn paths(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for mode in run.modes_with_proxies() {
        let cells: Vec<&Cell> = run.measured(mode).collect();
        let Some(first) = cells.first().filter(|cell| !cell.path.proxies.is_empty()) else { continue };
        let (who, whose) = on_the_path(&first.path.proxies);
        if cells.iter().all(|cell| cell.path.proven) {
            let tls = match cells.iter().map(|cell| cell.path.mtls).min().flatten() {
                Some(true) => ", over mutual TLS",
                _ => "",
            };
            let verb =
                if carries_unread(run, mode) { "carried every connection" } else { "saw every request" };
            sentences.push(format!(
                "Path of {}: {who} {verb}{tls}, by {whose} own counters{}.",
                words::subject(mode),
                spoken(&cells)
            ));
        } else {
            sentences.push(format!("Path of {}: not proven in every trial.", words::subject(mode)));
        }
    }
    sentences
}

/// What was spoken on the hops of a mode's path, as the end of a sentence; nothing where older results do not say.
fn spoken(cells: &[&Cell]) -> String {
    let hops = HopProof::of_all(cells.iter().map(|cell| cell.path.hops.as_slice()));
    let Some(first) = hops.first().map(HopProof::words) else { return String::new() };
    if hops.iter().all(|hop| hop.words() == first) {
        return format!("; every hop spoke {first}");
    }
    if hops.len() > MAX_HOPS {
        let spoken = grouped(&hops, HopProof::words);
        let each = spoken.iter().map(|(words, hops)| format!("{words} on {} hops", hops.len()));
        return format!("; spoken was {}", words::list(&each.collect::<Vec<_>>()));
    }
    let each = hops.iter().map(|hop| format!("{} from {} to {}", hop.words(), hop.from, hop.to));
    format!("; spoken was {}", words::list(&each.collect::<Vec<_>>()))
}

/// Whether the proxies of a mode carry connections without reading the requests in them.
fn carries_unread(run: &Run<'_>, mode: Mode) -> bool {
    let trials = run.trials.all().iter().filter(|trial| trial.mode == mode);
    trials.flat_map(|trial| &trial.path.proxies).any(|proxy| proxy.streams.is_some())
}

/// The proxies of a path as the subject of a sentence, and whose counters speak. One that is passed twice is one proxy.
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
            _ => format!("{name}, on both sides,"),
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

/// Modes that could not run here, those that lack the same together.
pub(super) fn refused_modes(run: &Run<'_>) -> Vec<String> {
    let mut lacks: Vec<(&UnavailableMode, Vec<String>)> = Vec::new();
    for refused in &run.summary.host.refused_modes {
        let same = lacks
            .iter_mut()
            .find(|(first, _)| (&first.reason, &first.hint) == (&refused.reason, &refused.hint));
        let name = refused.mode.name().to_owned();
        match same {
            Some((_, modes)) => modes.push(name),
            None => lacks.push((refused, vec![name])),
        }
    }
    let sentence = |(refused, modes): (&UnavailableMode, Vec<String>)| {
        let hint = refused.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!(
            "Not measured, and nothing stands in for it: {}: {}{hint}.",
            words::list(&modes),
            refused.reason
        )
    };
    lacks.into_iter().map(sentence).collect()
}

/// Trials that did not enter, and why.
pub(super) fn left_out(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let (planned, recorded) = (run.summary.trials_planned, run.trials.all().len());
    let recorded_places = run.summary.places_recorded();
    if recorded_places < planned {
        sentences
            .push(format!("The run was cut short: {recorded_places} of {planned} trials were recorded."));
    }
    let mut reasons: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in run.trials.all().iter().filter(|trial| !is_valid(trial)) {
        reasons.entry(reason_kind(trial)).or_default().push(trial);
    }
    let invalid: usize = reasons.values().map(Vec::len).sum();
    if invalid > 0 {
        let kinds: Vec<String> = reasons
            .iter()
            .map(|(kind, trials)| format!("{kind} ({})", words::list(&places(trials))))
            .collect();
        let verb = if invalid == 1 { "is" } else { "are" };
        sentences.push(format!(
            "{invalid} of {recorded} trials {verb} left out of the estimates: {}.",
            kinds.join("; ")
        ));
    }
    sentences
}

/// How many of these trials were where; by mode alone where the loads would make a long list.
pub(super) fn places(trials: &[&TrialRecord]) -> Vec<String> {
    let counted = |name: &dyn Fn(&TrialRecord) -> String| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for trial in trials {
            *counts.entry(name(trial)).or_default() += 1;
        }
        counts.into_iter().map(|(place, count)| format!("{count} of {place}")).collect::<Vec<_>>()
    };
    let exact =
        counted(&|trial| format!("{}, {}", words::mode(trial.mode), words::described(trial.conditions())));
    if exact.len() <= MOST_PLACES { exact } else { counted(&|trial| words::mode(trial.mode).to_owned()) }
}

/// What the run is too short for.
pub(super) fn limits(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for (name, percentile) in [("99th", 99.0), ("99.9th", 99.9)] {
        let fewest = run
            .summary
            .cells
            .iter()
            .filter(|cell| cell.valid > 0)
            .map(|cell| run.samples_beyond(cell.key(), percentile))
            .fold(f64::INFINITY, f64::min);
        if fewest < SAMPLES_BEYOND_A_PERCENTILE - 1e-6 {
            let requests = if fewest.floor() == 1.0 { "request" } else { "requests" };
            sentences.push(format!(
                "The {name} percentile rests on as few as {:.0} {requests} in a trial: too few to say more of it than the \
                 table shows.",
                fewest.floor()
            ));
        }
    }
    let single = |cell: &Cell| cell.valid == 1 && cell.mode != Mode::None;
    let singles: Vec<String> =
        run.summary.cells.iter().filter(|cell| single(cell)).map(words::cell).collect();
    if !singles.is_empty() {
        sentences.push(format!(
            "One valid trial alone has no interval and shows no difference: {}.",
            words::list(&singles)
        ));
    }
    sentences
}
