//! A comparison for people: one description, shown on the terminal, in Markdown and in JUnit's XML.
//!
//! [`Description`] has every sentence and row. [`terminal`], [`markdown`] and [`page`] lay it out, `crate::junit::comparison` has a
//! case per figure. A description opens with what got worse, by how much and how sure.

pub(crate) mod figure;
mod finished;
mod markdown;
pub(crate) mod page;
mod self_test;
mod terminal;

use finished::cell;
pub(crate) use finished::{place, skipped};
pub use markdown::markdown;
pub(crate) use page::Page;
pub use self_test::self_test_text;
pub use terminal::text;

use crate::format::counted;
use figure::{change, label, reason, value};
use results::{
    ComparedFigure, Comparison, ComparisonEnd, ComparisonVerdict, Estimate, FigureVerdict, MarginSource,
    Metric,
};

/// A comparison in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The verdict in a sentence.
    pub headline: String,
    /// Of finished runs: differences between their environments, said before all figures.
    pub environment: Vec<String>,
    /// A sentence per figure that got worse.
    pub worse: Vec<String>,
    /// Reasons why the comparison failed.
    pub failures: Vec<String>,
    /// A row per figure, the worse ones first.
    pub rows: Vec<Row>,
    /// Facts of the comparison: arms, looks, error rate, margins, changes of the environment.
    pub notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `worse`, or `inconclusive: the machine drifted`.
    pub verdict: String,
    /// Such as `p50`.
    pub figure: String,
    /// Such as `sidecar at 1000/s`.
    pub cell: String,
    /// Mean of the base.
    pub base: String,
    /// Mean of the head.
    pub head: String,
    /// Change from base to head with its interval.
    pub change: String,
    /// Such as `± 5 %`.
    pub margin: String,
    /// Repeats in the change.
    pub repeats: String,
}

/// Names of the columns of [`Row::cells`].
pub const COLUMNS: [&str; 8] = ["verdict", "figure", "cell", "base", "head", "change", "margin", "n"];

impl Row {
    fn new(figure: &ComparedFigure) -> Self {
        let verdict = match figure.reason {
            Some(found) => format!("{}: {}", verdict_word(figure.verdict), reason(found)),
            None => verdict_word(figure.verdict).to_owned(),
        };
        Self {
            verdict,
            figure: label(figure.key),
            cell: cell(figure),
            base: value(figure.key, figure.base),
            head: value(figure.key, figure.head),
            change: shown_change(figure),
            margin: format!("± {}", figure::percent(figure.margin)),
            repeats: finished::runs(figure)
                .unwrap_or_else(|| figure.ratio.map_or(0, |ratio| ratio.n).to_string()),
        }
    }

    /// Text per column.
    #[must_use]
    pub fn cells(&self) -> [&str; 8] {
        [
            &self.verdict,
            &self.figure,
            &self.cell,
            &self.base,
            &self.head,
            &self.change,
            &self.margin,
            &self.repeats,
        ]
    }
}

/// Word for a verdict.
#[must_use]
pub fn verdict_word(verdict: FigureVerdict) -> &'static str {
    match verdict {
        FigureVerdict::Worse => "worse",
        FigureVerdict::Inconclusive => "inconclusive",
        FigureVerdict::Better => "better",
        FigureVerdict::Equivalent => "equivalent",
    }
}

/// A figure and its change: `p50 of sidecar at 1000 requests/s: +6.2 % (4.1 to 8.4)`.
#[must_use]
pub fn sentence(figure: &ComparedFigure) -> String {
    format!("{}: {}", finished::name(figure), shown_change(figure))
}

/// Change with the interval that the verdict was made by.
fn shown_change(figure: &ComparedFigure) -> String {
    change(shown_ratio(figure))
}

/// Ratio with the interval that the verdict was made by.
fn shown_ratio(figure: &ComparedFigure) -> Option<Estimate> {
    let is_equivalent = figure.verdict == FigureVerdict::Equivalent;
    if is_equivalent { figure.equivalence_ratio } else { figure.ratio }
}

impl Description {
    /// Describes a comparison.
    #[must_use]
    pub fn new(comparison: &Comparison) -> Self {
        Self {
            headline: headline(comparison),
            environment: comparison
                .finished
                .iter()
                .flat_map(|finished| finished::environment(comparison, finished))
                .collect(),
            worse: comparison.with_verdict(FigureVerdict::Worse).map(sentence).collect(),
            failures: comparison.failures.clone(),
            rows: comparison.figures.iter().map(Row::new).collect(),
            notes: match &comparison.finished {
                Some(finished) => finished::notes(comparison, finished),
                None => notes(comparison),
            },
        }
    }
}

