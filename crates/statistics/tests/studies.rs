//! Whole studies of which the truth is known, through `summarize`: intervals cover it, nothing is shown where there is nothing, an
//! effect is found, and a cell is what happened in it. `MESHMETER_STUDIES=2000` draws that many of each.

#[path = "studies/simulator.rs"]
mod simulator;

use experiment::schema::{DriverObjective, Estimate, FindingVerdict, Host, Summary};
use experiment::{Experiment, TimeFigure};
use simulator::Design;
use statistics::{objective_met, summarize};

const FIGURES: [TimeFigure; 3] = [TimeFigure::P50, TimeFigure::P90, TimeFigure::P99];

/// Studies of each design.
fn studies() -> u64 {
    std::env::var("MESHMETER_STUDIES").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

fn summaries(design: &Design) -> impl Iterator<Item = (Experiment, Summary)> {
    (0..studies()).map(|seed| {
        let (experiment, trials) = design.study(seed);
        let summary = summarize(&experiment, seed, trials.len(), &Host::default(), &trials);
        (experiment, summary)
    })
}

/// Of statements, how many are right.
#[derive(Clone, Copy, Default)]
struct Share {
    right: f64,
    all: f64,
}

impl Share {
    fn add(&mut self, is_right: bool) {
        self.right += f64::from(u8::from(is_right));
        self.all += 1.0;
    }

    fn of(self) -> f64 {
        self.right / self.all
    }

    /// What chance takes off at most, once in a thousand: twenty designs are looked at.
    fn slack(self, expected: f64) -> f64 {
        3.1 * (expected * (1.0 - expected) / self.all).sqrt()
    }
}

fn covers(estimate: &Estimate, truth: f64) -> Option<bool> {
    Some(estimate.low? <= truth && truth <= estimate.high?)
}

/// By figure: coverage of cells and of differences between modes.
fn coverage(design: &Design) -> [[Share; 3]; 2] {
    let mut shares = [[Share::default(); 3]; 2];
    for (experiment, summary) in summaries(design) {
        let truth = |mode, rate: Option<f64>| {
            let position = experiment.modes.iter().position(|known| *known == mode);
            design.truth(position.expect("a mode of the experiment"), rate.expect("an open loop"))
        };
        for cell in &summary.cells {
            let Some(times) = &cell.response_time_us else { continue };
            for (index, figure) in FIGURES.into_iter().enumerate() {
                let truth = truth(cell.mode, cell.load.rate)[index];
                if let Some(covered) = times.figure(figure).and_then(|estimate| covers(&estimate, truth)) {
                    shares[0][index].add(covered);
                }
            }
        }
        for comparison in &summary.comparisons {
            let (with, without) =
                (truth(comparison.mode, comparison.load.rate), truth(comparison.than, comparison.load.rate));
            for (index, figure) in FIGURES.into_iter().enumerate() {
                let difference = comparison.response_time_us.judged(figure);
                let truth = with[index] - without[index];
                if let Some(covered) = difference.and_then(|(estimate, _)| covers(&estimate, truth)) {
                    shares[1][index].add(covered);
                }
            }
        }
    }
    shares
}

#[test]
fn intervals_contain_the_truth_in_93_of_100() {
    let base = Design::default();
    let designs = [
        base.clone(),
        Design { between: 0.2, more_by_mode: 0.0, ..base.clone() },
        Design { repeat: 0.1, drift: 0.3, ..base.clone() },
        Design { stalls: 0.3, between: 0.1, late: 0.1, ..base.clone() },
        Design { missing: 0.2, censored: 0.02, ..base.clone() },
        Design { modes: "none, sidecar", rates: "1000", ..base.clone() },
        Design {
            modes: "none, sidecar, ambient, ambient-waypoint",
            rates: "1000",
            more_by_mode: 0.3,
            ..base
        },
    ];
    for design in designs {
        for repeats in [3, 5, 10] {
            let design = Design { repeats, ..design.clone() };
            for (what, shares) in ["cells", "differences"].into_iter().zip(coverage(&design)) {
                for (figure, share) in FIGURES.into_iter().zip(shares) {
                    // Cells of a run share its repeats: their errors are not independent.
                    let slack = share.slack(0.93) * 2.0;
                    let found = share.of();
                    assert!(
                        found >= 0.93 - slack,
                        "{what}, {}: {found:.3} of {} in {design:?}",
                        figure.name(),
                        share.all
                    );
                }
            }
        }
    }
}

/// Everything that a run says is shown.
fn shown(summary: &Summary) -> usize {
    let comparisons = summary.comparisons.iter().flat_map(|comparison| {
        let times = FIGURES.map(|figure| comparison.response_time_us.judged(figure));
        times.into_iter().chain([comparison.judged_throughput(), comparison.judged_proxy_cpu()]).flatten()
    });
    let effects = summary.factor_effects.iter().map(|effect| effect.judged());
    let verdicts = comparisons.map(|(_, verdict)| verdict).chain(effects);
    verdicts.filter(|verdict| *verdict == FindingVerdict::Shown).count()
}

#[test]
fn without_any_effect_at_most_5_of_100_runs_show_something() {
    let base = Design { effect: 0.0, more_by_mode: 0.0, ..Design::default() };
    for design in [
        base.clone(),
        Design { repeats: 3, ..base.clone() },
        Design { repeats: 10, between: 0.2, ..base.clone() },
        Design { more_by_mode: 1.0, ..base.clone() },
        Design {
            modes: "none, sidecar, ambient, ambient-waypoint",
            rates: "500, 1000, 1500",
            repeats: 3,
            ..base
        },
    ] {
        let mut wrong = Share::default();
        summaries(&design).for_each(|(_, summary)| wrong.add(shown(&summary) > 0));
        let found = wrong.of();
        assert!(found <= 0.05 + wrong.slack(0.05), "{found:.3} of {} in {design:?}", wrong.all);
    }
}

#[test]
fn an_added_fifth_is_found() {
    for (repeats, expected) in [(5, 0.9), (3, 0.85)] {
        let design = Design { repeats, more_by_mode: 0.0, ..Design::default() };
        let mut found = Share::default();
        for (_, summary) in summaries(&design) {
            for comparison in &summary.comparisons {
                let verdict = comparison.response_time_us.judged(TimeFigure::P50).map(|(_, verdict)| verdict);
                found.add(verdict == Some(FindingVerdict::Shown));
            }
        }
        let share = found.of();
        assert!(share >= expected - found.slack(expected), "{repeats} repeats: {share:.3} of {}", found.all);
    }
}

#[test]
fn a_saturated_cell_never_meets_its_objective() {
    let design = Design { saturated: 0.2, ..Design::default() };
    for (experiment, summary) in summaries(&design) {
        for cell in &summary.cells {
            let expected =
                if cell.saturated_trials > 0 { DriverObjective::Missed } else { DriverObjective::Met };
            assert_eq!(cell.objective, Some(expected), "{} of {}", cell.saturated_trials, cell.trials);
        }
        let saturated = summary.cells.iter().any(|cell| cell.saturated_trials > 0);
        assert_eq!(objective_met(&experiment, &summary).is_good(), !saturated);
    }
}

#[test]
fn a_figure_that_is_late_or_censored_takes_no_other_with_it() {
    let design = Design { late: 0.5, ..Design::default() };
    let (_, summary) = summaries(&design).next().expect("a study");
    for cell in &summary.cells {
        let times = cell.response_time_us.expect("medians are usable");
        assert_eq!(times.p50.map(|estimate| estimate.n), Some(5));
        assert!(times.p99.is_none_or(|p99| p99.n <= 5));
    }
    let tails = summary.cells.iter().filter_map(|cell| cell.response_time_us?.p99);
    assert!(tails.map(|estimate| estimate.n).sum::<usize>() < 30, "late trials have no p99");
    let (_, summary) = summaries(&Design { censored: 1.0, ..Design::default() }).next().expect("a study");
    for cell in &summary.cells {
        let times = cell.response_time_us.expect("medians are usable");
        assert!(times.p90.is_some() && times.p99.is_none() && cell.censored == 300);
        assert_eq!(cell.objective, Some(DriverObjective::Missed));
    }
}
