//! `meshmeter.history/1`: one line of a history, the figures of one finished run.

use crate::estimate::Estimate;
use crate::factor::OwnedCellKey;
use crate::metric::Metric;
use crate::units::shortened_to;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`HistoryRun::schema`].
pub const HISTORY_SCHEMA: &str = "meshmeter.history/1";

/// Maximum characters of [`HistoryRun::label`].
pub const MAX_LABEL_CHARACTERS: usize = 200;
/// Maximum characters of other texts in a line, as of a path.
const MAX_TEXT_CHARACTERS: usize = 4096;

/// A finished run in a history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// Always [`HISTORY_SCHEMA`].
    pub schema: String,
    /// Version of Meshmeter that wrote the line.
    pub version: String,
    /// Directory of the run, or result file, as given.
    pub run: String,
    /// Commit or version of what was measured, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `run`, `load`, or the program that measured, such as `fortio`.
    pub source: String,
    /// Name of the experiment, or the target of a load.
    pub name: String,
    /// Start, RFC 3339 if the source has it in this form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Seed of the trial order; absent for loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Facts of machine and instrument, which runs that are compared must share.
    pub environment: BTreeMap<String, String>,
    /// Settings of the experiment, a line each, which runs that are compared must share.
    pub settings: Vec<String>,
    /// Programs that were measured, with version and build. They may change along a history.
    pub programs: BTreeMap<String, String>,
    /// Trials recorded; 1 for a load.
    pub trials: usize,
    /// Trials whose median is usable.
    pub valid: usize,
    /// Figures.
    pub figures: Vec<HistoryFigure>,
    /// Limits of the source, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryFigure {
    /// The figure.
    pub key: Metric,
    /// The cell. A load has mode `none`, which means nothing there.
    pub cell: OwnedCellKey,
    /// Mean over the trials. The interval covers this run alone.
    pub estimate: Estimate,
}

/// Relative difference below which figures are the same ones.
const SAME: f64 = 1e-9;

/// Value of [`HistoryRun::source`] for the directory of a run.
pub const RUN_SOURCE: &str = "run";

impl HistoryRun {
    /// True if its cells have modes.
    #[must_use]
    pub fn has_modes(&self) -> bool {
        self.source == RUN_SOURCE
    }

    /// True if both are records of one measurement: their figures are those of one. A file keeps them inexactly, and a later
    /// version may know more of them, or fewer, in a measurement whose start is known.
    #[must_use]
    pub fn is_same_run(&self, other: &Self) -> bool {
        let counterpart = |figure: &HistoryFigure| {
            other.figures.iter().find(|other| other.key == figure.key && other.cell == figure.cell)
        };
        let is_close = |figure: &HistoryFigure| {
            counterpart(figure).map(|other| {
                let (one, other) = (figure.estimate.estimate, other.estimate.estimate);
                (one - other).abs() <= SAME * one.abs()
            })
        };
        (&self.source, &self.name, &self.started_at, self.seed)
            == (&other.source, &other.name, &other.started_at, other.seed)
            && (self.started_at.is_some() || self.figures.len() == other.figures.len())
            && self.figures.iter().all(|figure| is_close(figure).unwrap_or(self.started_at.is_some()))
    }

    /// The same run with texts that can be shown: of bounded length, without characters that act on the text around them.
    #[must_use]
    pub fn plain(self) -> Self {
        let plain = |text: String| shortened_to(&text, MAX_TEXT_CHARACTERS);
        let facts = |facts: BTreeMap<String, String>| {
            facts.into_iter().map(|(name, value)| (plain(name), plain(value))).collect()
        };
        Self {
            version: plain(self.version),
            run: plain(self.run),
            label: self.label.map(|label| shortened_to(&label, MAX_LABEL_CHARACTERS)),
            source: plain(self.source),
            name: plain(self.name),
            started_at: self.started_at.map(plain),
            environment: facts(self.environment),
            settings: self.settings.into_iter().map(plain).collect(),
            programs: facts(self.programs),
            limits: self.limits.into_iter().map(plain).collect(),
            ..self
        }
    }

    /// Short name for people: the label, or else the path.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Factors, LoadPoint, Mode};

    fn run(started_at: Option<&str>, figures: &[(Metric, f64)]) -> HistoryRun {
        let cell = OwnedCellKey { mode: Mode::None, factors: Factors::new(), load: LoadPoint::of_fleet() };
        let figure = |(key, value): &(Metric, f64)| HistoryFigure {
            key: *key,
            cell: cell.clone(),
            estimate: Estimate::single(*value),
        };
        HistoryRun {
            started_at: started_at.map(str::to_owned),
            figures: figures.iter().map(figure).collect(),
            ..HistoryRun::default()
        }
    }

    #[test]
    fn texts_of_others_are_bounded_and_plain() {
        let run = HistoryRun {
            label: Some("x".repeat(10_000)),
            run: "runs/\u{202e}gnp.exe\u{1b}[2J".to_owned(),
            programs: BTreeMap::from([("envoy\u{2066}".to_owned(), "1.36\n1.37".to_owned())]),
            ..run(None, &[])
        };
        let plain = run.plain();
        assert_eq!(plain.run, "runs/ gnp.exe [2J");
        assert_eq!(plain.label.unwrap().chars().count(), MAX_LABEL_CHARACTERS + 1, "with …");
        assert_eq!(plain.programs, BTreeMap::from([("envoy ".to_owned(), "1.36 1.37".to_owned())]));
    }

    #[test]
    fn records_of_one_measurement_have_the_same_figures() {
        let (p50, p99) = ((Metric::ResponseTimeP50Us, 100.0), (Metric::ResponseTimeP99Us, 300.0));
        for start in [None, Some("2026-11-20T10:00:00Z")] {
            let both = run(start, &[p50, p99]);
            assert!(both.is_same_run(&run(start, &[(p50.0, 100.0 + 1e-9), p99])));
            assert!(!both.is_same_run(&run(start, &[(p50.0, 101.0), p99])), "{start:?}: other contents");
            assert_eq!(both.is_same_run(&run(start, &[p50])), start.is_some(), "by another version");
        }
        let other = run(Some("2026-11-20T11:00:00Z"), &[p50, p99]);
        assert!(!other.is_same_run(&run(Some("2026-11-20T10:00:00Z"), &[p50, p99])));
    }
}
