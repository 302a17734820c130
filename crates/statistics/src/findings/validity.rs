//! Sentences on what may be trusted: saturation, objective, path, what was left out, and what the run cannot say.

use super::{Run, words};
use crate::curve::is_valid;
use crate::objective::misses;
use crate::summary::reason_kind;
use experiment::Mode;
use experiment::schema::{Cell, RefusedMode, TrialRecord};
use std::collections::BTreeMap;

/// Cells that did not keep up, with what they completed.
pub(super) fn saturation(run: &Run<'_>) -> Vec<String> {
    // Where another reason comes first, such as another process that took the CPU, it may be why the target did not keep up.
    let is_saturated = |trial: &&TrialRecord| trial.verdict.saturated && reason_kind(trial) == "saturated";
    let saturated = |cell: &&Cell| {
        let trials = || run.trials.iter().filter(|trial| trial.mode == cell.mode && trial.load == cell.load);
        trials().filter(is_saturated).count() * 2 > trials().count()
    };
    run.summary
        .cells
        .iter()
        .filter(saturated)
        .map(|cell| {
            let completed: Vec<f64> = run
                .trials
                .iter()
                .filter(|trial| trial.mode == cell.mode && trial.load == cell.load)
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
            format!("{} is saturated: {what}.", words::sentence(&words::cell(cell)))
        })
        .collect()
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
        let Some(proxies) = cells.first().map(|cell| cell.path.proxies.len()).filter(|proxies| *proxies > 0)
        else {
            continue;
        };
        let (who, whose) = match proxies {
            1 => ("the proxy".to_owned(), "its"),
            2 => ("both proxies".to_owned(), "their"),
            more => (format!("all {more} proxies"), "their"),
        };
        if cells.iter().all(|cell| cell.path.proven) {
            let tls = match cells.iter().map(|cell| cell.path.mtls).min().flatten() {
                Some(true) => ", over mutual TLS",
                _ => "",
            };
            sentences.push(format!(
                "Path of {}: {who} saw every request{tls}, by {whose} own counters.",
                words::subject(mode)
            ));
        } else {
            sentences.push(format!("Path of {}: not proven in every trial.", words::subject(mode)));
        }
    }
    sentences
}

/// Modes that could not run here, those that lack the same together.
pub(super) fn refused_modes(run: &Run<'_>) -> Vec<String> {
    let mut lacks: Vec<(&RefusedMode, Vec<String>)> = Vec::new();
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
    let sentence = |(refused, modes): (&RefusedMode, Vec<String>)| {
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
    let (planned, recorded) = (run.summary.trials_planned, run.trials.len());
    if recorded < planned {
        sentences.push(format!("The run was cut short: {recorded} of {planned} trials were recorded."));
    }
    let mut reasons: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| !is_valid(trial)) {
        let place = format!("{}, {}", words::mode(trial.mode), experiment::plan::offered(&trial.load));
        *reasons.entry(reason_kind(trial)).or_default().entry(place).or_default() += 1;
    }
    let invalid: usize = reasons.values().flat_map(BTreeMap::values).sum();
    if invalid > 0 {
        let kinds: Vec<String> = reasons
            .iter()
            .map(|(kind, places)| {
                let places: Vec<String> =
                    places.iter().map(|(place, count)| format!("{count} of {place}")).collect();
                format!("{kind} ({})", words::list(&places))
            })
            .collect();
        let verb = if invalid == 1 { "is" } else { "are" };
        sentences.push(format!(
            "{invalid} of {recorded} trials {verb} left out of the estimates: {}.",
            kinds.join("; ")
        ));
    }
    sentences
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
            .map(|cell| run.samples_beyond(cell.mode, &cell.load, percentile))
            .fold(f64::INFINITY, f64::min);
        if fewest < super::SAMPLES_BEYOND_A_PERCENTILE - 1e-6 {
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
