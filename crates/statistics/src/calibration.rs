//! Calibration answers "How small a difference can I measure on this machine?"
//!
//! Its results are differences whose true value is known, and the smallest difference that a run can show.

use crate::interval::{self, ALLOWANCE, variance};
use experiment::plan::Arm;
use noise::student;
use results::{
    CalibratedDifference, CalibratedFigure, CalibratedSpread, ComponentUsage, Figure, HistogramSummary, Mode,
    ModeCalibration, Resolution, Role, TrialRecord,
};
use std::collections::BTreeMap;

const FIGURES: [CalibratedFigure; 3] =
    [CalibratedFigure::P50Us, CalibratedFigure::P99Us, CalibratedFigure::CpuCores];
/// Repeats per comparison of a mode with itself; a calibration with more repeats makes several comparisons.
const REPEATS_PER_COMPARISON: usize = 5;
/// Runs whose resolution is reported: repeats, and window in seconds.
const STATED_RUNS: [(usize, f64); 3] = [(3, 10.0), (5, 10.0), (10, 10.0)];
/// Maximum of [`repeats_for`].
const MAX_REPEATS: usize = 1000;
/// Ten of them lie beyond the percentile: fewer are the luck of a trial.
const MIN_P99_REQUESTS: u64 = 1000;
/// Fraction of runs that show a difference of the reported size.
const POWER: f64 = 0.8;

/// Values of one figure by repeat.
type ByRepeat = BTreeMap<usize, f64>;

/// Calibration of each mode, in the order of `modes`.
#[must_use]
pub fn of_modes(trials: &[TrialRecord], modes: &[Mode], rate: f64, window_s: f64) -> Vec<ModeCalibration> {
    modes.iter().map(|mode| of_mode(trials, *mode, rate, window_s)).collect()
}

