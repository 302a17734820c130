//! Marks for figures that do not cover all trials of their cell, or that have few events: which figure, and
//! why.

use crate::conditions::ConditionLabels;
use crate::format;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use results::{AddedLatency, Cell, Figure, Figures, SpoiledTrials, Summary};

/// Mark of a cell's figure, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Number of trials that the figure covers.
    pub trials: usize,
    /// Shown next to the figure: `of 3 trials`, `unusable: steal`, `4 events`.
    pub short: String,
    /// As a sentence: `Unusable in 2 of 5 trials: schedule-lag.`
    pub reason: String,
    /// Range of the values that are excluded from estimates, in the figure's unit; only if there is no
    /// estimate.
    pub spoiled_values: Option<(f64, f64)>,
}

/// The mark of a cell's figure; `None` if it covers every trial and has enough events. `n`: trials of its
/// estimate.
#[must_use]
pub fn mark(cell: &Cell, figure: Figure, n: usize) -> Option<Mark> {
    let spoiled = cell.spoiled.iter().find(|spoiled| spoiled.figure == figure);
    let events = few_events(cell, figure);
    let of_trials = |n: usize| format!("of {}", format::counted(n as u64, "trial", "trials"));
    match (spoiled, events) {
        (Some(spoiled), _) => Some(Mark {
            trials: n,
            short: if n > 0 { of_trials(n) } else { format!("unusable: {}", kinds(spoiled)) },
            reason: spoiled_in(spoiled, cell),
            spoiled_values: spoiled.least.zip(spoiled.greatest).filter(|_| n == 0),
        }),
        (None, Some(events)) => Some(Mark {
            trials: n,
            short: format::counted(events, "event", "events"),
            reason: format!(
                "Rests on {} in a trial: fewer than {SAMPLES_BEYOND_A_PERCENTILE} say little of the next run.",
                format::counted(events, "separate event", "separate events")
            ),
            spoiled_values: None,
        }),
        // Not every trial measured it.
        (None, None) => (n > 0 && n < cell.places()).then(|| Mark {
            trials: n,
            short: of_trials(n),
            reason: format!("Of {n} of {} trials.", cell.places()),
            spoiled_values: None,
        }),
    }
}

impl Mark {
    /// True if the mark adds something to the number of valid trials.
    #[must_use]
    pub fn is_notable(&self, valid: usize) -> bool {
        self.trials != valid || !self.short.starts_with("of ")
    }
}

/// Number of events of a percentile, if they are too few.
fn few_events(cell: &Cell, figure: Figure) -> Option<u64> {
    let events = cell.events_beyond.get(figure.name()).copied();
    events.filter(|events| (*events as f64) < SAMPLES_BEYOND_A_PERCENTILE)
}

/// `Unusable in 2 of 5 trials: schedule-lag.`
fn spoiled_in(spoiled: &SpoiledTrials, cell: &Cell) -> String {
    format!("Unusable in {} of {} trials: {}.", spoiled.trials, cell.places(), reasons(spoiled))
}

