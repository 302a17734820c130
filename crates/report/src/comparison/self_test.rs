//! A self-test of comparisons on the terminal.

use super::figure::{label, percent};
use super::terminal::aligned;
use crate::format::{self, ABSENT, counted};
use crate::terminal::{Options, bold, plain, wrap};
use results::{ComparisonSelfTest, CountedShare, InjectedEffect, SelfTestSeries};
use statistics::comparison::self_test::exceeds;

const COLUMNS: [&str; 9] = [
    "change",
    "figure",
    "n",
    "worse",
    "better",
    "equivalent",
    "inconclusive",
    "failed",
    "share (95 % interval)",
];

/// Text of a self-test, ending with a line break.
#[must_use]
pub fn self_test_text(result: &ComparisonSelfTest, options: Options) -> String {
    let comparisons = result.series.iter().map(|series| series.comparisons).sum();
    let headline = format!(
        "{} of this machine with itself, of at most {} each, in {}{}",
        counted(comparisons, "comparison", "comparisons"),
        counted(result.repeats as u64, "repeat", "repeats"),
        format::duration(result.elapsed_s),
        if result.interrupted { ": interrupted" } else { "" }
    );
    let rows: Vec<[String; 9]> = result.series.iter().map(row).collect();
    let rows: Vec<[&str; 9]> = rows.iter().map(|row| row.each_ref().map(String::as_str)).collect();
    let mut lines = vec![bold(&plain(&headline), options), String::new()];
    lines.extend(aligned(&COLUMNS, &rows).iter().map(|line| plain(line)));
    lines.push(String::new());
    if result.series.iter().any(|series| exceeds(series, result.alarm_rate)) {
        let allowed = percent(result.alarm_rate);
        let warning = format!("More false alarms than {allowed} are shown: verdicts cannot be trusted here.");
        lines.extend(wrap(&warning, options.width));
    }
    let note = format!(
        "False alarm: a comparison without a change calls any figure worse or better; at most {} may. Found: the figure of the \
         change is called worse. More comparisons (--budget) narrow the intervals. A failed one lacks data, and counts in no share.",
        percent(result.alarm_rate)
    );
    lines.extend(wrap(&note, options.width));
    lines.join("\n") + "\n"
}

fn row(series: &SelfTestSeries) -> [String; 9] {
    let change = match series.injected {
        InjectedEffect::Nothing => series.injected.name().to_owned(),
        InjectedEffect::ServerCpuTime | InjectedEffect::ProxyCpuTime => {
            format!(
                "{} +{:.1} us ({:.1} %)",
                series.injected.name(),
                series.added_us,
                100.0 * series.relative
            )
        }
    };
    let said = if series.injected == InjectedEffect::Nothing { "false alarms" } else { "found" };
    let counts = [
        series.comparisons,
        series.worse,
        series.better,
        series.equivalent,
        series.inconclusive,
        series.failed,
    ];
    let [n, worse, better, equivalent, inconclusive, failed] = counts.map(|count| count.to_string());
    let share = series.share.map_or_else(|| ABSENT.to_owned(), |share| format!("{said} {}", interval(share)));
    let figure = series.figure.map_or_else(|| "any".to_owned(), label);
    [change, figure, n, worse, better, equivalent, inconclusive, failed, share]
}

/// `80 % (44.4 to 97.5)`.
fn interval(share: CountedShare) -> String {
    let [share, low, high] = [share.share, share.low, share.high].map(|one| 100.0 * one);
    format!("{share:.0} % ({low:.1} to {high:.1})")
}