fn of_mode(trials: &[TrialRecord], mode: Mode, rate: f64, window_s: f64) -> ModeCalibration {
    let trials = ModeTrials(trials.iter().filter(|trial| trial.mode == mode).collect());
    let mut calibration = ModeCalibration {
        mode,
        repeats: 0,
        same: Vec::new(),
        known: [server_effects(&trials), cpu_effects(&trials, rate)].concat(),
        spreads: Vec::new(),
        resolution: Vec::new(),
    };
    for figure in FIGURES {
        let (first, second) = (trials.values(Arm::First, figure), trials.values(Arm::Second, figure));
        let same = differences(&first, &second);
        calibration.repeats = calibration.repeats.max(same.len());
        calibration.same.extend(against_itself(&same, figure));
        let Some(spread) = spread(figure, &first, &same, trials.sampling_variance(figure)) else { continue };
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

/// The trials of one mode.
struct ModeTrials<'a>(Vec<&'a TrialRecord>);

impl<'a> ModeTrials<'a> {
    fn of_arm(&self, arm: Arm) -> impl Iterator<Item = &'a TrialRecord> + '_ {
        self.0.iter().copied().filter(move |trial| Arm::from_factors(&trial.factors) == Some(arm))
    }

    fn values(&self, arm: Arm, figure: CalibratedFigure) -> ByRepeat {
        self.by_repeat(arm, |trial| value(trial, figure))
    }

    fn by_repeat(&self, arm: Arm, figure: impl Fn(&TrialRecord) -> Option<f64>) -> ByRepeat {
        self.of_arm(arm).filter_map(|trial| Some((trial.repeat, figure(trial)?))).collect()
    }

    /// Response times per server in each trial whose median is usable; the first server is the reference.
    fn medians_by_server(&self) -> impl Iterator<Item = Vec<&'a HistogramSummary>> + '_ {
        let usable = |trial: &&TrialRecord| trial.verdict.is_usable(Figure::P50);
        self.of_arm(Arm::SlowerServer).filter(usable).filter_map(|trial| {
            let result = trial.result.as_ref()?;
            Some(result.per_url.iter().map(|url| &url.response_time_us).collect())
        })
    }

    /// Variance of the difference between two trials like [`Arm::First`] that the number of their requests explains: a longer
    /// window reduces this part. Known for the median alone, from differences within a trial, where nothing else varies.
    fn sampling_variance(&self, figure: CalibratedFigure) -> f64 {
        let requests = mean(self.of_arm(Arm::First).filter_map(requests_of));
        let of_server = mean(self.medians_by_server().flatten().map(|times| times.count as f64));
        let (CalibratedFigure::P50Us, Some(requests), Some(of_server)) = (figure, requests, of_server) else {
            return 0.0;
        };
        let effects = (1..Arm::server_effects().count()).filter_map(|server| variance(&self.added(server)));
        mean(effects).map_or(0.0, |variance| variance * of_server / requests.max(1.0))
    }

    /// What a server adds to the reference's median, trial by trial, microseconds.
    fn added(&self, server: usize) -> Vec<f64> {
        let median = |times: &[&HistogramSummary], server: usize| times.get(server)?.p50;
        self.medians_by_server()
            .filter_map(|times| Some(median(&times, server)? - median(&times, 0)?))
            .collect()
    }
}

fn requests_of(trial: &TrialRecord) -> Option<f64> {
    Some(trial.result.as_ref()?.response_time_us.count as f64)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// Slower servers against the reference beside them, request by request within a trial. What varies between trials is in
/// neither: placement on CPUs and workers, and drift.
fn server_effects(trials: &ModeTrials<'_>) -> Vec<CalibratedDifference> {
    let effects = Arm::server_effects().enumerate().skip(1);
    effects
        .map(|(server, effect)| CalibratedDifference {
            figure: CalibratedFigure::P50Us,
            role: None,
            truth: effect.as_secs_f64() * 1e6,
            estimate: interval::mean(&trials.added(server), 0.0),
        })
        .collect()
}

/// CPU of a service, and of proxies, that compute for known times per request, against the same without it.
fn cpu_effects(trials: &ModeTrials<'_>, rate: f64) -> Vec<CalibratedDifference> {
    let servers = Arm::server_cpu_times().count() as f64;
    let server_s = Arm::server_cpu_times().map(|time| time.as_secs_f64()).sum::<f64>() / servers;
    let proxy_s = Arm::SlowerProxies.proxy_cpu_time().as_secs_f64();
    let proxies = trials.of_arm(Arm::SlowerProxies).map(|trial| of_role(trial, Role::Proxy).count()).max();
    let added = |arm, role, truth| {
        let with = trials.of_arm(arm).filter_map(|trial| Some((trial.repeat, cpu_cores(trial, role)?)));
        let without = trials.by_repeat(Arm::First, |trial| cpu_cores(trial, role));
        let found: Vec<f64> = with.filter_map(|(repeat, with)| Some(with - without.get(&repeat)?)).collect();
        CalibratedDifference {
            figure: CalibratedFigure::CpuCores,
            role: Some(role),
            truth,
            estimate: interval::mean(&found, 0.0),
        }
    };
    let mut effects = vec![added(Arm::SlowerServer, Role::App, server_s * rate)];
    effects.extend(
        proxies.map(|proxies| added(Arm::SlowerProxies, Role::Proxy, proxies as f64 * proxy_s * rate)),
    );
    effects
}

fn of_role(trial: &TrialRecord, role: Role) -> impl Iterator<Item = &ComponentUsage> {
    trial.components.iter().filter(move |component| component.role == role)
}

/// Absent if the trial's CPU may not be used.
fn cpu_cores(trial: &TrialRecord, role: Role) -> Option<f64> {
    let usable = trial.result.is_some() && trial.verdict.is_usable(Figure::Cpu);
    usable.then(|| of_role(trial, role).map(ComponentUsage::cpu_cores).sum())
}

/// `None` if the trial's figure is not usable.
fn value(trial: &TrialRecord, figure: CalibratedFigure) -> Option<f64> {
    let usable = |figure: Figure| trial.verdict.is_usable(figure);
    let times = &trial.result.as_ref()?.response_time_us;
    match figure {
        CalibratedFigure::P50Us => times.p50.filter(|_| usable(Figure::P50)),
        CalibratedFigure::P99Us => {
            times.p99.filter(|_| usable(Figure::P99) && times.count >= MIN_P99_REQUESTS)
        }
        CalibratedFigure::CpuCores => Some(cpu_cores(trial, Role::App)? + cpu_cores(trial, Role::Proxy)?),
    }
}

fn differences(with: &ByRepeat, without: &ByRepeat) -> Vec<f64> {
    with.iter().filter_map(|(repeat, with)| Some(with - without.get(repeat)?)).collect()
}

/// Compares a mode with itself. The intervals hold simultaneously for all figures of the mode.
fn against_itself(differences: &[f64], figure: CalibratedFigure) -> Vec<CalibratedDifference> {
    let comparisons = (differences.len() / REPEATS_PER_COMPARISON).max(1);
    let each = differences.len().div_ceil(comparisons).max(1);
    let compared = |some: &[f64]| CalibratedDifference {
        figure,
        role: None,
        truth: 0.0,
        estimate: interval::mean_of_greatest(some, 0.0, FIGURES.len()),
    };
    differences.chunks(each).map(compared).collect()
}

/// `same`: differences between two deployments; `sampling`: the part of their variance that the number of requests
/// explains.
fn spread(
    figure: CalibratedFigure,
    first: &ByRepeat,
    same: &[f64],
    sampling: f64,
) -> Option<CalibratedSpread> {
    // The variance of few differences is itself uncertain, and never less than what sampling explains.
    let all = variance(same)?.max(sampling);
    Some(CalibratedSpread {
        figure,
        mean: first.values().sum::<f64>() / first.len() as f64,
        deviation: all.sqrt(),
        between_deployments: (all - sampling).sqrt(),
    })
}

/// The difference between two modes that a run with this many repeats and this window shows with a power of
/// 80 %.
#[must_use]
pub fn resolvable(spread: &CalibratedSpread, calibrated_s: f64, repeats: usize, window_s: f64) -> f64 {
    let variance = variance_between_trials(spread, calibrated_s, window_s);
    let freedom = repeats.saturating_sub(1).max(1) as f64;
    let widths = student::quantile(freedom, 0.975) * ALLOWANCE + student::quantile(freedom, POWER);
    widths * (variance / repeats.max(1) as f64).sqrt()
}

/// Variance between trials of this window, of which only what varies within a deployment depends on the window.
pub(crate) fn variance_between_trials(spread: &CalibratedSpread, calibrated_s: f64, window_s: f64) -> f64 {
    let between = spread.between_deployments.powi(2);
    let within = (spread.deviation.powi(2) - between).max(0.0);
    between + within * calibrated_s / window_s
}

/// Fewest repeats with which a run shows this difference; `None` if 1000 are not enough.
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
    use noise::normal::normal;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    fn spread(deviation: f64, between_deployments: f64) -> CalibratedSpread {
        CalibratedSpread { figure: CalibratedFigure::P50Us, mean: 100.0, deviation, between_deployments }
    }

    #[test]
    fn longer_windows_only_reduce_variation_within_a_deployment() {
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
    fn difference_of_the_resolution_is_shown_in_four_of_five_runs() {
        const DEVIATION: f64 = 10.0;
        let random = &mut StdRng::seed_from_u64(35);
        for repeats in [3, 5, 10, 20] {
            let resolution = resolvable(&spread(DEVIATION, DEVIATION), 1.0, repeats, 1.0);
            // Either trial has its part of the spread.
            let noise = |random: &mut StdRng| normal(random) * DEVIATION / 2_f64.sqrt();
            let run = |random: &mut StdRng| {
                let pair = |_| (1000.0 + resolution + noise(random), 1000.0 + noise(random));
                let pairs: Vec<(f64, f64)> = (0..repeats).map(pair).collect();
                interval::paired_difference(&pairs, 1.0).and_then(|estimate| estimate.low) > Some(0.0)
            };
            let shown = (0..2000).filter(|_| run(random)).count();
            assert!((1450..=1750).contains(&shown), "{repeats} repeats: {shown} of 2000");
        }
    }

    #[test]
    fn repeats_for_difference_are_fewest_that_show_it() {
        let spread = spread(10.0, 4.0);
        let repeats = repeats_for(&spread, 1.0, 5.0, 10.0).unwrap();
        assert!(resolvable(&spread, 1.0, repeats, 10.0) <= 5.0);
        assert!(resolvable(&spread, 1.0, repeats - 1, 10.0) > 5.0, "{repeats}");
        assert_eq!(repeats_for(&spread, 1.0, 1e-6, 10.0), None);
    }

    #[test]
    fn mode_is_compared_with_itself_once_per_five_repeats() {
        assert_eq!(against_itself(&[1.0; 4], CalibratedFigure::P50Us).len(), 1);
        assert_eq!(against_itself(&[1.0, 2.0, 1.0, 0.0, 1.0].repeat(4), CalibratedFigure::P50Us).len(), 4);
        assert!(against_itself(&[], CalibratedFigure::P50Us).is_empty());
    }
}
