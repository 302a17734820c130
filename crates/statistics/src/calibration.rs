//! What a calibration says: differences whose truth is known, and the smallest that a run can show.

use crate::interval::{self, ALLOWANCE, variance};
use crate::student;
use experiment::Mode;
use experiment::plan::Arm;
use experiment::schema::{
    CalibratedDifference, CalibratedFigure, CalibratedSpread, ComponentUsage, Figure, ModeCalibration,
    Resolution, Role, TrialRecord,
};
use std::collections::BTreeMap;

const FIGURES: [CalibratedFigure; 3] =
    [CalibratedFigure::P50Us, CalibratedFigure::P99Us, CalibratedFigure::CpuCores];
/// Repeats of one comparison of a mode with itself; more repeats make several.
const REPEATS_PER_COMPARISON: usize = 5;
/// Runs whose resolution is stated: repeats, and window in seconds.
const STATED_RUNS: [(usize, f64); 3] = [(3, 10.0), (5, 10.0), (10, 10.0)];
/// Maximum of [`repeats_for`].
const MAX_REPEATS: usize = 1000;
/// A difference of the stated size is shown in this share of runs.
const POWER: f64 = 0.8;

/// Values of one figure by repeat.
type ByRepeat = BTreeMap<usize, f64>;

/// What the trials of a calibration say of each mode, in this order of modes.
#[must_use]
pub fn of_modes(trials: &[TrialRecord], modes: &[Mode], rate: f64, window_s: f64) -> Vec<ModeCalibration> {
    modes.iter().map(|mode| of_mode(trials, *mode, rate, window_s)).collect()
}

fn of_mode(trials: &[TrialRecord], mode: Mode, rate: f64, window_s: f64) -> ModeCalibration {
    let values = |arm: Arm, figure: CalibratedFigure| -> ByRepeat {
        let own = trials.iter().filter(|trial| trial.mode == mode);
        let own = own.filter(|trial| Arm::from_factors(&trial.factors) == Some(arm));
        own.filter_map(|trial| Some((trial.repeat, value(trial, figure)?))).collect()
    };
    let added = |arm: Arm, figure| {
        let truth = match figure {
            CalibratedFigure::CpuCores => arm.effect().as_secs_f64() * rate,
            CalibratedFigure::P50Us | CalibratedFigure::P99Us => arm.effect().as_secs_f64() * 1e6,
        };
        let found = differences(&values(arm, figure), &values(Arm::Reference, figure));
        CalibratedDifference { figure, truth, estimate: interval::mean(&found, 0.0) }
    };
    let mut calibration = ModeCalibration {
        mode,
        repeats: 0,
        same: Vec::new(),
        known: Vec::new(),
        spreads: Vec::new(),
        resolution: Vec::new(),
    };
    for figure in FIGURES {
        let (first, second) = (values(Arm::First, figure), values(Arm::Second, figure));
        let same = differences(&first, &second);
        calibration.repeats = calibration.repeats.max(same.len());
        calibration.same.extend(against_itself(&same, figure));
        calibration.known.extend(Arm::SLOWER.map(|arm| added(arm, figure)));
        let reference = values(Arm::Reference, figure);
        let within: Vec<Vec<f64>> =
            Arm::SLOWER.iter().map(|arm| differences(&values(*arm, figure), &reference)).collect();
        let Some(spread) = spread(figure, &first, &same, &within) else { continue };
        calibration.spreads.push(spread);
        calibration.resolution.extend(STATED_RUNS.map(|(repeats, stated_s)| Resolution {
            figure,
            repeats,
            window_s: stated_s,
            difference: resolvable(&spread, window_s, repeats, stated_s),
        }));
    }
    calibration
}

/// Absent where the trial's figure may not be used.
fn value(trial: &TrialRecord, figure: CalibratedFigure) -> Option<f64> {
    let usable = |figure: Figure| trial.verdict.is_usable(figure);
    let result = trial.result.as_ref()?;
    match figure {
        CalibratedFigure::P50Us => result.response_time_us.p50.filter(|_| usable(Figure::P50)),
        CalibratedFigure::P99Us => result.response_time_us.p99.filter(|_| usable(Figure::P99)),
        CalibratedFigure::CpuCores if !usable(Figure::Cpu) => None,
        CalibratedFigure::CpuCores => {
            let carries = |role| matches!(role, Role::App | Role::Proxy);
            let components = trial.components.iter().filter(|component| carries(component.role));
            Some(components.map(ComponentUsage::cpu_cores).sum())
        }
    }
}

fn differences(with: &ByRepeat, without: &ByRepeat) -> Vec<f64> {
    with.iter().filter_map(|(repeat, with)| Some(with - without.get(repeat)?)).collect()
}

