//! A comparison as JUnit XML: a case per figure.
//!
//! Worse figures are failures, as are inconclusive ones if the gate is strict; otherwise these are skipped. Reasons why the
//! comparison failed are errors.

use super::document::{self, Case, Kind, Status, Suite};
use crate::comparison::{Description, place, sentence, verdict_word};
use results::{ComparedFigure, Comparison, FigureVerdict};

/// The document, ending with a line break.
#[must_use]
pub fn comparison(comparison: &Comparison, is_strict: bool) -> String {
    let description = Description::new(comparison);
    let mut cases: Vec<Case> =
        comparison.figures.iter().map(|figure| case(comparison, figure, is_strict)).collect();
    cases.extend(comparison.failures.iter().enumerate().map(|(number, failure)| Case {
        class: format!("{}.comparison", comparison.name),
        name: format!("failure {}", number + 1),
        status: Some(Status::new(Kind::Error, "failed", failure.clone())),
        output: None,
    }));
    document::text(&Suite {
        name: &comparison.name,
        started_at: None,
        properties: vec![
            ("base".to_owned(), comparison.base.settings.join(", ")),
            ("head".to_owned(), comparison.head.settings.join(", ")),
            ("seed".to_owned(), comparison.seed.to_string()),
            ("looks".to_owned(), comparison.looks.to_string()),
        ],
        cases,
        output: Some(description.headline),
    })
}

fn case(comparison: &Comparison, figure: &ComparedFigure, is_strict: bool) -> Case {
    let kind = match figure.verdict {
        FigureVerdict::Worse => Some(Kind::Failure),
        FigureVerdict::Inconclusive if is_strict => Some(Kind::Failure),
        FigureVerdict::Inconclusive => Some(Kind::Skipped),
        FigureVerdict::Better | FigureVerdict::Equivalent => None,
    };
    let status = kind.map(|kind| Status::new(kind, verdict_word(figure.verdict), sentence(figure)));
    Case {
        class: match &figure.between_runs {
            Some(runs) if runs.without_mode => format!("{}.load", comparison.name),
            _ => format!("{}.{}", comparison.name, figure.cell.mode),
        },
        name: match place(figure) {
            Some(place) => format!("{place}: {}", figure.key.key()),
            None => figure.key.key().to_owned(),
        },
        output: status.is_none().then(|| sentence(figure)),
        status,
    }
}
