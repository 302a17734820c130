//! All factors at their last values against all at their first: the far corner of an experiment with several factors, as
//! modes are compared.

use super::factors::is_level;
use super::tables::Tables;
use super::verdicts::{Statement, Tested};
use super::word_factors::{Change, changes};
use experiment::Experiment;
use results::{CornerDifference, FactorValue, Factors, FindingVerdict, OwnedCellKey};

/// Minimum number of factors that touch a mode: with one, the difference is that of the factor.
const MIN_FACTORS: usize = 2;

/// Differences between the corners of every mode and load, and what each tests.
pub(super) fn differences(
    experiment: &Experiment,
    cells: &[OwnedCellKey],
    tables: &Tables<'_>,
) -> (Vec<CornerDifference>, Vec<Tested>) {
    let (mut differences, mut tested) = (Vec::new(), Vec::new());
    for (from, to) in corners(experiment, cells) {
        for Change { figure, difference, relative } in changes(from, to, false, tables) {
            let statement = Statement::Corners(figure, differences.len());
            tested.push(Tested { beside: relative, ..Tested::new(statement, difference) });
            differences.push(CornerDifference {
                mode: from.mode,
                load: from.load.clone(),
                from: from.factors.clone(),
                to: to.factors.clone(),
                figure,
                estimate: difference.estimate,
                relative: relative.map(|relative| relative.estimate),
                verdict: FindingVerdict::CannotTell,
            });
        }
    }
    (differences, tested)
}

/// Cells with the first and with the last value of each factor that touches their mode, under the same load.
fn corners<'a>(
    experiment: &Experiment,
    cells: &'a [OwnedCellKey],
) -> Vec<(&'a OwnedCellKey, &'a OwnedCellKey)> {
    let corner = |end: fn(&[FactorValue]) -> Option<&FactorValue>| -> Factors {
        let values = experiment.factors.iter();
        values.filter_map(|factor| Some((factor.key.clone(), end(&factor.values)?.clone()))).collect()
    };
    let (first, last) = (corner(<[FactorValue]>::first), corner(<[FactorValue]>::last));
    let mut pairs = Vec::new();
    for from in cells {
        let touching = experiment.touching(from.mode, &first);
        let end = experiment.touching(from.mode, &last);
        if touching.len().min(end.len()) < MIN_FACTORS || from.factors != touching {
            continue;
        }
        let is_opposite = |cell: &&OwnedCellKey| {
            cell.mode == from.mode && is_level(&cell.load, &from.load) && cell.factors == end
        };
        pairs.extend(cells.iter().find(is_opposite).map(|to| (from, to)));
    }
    pairs
}