/// Each comparison's interval holds for all figures of a mode together.
fn against_itself(differences: &[f64], figure: CalibratedFigure) -> Vec<CalibratedDifference> {
    let comparisons = (differences.len() / REPEATS_PER_COMPARISON).max(1);
    let each = differences.len().div_ceil(comparisons).max(1);
    let compared = |some: &[f64]| CalibratedDifference {
        figure,
        truth: 0.0,
        estimate: interval::mean_of_greatest(some, 0.0, FIGURES.len()),
    };
    differences.chunks(each).map(compared).collect()
}

/// `same`: differences between two deployments; `within`: differences between trials of one deployment, by arm.
fn spread(
    figure: CalibratedFigure,
    first: &ByRepeat,
    same: &[f64],
    within: &[Vec<f64>],
) -> Option<CalibratedSpread> {
    let between_all = variance(same)?;
    let within: Vec<f64> = within.iter().filter_map(|arm| variance(arm)).collect();
    let within = if within.is_empty() { 0.0 } else { within.iter().sum::<f64>() / within.len() as f64 };
    // The variance of few differences is itself uncertain, and never less than that within a deployment.
    let all = between_all.max(within);
    Some(CalibratedSpread {
        figure,
        mean: first.values().sum::<f64>() / first.len() as f64,
        deviation: all.sqrt(),
        between_deployments: (all - within).sqrt(),
    })
}

/// The difference between two modes that a run of so many repeats with this window shows in four of five cases.
#[must_use]
pub fn resolvable(spread: &CalibratedSpread, calibrated_s: f64, repeats: usize, window_s: f64) -> f64 {
    let between = spread.between_deployments.powi(2);
    let within = (spread.deviation.powi(2) - between).max(0.0);
    let variance = between + within * calibrated_s / window_s;
    let freedom = repeats.saturating_sub(1).max(1) as f64;
    let widths = student::quantile(freedom, 0.975) * ALLOWANCE + student::quantile(freedom, POWER);
    widths * (variance / repeats.max(1) as f64).sqrt()
}

/// The fewest repeats with which a run shows this difference; absent where 1000 are not enough.
#[must_use]
pub fn repeats_for(
    spread: &CalibratedSpread,
    calibrated_s: f64,
    difference: f64,
    window_s: f64,
) -> Option<usize> {
    let shows = |repeats: usize| resolvable(spread, calibrated_s, repeats, window_s) <= difference;
    if !shows(MAX_REPEATS) {
        return None;
    }
    // More repeats always resolve more.
    let candidates: Vec<usize> = (2..=MAX_REPEATS).collect();
    candidates.get(candidates.partition_point(|repeats| !shows(*repeats))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(deviation: f64, between_deployments: f64) -> CalibratedSpread {
        CalibratedSpread { figure: CalibratedFigure::P50Us, mean: 100.0, deviation, between_deployments }
    }

    #[test]
    fn longer_windows_reduce_what_varies_within_a_deployment_alone() {
        let within = spread(10.0, 0.0);
        let ratio = resolvable(&within, 1.0, 5, 1.0) / resolvable(&within, 1.0, 5, 4.0);
        assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
        let between = spread(10.0, 10.0);
        assert_eq!(resolvable(&between, 1.0, 5, 1.0), resolvable(&between, 1.0, 5, 100.0));
        // Student's t of four degrees of freedom: 2.776 and 0.941.
        assert!(
            (resolvable(&between, 1.0, 5, 1.0) - (2.776 * 1.1 + 0.941) * 10.0 / 5f64.sqrt()).abs() < 0.01
        );
    }

    #[test]
    fn the_repeats_for_a_difference_are_the_fewest_that_show_it() {
        let spread = spread(10.0, 4.0);
        let repeats = repeats_for(&spread, 1.0, 5.0, 10.0).unwrap();
        assert!(resolvable(&spread, 1.0, repeats, 10.0) <= 5.0);
        assert!(resolvable(&spread, 1.0, repeats - 1, 10.0) > 5.0, "{repeats}");
        assert_eq!(repeats_for(&spread, 1.0, 1e-6, 10.0), None);
    }

    #[test]
    fn a_mode_against_itself_is_compared_once_per_five_repeats() {
        assert_eq!(against_itself(&[1.0; 4], CalibratedFigure::P50Us).len(), 1);
        assert_eq!(against_itself(&[1.0, 2.0, 1.0, 0.0, 1.0].repeat(4), CalibratedFigure::P50Us).len(), 4);
        assert!(against_itself(&[], CalibratedFigure::P50Us).is_empty());
    }
}
