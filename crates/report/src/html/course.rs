//! Charts of a history: one per figure, with its segments and changes.

use super::charts::course::{self, Change, Level, Point};
use super::sections::Chart;
use crate::comparison::figure::{label, value};
use crate::comparison::page::style;
use crate::history::{direction, of_change, place_of, run_number};
use crate::terminal::plain;
use results::{
    CoursePoint, CourseSegment, Estimate, HistoryChange, HistoryCourse, HistoryGroup, SeriesCourse,
};
use statistics::words;

/// Charts of a page: a browser draws each as hundreds of shapes.
const MAX_CHARTS: usize = 60;
/// Marks in a chart; longer courses are shown by means of runs that follow each other.
const MAX_MARKS: usize = 120;

/// Charts of the figures with two runs or more that are not 0 in all of them, those with changes first, and how many were left out.
pub(super) fn charts(history: &HistoryCourse) -> (Vec<Chart>, usize) {
    let all = history.groups.iter().flat_map(|group| group.series.iter().map(move |series| (group, series)));
    let (mut shown, rest): (Vec<_>, Vec<_>) =
        all.filter(|(_, series)| has_chart(series)).partition(|(_, series)| !series.changes.is_empty());
    shown.extend(rest);
    let left_out = shown.len().saturating_sub(MAX_CHARTS);
    shown.truncate(MAX_CHARTS);
    let chart = |(number, (group, series))| chart(number, group, series);
    (shown.into_iter().enumerate().map(chart).collect(), left_out)
}

/// True if a course can be drawn as changes from its beginning.
fn has_chart(series: &SeriesCourse) -> bool {
    series.points.len() > 1 && series.segments.first().is_some_and(|segment| segment.mean > 0.0)
}

fn chart(number: usize, group: &HistoryGroup, series: &SeriesCourse) -> Chart {
    let first = series.segments.first().map_or(1.0, |segment| segment.mean);
    let percent = |value: f64| 100.0 * (value / first - 1.0);
    let per_mark = series.points.len().div_ceil(MAX_MARKS).max(1);
    let point = |points: &[CoursePoint]| {
        let (first, last) = (points[0].number, points[points.len() - 1].number);
        let mean = points.iter().map(|point| point.value).sum::<f64>() / points.len() as f64;
        let runs = match points {
            [one] => format!("run {first}, {}", one.run),
            _ => format!("runs {first} to {last}"),
        };
        let text = format!("{runs}: {}", value(series.key, Some(Estimate::single(mean))));
        Point { run: (first + last) as f64 / 2.0, change: percent(mean), text: plain(&text) }
    };
    let level = |segment: &CourseSegment| Level {
        runs: (run_number(series, segment.from) as f64, run_number(series, segment.to - 1) as f64),
        change: percent(segment.mean),
        spread: segment.deviation.map(|deviation| {
            (percent(segment.mean * (-deviation).exp()), percent(segment.mean * deviation.exp()))
        }),
    };
    let of_found = |found: &HistoryChange| Change {
        run: run_number(series, found.at) as f64,
        label: plain(&found.run),
        text: plain(&of_change(series, found)),
        style: style(direction(found)),
    };
    // No mark mixes runs of before and after a change.
    let marks = |segment: &CourseSegment| {
        series.points.get(segment.from..segment.to).unwrap_or_default().chunks(per_mark)
    };
    let points: Vec<Point> = series.segments.iter().flat_map(marks).map(point).collect();
    let levels: Vec<Level> = series.segments.iter().map(level).collect();
    let changes: Vec<Change> = series.changes.iter().map(of_found).collect();
    let caption = words::sentence(&plain(&format!("{}{}", label(series.key), place_of(group, series))));
    let svg = course::chart(&format!("course-{number}"), &caption, &points, &levels, &changes);
    Chart::new(caption, svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Factors, LoadPoint, Metric, Mode, OwnedCellKey};

    fn series(runs: usize, change_at: Option<usize>) -> SeriesCourse {
        let value = |run: usize| if change_at.is_some_and(|at| run >= at) { 110.0 } else { 100.0 };
        let segment =
            |from, to| CourseSegment { from, to, mean: value(from), deviation: Some(0.01), bimodal: None };
        let change = |at| HistoryChange {
            at,
            run: "commit <i>".to_owned(),
            ratio: Estimate { estimate: 1.1, low: Some(1.05), high: Some(1.15), n: 6, alone: None },
            superiority: 0.99,
            programs: Vec::new(),
        };
        let points = (0..runs).map(|run| CoursePoint {
            number: run + 1,
            run: format!("c{run}"),
            started_at: None,
            value: value(run),
        });
        SeriesCourse {
            key: Metric::ResponseTimeP50Us,
            cell: OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load: LoadPoint::of_fleet() },
            points: points.collect(),
            left_out: Vec::new(),
            segments: match change_at {
                Some(at) => vec![segment(0, at), segment(at, runs)],
                None => vec![segment(0, runs)],
            },
            changes: change_at.into_iter().map(change).collect(),
        }
    }

    fn history(series: Vec<SeriesCourse>) -> HistoryCourse {
        let group = HistoryGroup {
            source: "run".to_owned(),
            name: "study".to_owned(),
            environment: Default::default(),
            runs: 1,
            series,
        };
        HistoryCourse {
            schema: String::new(),
            file: String::new(),
            runs: 1,
            skipped_lines: Vec::new(),
            groups: vec![group],
        }
    }

    #[test]
    fn changed_figures_come_first_and_what_is_left_out_is_counted() {
        let mut all = vec![series(1, None)];
        all.extend((0..MAX_CHARTS).map(|_| series(10, None)));
        all.push(series(10, Some(5)));
        let (shown, left_out) = charts(&history(all));
        assert_eq!((shown.len(), left_out), (MAX_CHARTS, 1));
        let json = serde_json::to_value(&shown).unwrap();
        let svg = |chart: usize| json[chart]["svg"].as_str().unwrap().to_owned();
        assert!(svg(0).contains("change at run 6 (commit &lt;i&gt;): +10 %"), "{}", svg(0));
        assert!(!svg(1).contains("change at"), "{}", svg(1));
    }

    #[test]
    fn long_courses_have_few_marks_and_short_ones_all() {
        let marks = |runs: usize| {
            let chart = &charts(&history(vec![series(runs, None)])).0[0];
            let json = serde_json::to_value(chart).unwrap();
            json["svg"].as_str().unwrap().matches("class=\"mark grey\"").count()
        };
        assert_eq!(marks(120), 120);
        assert_eq!(marks(1000), 112);
    }
}
