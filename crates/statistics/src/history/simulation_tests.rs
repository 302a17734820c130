//! Error rate and power of verdicts by a history, over simulated histories: the change points, the bimodality and the prediction
//! together, as `compare --history` uses them.

use super::compare::{History, Request, compare_with_history};
use super::record::Recorded;
use noise::normal::normal;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::{
    ComparedFigure, Estimate, Factors, FigureVerdict, HistoryFigure, HistoryRun, InconclusiveReason,
    LoadPoint, Metric, Mode, OwnedCellKey,
};

const HISTORIES: u64 = 200;
/// Standard deviation between runs.
const SPREAD: f64 = 0.02;
const METRICS: [Metric; 4] = [
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP99Us,
    Metric::ProxiesCpuCoresPer1000Rps,
    Metric::ProxiesMemoryAnonymousBytes,
];

/// Runs whose figures are `level` of their number, in standard deviations.
fn runs(
    count: usize,
    metrics: &[Metric],
    random: &mut StdRng,
    level: impl Fn(usize) -> f64,
) -> Vec<HistoryRun> {
    let mut run = |number: usize| {
        let figure = |key: &Metric, random: &mut StdRng| HistoryFigure {
            key: *key,
            cell: OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load: LoadPoint::of_fleet() },
            estimate: Estimate::single(100.0 * (SPREAD * (level(number) + normal(random))).exp()),
        };
        HistoryRun {
            source: "run".to_owned(),
            seed: Some(number as u64),
            figures: metrics.iter().map(|key| figure(key, random)).collect(),
            ..HistoryRun::default()
        }
    };
    (0..count).map(&mut run).collect()
}

/// Figures of `judged` runs that follow a history, shifted by so many standard deviations.
fn judged(
    seed: u64,
    (history, judged): (usize, usize),
    metrics: &[Metric],
    shift: f64,
    level: impl Fn(usize) -> f64,
) -> Vec<ComparedFigure> {
    let mut random = StdRng::seed_from_u64(seed);
    let before = runs(history, metrics, &mut random, &level);
    let after = runs(judged, metrics, &mut random, |number| shift + level(history + number));
    let heads: Vec<Recorded> =
        after.into_iter().map(|run| Recorded { run, failures: Vec::new(), missing: Vec::new() }).collect();
    let history = History { file: "simulated", runs: &before, skipped_lines: &[] };
    compare_with_history(&history, &heads, &Request::default()).figures
}

fn is_called(figure: &ComparedFigure) -> bool {
    matches!(figure.verdict, FigureVerdict::Worse | FigureVerdict::Better)
}

/// Histories of 200 in which any figure is called worse or better.
fn called(
    counts: (usize, usize),
    metrics: &[Metric],
    shift: f64,
    level: impl Fn(usize) -> f64 + Copy,
) -> usize {
    (0..HISTORIES).filter(|seed| judged(*seed, counts, metrics, shift, level).iter().any(is_called)).count()
}

#[test]
fn nothing_is_called_where_nothing_changed() {
    for counts in [(6, 1), (10, 1), (10, 3), (40, 1)] {
        let alarms = called(counts, &METRICS, 0.0, |_| 0.0);
        assert!(alarms <= 10, "{alarms} of {HISTORIES} with {counts:?}");
    }
    // A step of the history, after which nothing changed.
    let alarms = called((30, 1), &METRICS, 0.0, |number| if number < 12 { -10.0 } else { 0.0 });
    assert!(alarms <= 10, "{alarms} of {HISTORIES} after a step");
}

/// A single run is found in about 60 of 100 at this error rate, whatever the method: even with a known spread it would be 80.
#[test]
fn shift_of_three_standard_deviations_is_found_in_three_runs() {
    let found = |counts| {
        let is_worse = |figures: &[ComparedFigure]| figures[0].verdict == FigureVerdict::Worse;
        (0..HISTORIES).filter(|seed| is_worse(&judged(*seed, counts, &METRICS[..1], 3.0, |_| 0.0))).count()
    };
    assert!(found((10, 3)) >= 180, "{} of {HISTORIES} by three runs", found((10, 3)));
    let by_one = found((10, 1));
    assert!((90..180).contains(&by_one), "{by_one} of {HISTORIES} by one run");
}

#[test]
fn shift_after_a_step_is_judged_by_the_new_level() {
    let found = (0..HISTORIES).filter(|seed| {
        let figures =
            judged(*seed, (24, 3), &METRICS[..1], 3.0, |number| if number < 12 { 20.0 } else { 0.0 });
        figures[0].verdict == FigureVerdict::Worse
    });
    let found = found.count();
    assert!(found >= 180, "{found} of {HISTORIES}");
}

#[test]
fn bimodal_histories_are_named_and_their_modes_are_no_change() {
    let level = |number: usize| if (number * 7) % 5 < 2 { 12.0 } else { 0.0 };
    let (mut named, mut alarms) = (0, 0);
    for seed in 0..HISTORIES {
        let figures = judged(seed, (30, 1), &METRICS[..1], 0.0, level);
        named += usize::from(figures[0].reason == Some(InconclusiveReason::Bimodal));
        alarms += usize::from(is_called(&figures[0]));
    }
    assert!(alarms <= 10 && named >= 160, "{named} named, {alarms} alarms");
}
