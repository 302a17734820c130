//! Course of each figure over a history.

use super::bimodal;
use super::change_points::change_points;
use super::environment::{changed_programs, is_same};
use super::prediction::{Spread, deviation, logarithms, mean, superiority};
use crate::comparison::{Logarithms, WorseIf, worse_if};
use results::{
    CoursePoint, CourseSegment, HISTORY_COURSE_SCHEMA, HistoryChange, HistoryCourse, HistoryFigure,
    HistoryGroup, HistoryRun, Metric, SeriesCourse,
};
use std::collections::HashMap;

/// Level of the intervals of changes.
const LEVEL: f64 = 0.05;

/// Values of one figure with the runs that have it.
#[derive(Debug)]
pub(super) struct Series<'a> {
    pub(super) figure: &'a HistoryFigure,
    pub(super) runs: Vec<&'a HistoryRun>,
    /// Of each run: its number among all, from 1.
    numbers: Vec<usize>,
    pub(super) values: Vec<f64>,
}

/// All figures of runs that may be compared with such values, in the order in which they come up.
pub(super) fn series<'a>(
    runs: &[&'a HistoryRun],
    is_wanted: impl Fn(&HistoryFigure) -> bool,
) -> Vec<Series<'a>> {
    let mut all: Vec<Series<'a>> = Vec::new();
    let mut by_key: HashMap<Metric, Vec<usize>> = HashMap::new();
    for (number, &run) in (1..).zip(runs) {
        for figure in run.figures.iter().filter(|figure| is_wanted(figure)) {
            let of_key = by_key.entry(figure.key).or_default();
            let is_it = |position: &&usize| is_counterpart(run, figure, all[**position].figure);
            let position = of_key.iter().find(is_it).copied().unwrap_or_else(|| {
                of_key.push(all.len());
                all.len()
            });
            if position == all.len() {
                all.push(Series { figure, runs: Vec::new(), numbers: Vec::new(), values: Vec::new() });
            }
            all[position].runs.push(run);
            all[position].numbers.push(number);
            all[position].values.push(figure.estimate.estimate);
        }
    }
    all
}

/// True if a figure of a run is measured under the conditions of another one. The load of a load is part of its environment.
pub(super) fn is_counterpart(run: &HistoryRun, figure: &HistoryFigure, other: &HistoryFigure) -> bool {
    figure.key == other.key && (!run.has_modes() || figure.cell == other.cell)
}

/// True if a figure has a logarithm.
pub(super) fn is_positive(figure: &HistoryFigure) -> bool {
    figure.estimate.estimate > 0.0 && figure.estimate.estimate.is_finite()
}

/// Course of a history.
#[must_use]
pub fn course(file: &str, runs: &[HistoryRun], skipped_lines: &[usize]) -> HistoryCourse {
    let mut groups: Vec<Vec<&HistoryRun>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| is_same(group[0], run)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let group = |runs: Vec<&HistoryRun>| HistoryGroup {
        source: runs[0].source.clone(),
        name: runs[0].name.clone(),
        environment: runs[0].environment.clone(),
        runs: runs.len(),
        series: of_runs(&runs),
    };
    HistoryCourse {
        schema: HISTORY_COURSE_SCHEMA.to_owned(),
        file: file.to_owned(),
        runs: runs.len(),
        skipped_lines: skipped_lines.to_vec(),
        groups: groups.into_iter().map(group).collect(),
    }
}

/// Course of each figure; those that are 0 in all runs come last.
fn of_runs(runs: &[&HistoryRun]) -> Vec<SeriesCourse> {
    let measured = series(runs, is_positive);
    let zeros = series(runs, |figure| figure.estimate.estimate == 0.0);
    let is_zero = |zeros: &&Series<'_>| {
        !measured.iter().any(|own| is_counterpart(own.runs[0], own.figure, zeros.figure))
    };
    let of_zeros = |zeros: &Series<'_>| {
        let all =
            CourseSegment { from: 0, to: zeros.values.len(), mean: 0.0, deviation: None, bimodal: None };
        course_of(zeros, runs.len(), vec![all], Vec::new())
    };
    let zeros = zeros.iter().filter(is_zero).map(of_zeros);
    measured.iter().map(|series| of_series(series, runs.len())).chain(zeros).collect()
}

/// The course of values above 0, which have logarithms.
fn of_series(series: &Series<'_>, runs: usize) -> SeriesCourse {
    let values = logarithms(&series.values);
    let at = change_points(&values);
    let bounds: Vec<usize> = [0].into_iter().chain(at.iter().copied()).chain([values.len()]).collect();
    let segment = |from: usize, to: usize| {
        let part = &values[from..to];
        CourseSegment {
            from,
            to,
            mean: mean(part).exp(),
            deviation: deviation(part),
            bimodal: bimodal::groups(part).map(bimodal::Groups::modes),
        }
    };
    let change = |bounds: &[usize]| {
        let (before, after) = (&values[bounds[0]..bounds[1]], &values[bounds[1]..bounds[2]]);
        let half = Spread::new(before, after).half(LEVEL);
        HistoryChange {
            at: bounds[1],
            run: series.runs[bounds[1]].shown_name().to_owned(),
            ratio: Logarithms { mean: mean(after) - mean(before), half, n: after.len() }.ratio(),
            superiority: superiority(after, before, worse_if(series.figure.key) == WorseIf::Higher),
            programs: changed_programs(series.runs[bounds[1] - 1], series.runs[bounds[1]]),
        }
    };
    let segments = bounds.windows(2).map(|pair| segment(pair[0], pair[1])).collect();
    course_of(series, runs, segments, bounds.windows(3).map(change).collect())
}

