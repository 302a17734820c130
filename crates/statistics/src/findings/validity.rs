//! What may be trusted: saturation, objective, path, excluded trials, and what the run is too short for.

use super::run::Run;
use crate::objective::misses;
use crate::summary::distribution::is_saturated;
use crate::trials::{is_valid, reason_kind};
use experiment::Mode;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use experiment::schema::finding::figures;
use experiment::schema::{Cell, CellKey, Finding, FindingKind, FindingVerdict, TrialRecord, UnavailableMode};
use std::collections::{BTreeMap, HashMap};

/// Cells that did not keep up in some trials, with the rate that those completed.
pub(super) fn saturation(run: &Run<'_>) -> Vec<Finding> {
    let of_cell = |cell: &Cell| {
        let trials = run.trials.of(cell.key());
        // Where another reason comes first, such as another process that took the CPU, it may be why the target did not
        // keep up.
        let saturated: Vec<&TrialRecord> =
            trials.iter().copied().filter(|trial| is_saturated(trial)).collect();
        let completed = saturated.iter().filter_map(|trial| Some(trial.result.as_ref()?.rate.completed));
        let completed: Vec<f64> = completed.collect();
        let mean = completed.iter().sum::<f64>() / completed.len() as f64;
        let finding = Finding::of_cell(FindingKind::Saturation, cell);
        let finding =
            if completed.is_empty() { finding } else { finding.with_value(figures::COMPLETED, mean) };
        (!saturated.is_empty()).then_some(Finding {
            verdict: Some(FindingVerdict::Shown),
            n: Some(saturated.len()),
            of: Some(trials.len()),
            ..finding
        })
    };
    run.summary.cells.iter().filter_map(of_cell).collect()
}

/// Whether each cell met the objective.
pub(super) fn objective(run: &Run<'_>) -> Vec<Finding> {
    if run.experiment.objective.is_empty() {
        return Vec::new();
    }
    let of_cell = |cell: &Cell| {
        let is_met = misses(run.experiment, cell).is_empty();
        let finding = Finding::of_cell(FindingKind::Objective, cell);
        Finding {
            verdict: Some(FindingVerdict::Shown),
            ..finding.about(if is_met { "met" } else { "missed" })
        }
    };
    run.summary.cells.iter().map(of_cell).collect()
}

/// What the proxies' own counters prove, by mode.
pub(super) fn paths(run: &Run<'_>) -> Vec<Finding> {
    let of_mode = |mode: Mode| {
        let cells: Vec<&Cell> = run.measured(mode).collect();
        let first = cells.first().filter(|cell| !cell.path.proxies.is_empty())?;
        let trials = |cells: &mut dyn Iterator<Item = &&Cell>| cells.map(|cell| cell.valid).sum();
        let is_proven = cells.iter().all(|cell| cell.path.proven);
        let counted = if counts_connections(run, mode) { figures::CONNECTIONS } else { figures::REQUESTS };
        Some(Finding {
            mode: Some(mode),
            candidates: Some(first.path.proxies.len()),
            figure: Some(counted.to_owned()),
            verdict: Some(if is_proven { FindingVerdict::Shown } else { FindingVerdict::NotShown }),
            n: Some(trials(&mut cells.iter().filter(|cell| cell.path.proven))),
            of: Some(trials(&mut cells.iter())),
            ..Finding::new(FindingKind::Path)
        })
    };
    run.modes_with_proxies().into_iter().filter_map(of_mode).collect()
}

/// Whether the proxies of a mode carry connections without reading the requests in them.
fn counts_connections(run: &Run<'_>, mode: Mode) -> bool {
    let trials = run.trials.all().iter().filter(|trial| trial.mode == mode);
    trials.flat_map(|trial| &trial.path.proxies).any(|proxy| proxy.streams.is_some())
}

/// Modes that could not run here, those that lack the same after each other.
pub(super) fn unavailable_modes(run: &Run<'_>) -> Vec<Finding> {
    let mut modes: Vec<&UnavailableMode> = run.summary.host.refused_modes.iter().collect();
    let lacks = |mode: &UnavailableMode| (mode.reason.clone(), mode.hint.clone());
    let all = modes.clone();
    modes.sort_by_key(|mode| all.iter().position(|other| lacks(other) == lacks(mode)));
    let finding = |unavailable: &UnavailableMode| Finding {
        mode: Some(unavailable.mode),
        ..Finding::new(FindingKind::UnavailableMode).about(&unavailable.reason)
    };
    modes.into_iter().map(finding).collect()
}

/// A run that was cut short, and trials in no estimate with the kind of their first reason.
pub(super) fn excluded(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (planned, recorded) = (run.summary.trials_planned, run.summary.places_recorded());
    if recorded < planned {
        findings.push(Finding {
            n: Some(recorded),
            of: Some(planned),
            ..Finding::new(FindingKind::CutShort)
        });
    }
    let mut reasons: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in run.trials.all().iter().filter(|trial| !is_valid(trial)) {
        reasons.entry(reason_kind(trial)).or_default().push(trial);
    }
    for (reason, trials) in reasons {
        let counted = counted_by_cell(FindingKind::ExcludedTrials, run, trials.into_iter());
        findings.extend(counted.into_iter().map(|finding| finding.about(reason)));
    }
    findings
}

/// A finding per cell with the number of these trials in it, `n`, of all its trials.
pub(super) fn counted_by_cell<'a>(
    kind: FindingKind,
    run: &Run<'_>,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<Finding> {
    let mut cells: Vec<(CellKey<'_>, usize)> = Vec::new();
    let mut positions: HashMap<CellKey<'_>, usize> = HashMap::new();
    for trial in trials {
        let position = *positions.entry(trial.cell()).or_insert_with(|| {
            cells.push((trial.cell(), 0));
            cells.len() - 1
        });
        cells[position].1 += 1;
    }
    let finding = |(cell, count): (CellKey<'_>, usize)| Finding {
        mode: Some(cell.mode),
        n: Some(count),
        of: Some(run.trials.of(cell).len()),
        ..Finding::new(kind).at(cell.conditions)
    };
    cells.into_iter().map(finding).collect()
}

/// What the run is too short for.
pub(super) fn limits(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (figure, percentile) in [(figures::P99, 99.0), (figures::P99_9, 99.9)] {
        let fewest = run
            .summary
            .cells
            .iter()
            .filter(|cell| cell.valid > 0)
            .map(|cell| run.samples_beyond(cell.key(), percentile))
            .fold(f64::INFINITY, f64::min);
        if fewest < SAMPLES_BEYOND_A_PERCENTILE - 1e-6 {
            findings.push(Finding::new(FindingKind::FewSamples).with_value(figure, fewest.floor()));
        }
    }
    let singles = run.summary.cells.iter().filter(|cell| cell.valid == 1 && cell.mode != Mode::None);
    findings.extend(singles.map(|cell| Finding::of_cell(FindingKind::SingleTrial, cell)));
    findings
}

/// Agreement with each published figure.
pub(super) fn published(run: &Run<'_>) -> Vec<Finding> {
    let figures = run.summary.published.iter();
    figures
        .map(|figure| Finding {
            value: figure.ratio,
            estimate: figure.measured_estimate,
            n: figure.measured_estimate.map(|measured| measured.n),
            verdict: Some(match figure.agrees {
                Some(true) => FindingVerdict::Shown,
                Some(false) => FindingVerdict::NotShown,
                None => FindingVerdict::CannotTell,
            }),
            ..Finding::new(FindingKind::Published).about(&figure.what)
        })
        .collect()
}