fn kinds(spoiled: &SpoiledTrials) -> String {
    spoiled.reasons.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn reasons(spoiled: &SpoiledTrials) -> String {
    let reason = |(reason, trials): (&String, &usize)| match *trials == spoiled.trials {
        true => reason.clone(),
        false => format!("{reason} in {trials}"),
    };
    spoiled.reasons.iter().map(reason).collect::<Vec<_>>().join(", ")
}

/// All unusable figures of a cell: `p99, p99.9 in 2 trials: schedule-lag; throughput in 1 trial: saturated`.
#[must_use]
pub(crate) fn spoiled(cell: &Cell) -> String {
    let texts = cell.spoiled.chunk_by(is_alike).map(|alike| {
        let figures: Vec<Figure> = alike.iter().map(|spoiled| spoiled.figure).collect();
        let trials = format::counted(alike[0].trials as u64, "trial", "trials");
        format!("{} in {trials}: {}", named(&figures), reasons(&alike[0]))
    });
    texts.collect::<Vec<_>>().join("; ")
}

fn is_alike(one: &SpoiledTrials, next: &SpoiledTrials) -> bool {
    (one.trials, &one.reasons) == (next.trials, &next.reasons)
}

/// Names of figures in order, shortened: `all figures`, `all response times, throughput`, `mean, p99 and
/// beyond`.
pub(crate) fn named(figures: &[Figure]) -> String {
    if figures.len() == Figure::ALL.len() {
        return "all figures".to_owned();
    }
    let percentiles: Vec<Figure> =
        figures.iter().copied().filter(|figure| figure.quantile().is_some()).collect();
    let first = percentiles.first().copied().unwrap_or(Figure::Max);
    let is_beyond =
        percentiles.len() > 1 && percentiles.iter().copied().eq(Figures::times_from(first).iter());
    let are_all_times = is_beyond && first == Figure::P50 && figures.contains(&Figure::Mean);
    let name = |figure: &Figure| match figure {
        Figure::Mean if are_all_times => Some("all response times".to_owned()),
        _ if figure.quantile().is_none() || !is_beyond => Some(figure.name().to_owned()),
        _ => (*figure == first && !are_all_times).then(|| format!("{} and beyond", figure.name())),
    };
    figures.iter().filter_map(name).collect::<Vec<_>>().join(", ")
}

/// Explains the marks of a table. First one line per cell with unusable figures: `sidecar at 1000/s: p99 and
/// beyond in 2 trials: schedule-lag`. Then the cells whose p99 has few events.
#[must_use]
pub fn notes(summary: &Summary) -> Vec<String> {
    let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
    let place = |cell: &Cell| format!("{} at {}", cell.mode, labels.label(cell.conditions()));
    let measured = || summary.cells.iter().filter(|cell| cell.valid > 0);
    // Excluded trials are listed as such.
    let is_partly = |cell: &&Cell| {
        let without_median = cell.places() - cell.valid.min(cell.places());
        cell.spoiled.iter().any(|spoiled| spoiled.trials != without_median)
    };
    let with_spoiled = measured().filter(is_partly);
    let spoiled = with_spoiled.map(|cell| format!("{}: {}", place(cell), spoiled(cell)));
    let few: Vec<String> = measured()
        .filter_map(|cell| Some(format!("{} ({})", place(cell), few_events(cell, Figure::P99)?)))
        .collect();
    let few = (!few.is_empty())
        .then(|| format!("Fewer than ten separate events at p99 and beyond: {}", few.join("; ")));
    spoiled.chain(few).chain(not_shown(summary)).collect()
}

/// Explains differences that are not shown although their own intervals exclude zero; `None` if there are none.
fn not_shown(summary: &Summary) -> Option<String> {
    let added =
        |added: AddedLatency| Figure::TIMES.into_iter().filter_map(move |figure| added.difference(figure));
    let of_modes = summary.comparisons.iter().flat_map(|one| {
        let others = [one.throughput, one.proxy_cpu_per_request];
        let of_streams = one.streams.into_iter().flat_map(|one| [one.first_event_us, one.event_gap_us]);
        let times = [one.response_time_us].into_iter().chain(of_streams).flat_map(added);
        times.chain(others.into_iter().flatten())
    });
    let of_cells = summary.cells.iter().filter_map(|cell| cell.added_us).flat_map(added);
    let of_values =
        summary.factor_differences.iter().flat_map(|one| [Some(one.estimate), one.relative]).flatten();
    let of_factors = summary.factor_effects.iter().flat_map(|one| [one.per_unit, one.from_least_to_greatest]);
    let of_corners =
        summary.corner_differences.iter().flat_map(|one| [Some(one.estimate), one.relative]).flatten();
    let mut all = of_modes.chain(of_cells).chain(of_values).chain(of_factors).chain(of_corners);
    all.any(|difference| difference.alone.is_some()).then(|| {
        format!(
            "Not shown: with {} comparisons in this run, chance is not excluded. Its interval is the simultaneous \
             one of all comparisons of its figure; more repeats narrow it",
            summary.tests
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Estimate;
    use std::collections::BTreeMap;

    fn summary() -> Summary {
        serde_json::from_str(include_str!("../tests/fixture/summary.json")).expect("the kept summary is good")
    }

    fn cell() -> Cell {
        summary().cells[0].clone()
    }

    #[test]
    fn difference_that_is_not_shown_among_all_is_explained() {
        let notes = |alone| {
            let mut summary = summary();
            summary.tests = 6;
            let p50 = Some(Estimate { estimate: 300.0, low: Some(-9.0), high: Some(600.0), n: 2, alone });
            for cell in &mut summary.cells {
                cell.added_us = Some(AddedLatency { p50, ..AddedLatency::default() });
            }
            notes(&summary).iter().filter(|note| note.starts_with("Not shown: with 6 comparisons")).count()
        };
        assert_eq!(notes(Some([100.0, 500.0])), 1);
        assert_eq!(notes(None), 0);
    }

    fn spoiled_trials(figure: Figure, trials: usize, reason: &str) -> SpoiledTrials {
        let reasons = BTreeMap::from([(reason.to_owned(), trials)]);
        SpoiledTrials { figure, trials, reasons, least: Some(2_100.0), greatest: Some(4_300.0) }
    }

    #[test]
    fn mark_gives_reason_for_missing_trials() {
        let mut cell = cell();
        assert_eq!(mark(&cell, Figure::P99, cell.places()), None);
        let tail = [Figure::P99, Figure::P99_9, Figure::P99_99, Figure::Max];
        cell.spoiled = tail.map(|figure| spoiled_trials(figure, 2, "schedule-lag")).to_vec();
        cell.spoiled.push(spoiled_trials(Figure::Cpu, 1, "not-observed"));
        let some = mark(&cell, Figure::P99, 3).unwrap();
        assert_eq!((some.short.as_str(), some.spoiled_values), ("of 3 trials", None));
        assert!(
            some.reason.contains("Unusable in 2 of ") && some.reason.ends_with("schedule-lag."),
            "{}",
            some.reason
        );
        let none = mark(&cell, Figure::P99, 0).unwrap();
        assert_eq!(none.short, "unusable: schedule-lag");
        assert_eq!(none.spoiled_values, Some((2_100.0, 4_300.0)));
        assert_eq!(mark(&cell, Figure::P50, cell.places()), None);
        assert_eq!(spoiled(&cell), "p99 and beyond in 2 trials: schedule-lag; cpu in 1 trial: not-observed");
    }

    #[test]
    fn adjacent_figures_share_a_name() {
        let figures = |names: Figures| named(&names.iter().collect::<Vec<_>>());
        assert_eq!(figures(Figures::all()), "all figures");
        assert_eq!(figures(Figures::times().with(Figure::Throughput)), "all response times, throughput");
        assert_eq!(figures(Figures::times_from(Figure::P90).with(Figure::Mean)), "mean, p90 and beyond");
        assert_eq!(figures(Figures::none().with(Figure::P90).with(Figure::Cpu)), "p90, cpu");
    }

    #[test]
    fn percentile_with_few_events_is_marked() {
        let mut cell = cell();
        cell.events_beyond = BTreeMap::from([("p99".to_owned(), 4), ("p99.9".to_owned(), 12)]);
        let few = mark(&cell, Figure::P99, cell.places()).unwrap();
        assert_eq!(few.short, "4 events");
        assert_eq!(mark(&cell, Figure::P99_9, cell.places()), None);
    }

    #[test]
    fn places_that_contain_commas_are_separated_by_semicolons() {
        let mut summary = summary();
        summary.cells.truncate(2);
        for (cell, connections) in summary.cells.iter_mut().zip([4, 16]) {
            cell.load.connections = connections;
            cell.events_beyond = BTreeMap::from([("p99".to_owned(), 4)]);
        }
        let few = notes(&summary).into_iter().find(|note| note.starts_with("Fewer than ten")).unwrap();
        assert!(few.contains("/s, 4 connections (4); "), "{few}");
        assert!(few.ends_with("/s, 16 connections (4)"), "{few}");
    }
}