fn course_of(
    series: &Series<'_>,
    runs: usize,
    segments: Vec<CourseSegment>,
    changes: Vec<HistoryChange>,
) -> SeriesCourse {
    let point = |((run, number), value): ((&&HistoryRun, &usize), &f64)| CoursePoint {
        number: *number,
        run: run.shown_name().to_owned(),
        started_at: run.started_at.clone(),
        value: *value,
    };
    SeriesCourse {
        key: series.figure.key,
        cell: series.figure.cell.clone(),
        points: series.runs.iter().zip(&series.numbers).zip(&series.values).map(point).collect(),
        left_out: (1..=runs).filter(|number| series.numbers.binary_search(number).is_err()).collect(),
        segments,
        changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noise::normal::normal;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use results::{Estimate, Factors, LoadPoint, Mode, OwnedCellKey};
    use std::collections::BTreeMap;

    fn run(number: usize, kernel: &str, value: f64) -> HistoryRun {
        let cell = OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load: LoadPoint::of_fleet() };
        HistoryRun {
            run: format!("runs/{number}"),
            label: Some(format!("commit-{number}")),
            source: "run".to_owned(),
            name: "study".to_owned(),
            environment: BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]),
            programs: BTreeMap::from([(
                "envoy".to_owned(),
                if number < 15 { "1.35" } else { "1.36" }.to_owned(),
            )]),
            figures: vec![HistoryFigure {
                key: Metric::ResponseTimeP50Us,
                cell,
                estimate: Estimate::single(value),
            }],
            ..HistoryRun::default()
        }
    }

    #[test]
    fn changes_name_the_run_and_the_programs_and_environments_are_apart() {
        let mut random = StdRng::seed_from_u64(5);
        let value = |number: usize, random: &mut StdRng| {
            100.0 * if number < 15 { 1.0 } else { 1.1 } * (0.01 * normal(random)).exp()
        };
        let mut runs: Vec<HistoryRun> =
            (0..30).map(|number| run(number, "6.1", value(number, &mut random))).collect();
        runs.push(run(30, "6.8", 500.0));
        let found = course("h.jsonl", &runs, &[7]);
        assert_eq!((found.runs, found.groups.len(), found.skipped_lines.as_slice()), (31, 2, [7].as_slice()));
        let series = &found.groups[0].series[0];
        assert_eq!((series.points.len(), series.segments.len(), series.changes.len()), (30, 2, 1));
        let change = &series.changes[0];
        assert_eq!((change.at, change.run.as_str()), (15, "commit-15"));
        assert_eq!(change.programs, ["envoy: 1.35 → 1.36"]);
        let ratio = change.ratio;
        assert!(ratio.low.unwrap() > 1.05 && ratio.high.unwrap() < 1.15, "{ratio:?}");
        assert!(change.superiority > 0.99);
        assert_eq!(found.groups[1].series[0].segments[0].deviation, None);
    }

    #[test]
    fn figure_that_is_0_in_all_runs_has_a_course_of_0() {
        let zero = |number: usize| {
            let mut run = run(number, "6.1", 100.0);
            let idle = HistoryFigure {
                key: Metric::ProxiesCpuCoresPer1000Rps,
                estimate: Estimate::single(0.0),
                ..run.figures[0].clone()
            };
            run.figures.push(idle);
            run
        };
        let mut runs: Vec<HistoryRun> = (0..3).map(zero).collect();
        let found = course("h.jsonl", &runs, &[]);
        let [_, idle] = found.groups[0].series.as_slice() else { panic!("{found:?}") };
        assert_eq!(idle.key, Metric::ProxiesCpuCoresPer1000Rps);
        assert_eq!((idle.points.len(), idle.points[2].value, idle.segments[0].mean), (3, 0.0, 0.0));
        assert!(idle.left_out.is_empty() && idle.changes.is_empty());
        runs[1].figures[1].estimate = Estimate::single(2.0);
        let found = course("h.jsonl", &runs, &[]);
        let [_, busy] = found.groups[0].series.as_slice() else { panic!("{found:?}") };
        assert_eq!((busy.points.len(), busy.left_out.as_slice()), (1, [1, 3].as_slice()));
    }

    #[test]
    fn runs_without_a_value_above_0_are_named_and_others_keep_their_numbers() {
        let mut runs: Vec<HistoryRun> =
            (0..30).map(|number| run(number, "6.1", if number < 15 { 100.0 } else { 120.0 })).collect();
        for (number, value) in [(3, 0.0), (4, -2.0), (5, f64::NAN)] {
            runs[number].figures[0].estimate = Estimate::single(value);
        }
        runs[6].figures.clear();
        let found = course("h.jsonl", &runs, &[]);
        let series = &found.groups[0].series[0];
        assert_eq!((series.points.len(), series.left_out.as_slice()), (26, [4, 5, 6, 7].as_slice()));
        let change = &series.changes[0];
        assert_eq!((change.at, change.run.as_str()), (11, "commit-15"));
        assert_eq!(series.points[change.at].number, 16);
    }
}