fn headline(comparison: &Comparison) -> String {
    let count = |verdict| comparison.with_verdict(verdict).count() as u64;
    let figures = |number| counted(number, "figure", "figures");
    let worse = count(FigureVerdict::Worse);
    let of_all = format!("of {}", figures(comparison.figures.len() as u64));
    match comparison.verdict {
        ComparisonVerdict::Worse => format!("Worse: {worse} {of_all}"),
        ComparisonVerdict::Better => {
            format!("Better: {} {of_all}, and none is worse", count(FigureVerdict::Better))
        }
        ComparisonVerdict::Equivalent => {
            format!("Equivalent: {}, each within its margin", figures(comparison.figures.len() as u64))
        }
        ComparisonVerdict::Inconclusive if finished::is_without_history(comparison) => {
            finished::WITHOUT_HISTORY.to_owned()
        }
        ComparisonVerdict::Inconclusive => format!(
            "Inconclusive: {} {of_all} not decided, and none is shown to be worse",
            count(FigureVerdict::Inconclusive)
        ),
        ComparisonVerdict::Failed if worse > 0 => {
            format!("Failed, with {} that had been worse so far", figures(worse))
        }
        ComparisonVerdict::Failed => "Failed: nothing may be concluded".to_owned(),
    }
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let settings = |settings: &[String]| match settings {
        [] => "as the study has them".to_owned(),
        settings => settings.join(", "),
    };
    let mut notes = vec![
        format!("base: {}", settings(&comparison.base.settings)),
        format!("head: {}", settings(&comparison.head.settings)),
        looks(comparison),
    ];
    notes.extend(error_rate(comparison));
    notes.extend(margins(comparison));
    if !comparison.modes_not_compared.is_empty() {
        let modes: Vec<&str> = comparison.modes_not_compared.iter().map(|mode| mode.name()).collect();
        notes.push(format!("not compared, since the settings cannot change it: {}", modes.join(", ")));
    }
    notes.extend(comparison.environment_changes.iter().cloned());
    notes
}

/// Number of looks, and why no more followed.
fn looks(comparison: &Comparison) -> String {
    let looks = counted(comparison.looks as u64, "repeat", "repeats");
    let of = comparison.looks_planned;
    let trials = [&comparison.base, &comparison.head, &comparison.control].map(|arm| arm.trials);
    let why = match comparison.ended {
        ComparisonEnd::Decided => "every figure is decided",
        ComparisonEnd::Budget => "the time budget has no room for another",
        ComparisonEnd::Repeats => "no more were planned",
        ComparisonEnd::Interrupted => "it was interrupted",
        ComparisonEnd::Failed => "the environment failed",
        ComparisonEnd::Unfinished => "it has not ended",
        ComparisonEnd::Recorded => "the runs had ended before",
    };
    format!(
        "{looks} of at most {of}, {} trials (base {}, head {}, control {}): {why}",
        trials.iter().sum::<usize>(),
        trials[0],
        trials[1],
        trials[2]
    )
}

fn error_rate(comparison: &Comparison) -> Option<String> {
    comparison.figures.first()?;
    Some(format!(
        "if nothing changed, at most {} of comparisons call any figure worse or better, at any look; a figure that differs by \
         its margin is called equivalent in at most {}",
        figure::percent(statistics::comparison::ALARM_RATE),
        figure::percent(statistics::comparison::MISS_RATE)
    ))
}

/// Origin of the margins, by figure.
fn margins(comparison: &Comparison) -> Vec<String> {
    let from = |source: MarginSource| -> Option<Vec<String>> {
        let mut labels: Vec<Metric> = Vec::new();
        for figure in comparison.figures.iter().filter(|figure| figure.margin_source == source) {
            if !labels.contains(&figure.key) {
                labels.push(figure.key);
            }
        }
        (!labels.is_empty()).then(|| labels.into_iter().map(label).collect())
    };
    let sentence = |source: MarginSource| {
        let labels = from(source)?.join(", ");
        match source {
            MarginSource::User => None,
            MarginSource::Calibration => {
                Some(format!("margin of {labels}: the smallest that this machine resolves"))
            }
            MarginSource::Default => Some(format!(
                "margin of {labels}: the default of {}; --margin sets another",
                figure::percent(statistics::comparison::DEFAULT_MARGIN)
            )),
        }
    };
    [MarginSource::Calibration, MarginSource::Default].into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests;
