//! Factors with non-numeric values: the first value is compared with each other one, with everything else
//! fixed, as modes are compared.

use super::factors::{is_level, quantities, without};
use super::tables::{Subject, Tables};
use super::verdicts::{Statement, Tested};
use crate::figure_table::Difference;
use experiment::Experiment;
use experiment::definition::Factor;
use results::{FactorDifference, FindingVerdict, Metric, OwnedCellKey, is_of_components};

/// Metrics by which values are compared, in the order in which they are listed.
const COMPARED: [Metric; 17] = [
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP90Us,
    Metric::ResponseTimeP99Us,
    Metric::RateCompleted,
    Metric::ProxiesCpuCoresPer1000Rps,
    Metric::ProxiesMemoryAnonymousBytes,
    Metric::ProxiesConfigurationBytes,
    Metric::ConfiguredLastUs,
    Metric::ConvergenceP50Us,
    Metric::ConvergenceP90Us,
    Metric::ConvergenceP99Us,
    Metric::ConvergenceLastUs,
    Metric::FirstConfigurationLastUs,
    Metric::IstiodCpuS,
    Metric::IstiodMemoryBytes,
    Metric::IstiodMemoryAnonymousBytes,
    Metric::BytesPerProxy,
];
/// Memory by which two istiods are compared, where it was read: the rest depends on the page cache.
const ISTIOD_MEMORY_ANONYMOUS: Metric = Metric::IstiodMemoryAnonymousBytes;

/// Differences between the values of every such factor, and what each tests.
pub(super) fn differences(
    experiment: &Experiment,
    cells: &[OwnedCellKey],
    tables: &Tables<'_>,
) -> (Vec<FactorDifference>, Vec<Tested>) {
    let (mut differences, mut tested) = (Vec::new(), Vec::new());
    let factors = experiment.factors.iter().filter(|factor| quantities(factor).is_none());
    for (factor, from, to) in factors.flat_map(|factor| pairs(experiment, factor, cells)) {
        for Change { figure, difference, relative } in changes(from, to, is_of_components(factor), tables) {
            let statement = match is_of_components(factor) {
                true => Statement::Versions(figure, differences.len()),
                false => Statement::Values(figure, differences.len()),
            };
            tested.push(Tested { beside: relative, ..Tested::new(statement, difference) });
            differences.push(FactorDifference {
                factor: factor.to_owned(),
                mode: from.mode,
                factors: without(&to.factors, factor)
                    .into_iter()
                    .chain(without(&from.factors, factor))
                    .collect(),
                load: from.load.clone(),
                from: from.factors[factor].clone(),
                to: to.factors[factor].clone(),
                figure,
                estimate: difference.estimate,
                relative: relative.map(|relative| relative.estimate),
                verdict: FindingVerdict::CannotTell,
                same_programs: is_of_components(factor) && tables.ran_same_programs(to.key(), from.key()),
            });
        }
    }
    (differences, tested)
}

/// Difference of a figure between two cells of a mode.
pub(super) struct Change {
    pub figure: Metric,
    pub difference: Difference,
    /// As a fraction; absent if a value is zero.
    pub relative: Option<Difference>,
}

/// Differences between two cells at every figure that both have. Between `programs`, what depends on these too.
pub(super) fn changes(
    from: &OwnedCellKey,
    to: &OwnedCellKey,
    programs: bool,
    tables: &Tables<'_>,
) -> impl Iterator<Item = Change> {
    let (with, base) = (to.key(), from.key());
    let of_streams = from.load.stream.as_ref().map(|_| Metric::EventGapP99Us);
    COMPARED.into_iter().map(|figure| figure.under(&from.load)).chain(of_streams).filter_map(move |figure| {
        let is_left_out = match figure {
            Metric::IstiodMemoryBytes => {
                programs && tables.difference(ISTIOD_MEMORY_ANONYMOUS, with, base).is_some()
            }
            ISTIOD_MEMORY_ANONYMOUS => !programs,
            Metric::RateCompleted => !from.load.is_closed_loop(),
            Metric::ProxiesConfigurationBytes | Metric::ConfiguredLastUs => !programs,
            _ => false,
        };
        let difference = tables.difference(figure, with, base).filter(|_| !is_left_out)?;
        let change = tables.change(Subject::Path, figure, with, base);
        // Without proxies there are no proxy figures to compare.
        (change.is_some() || figure.is_time()).then_some(Change { figure, difference, relative: change })
    })
}

/// The factor with every cell that has its first value and each cell that differs only in that value, and in factors that
/// cannot touch one of the two. Cells that the factor cannot touch are left out: a difference between them is chance.
fn pairs<'a>(
    experiment: &Experiment,
    factor: &'a Factor,
    cells: &'a [OwnedCellKey],
) -> Vec<(&'a str, &'a OwnedCellKey, &'a OwnedCellKey)> {
    let Some((first, others)) = factor.values.split_first() else { return Vec::new() };
    let key = factor.key.as_str();
    let of = |value| {
        cells
            .iter()
            .filter(move |cell| cell.factors.get(key) == Some(value))
            .filter(move |cell| experiment.touches_cells(cell.mode, &cell.factors, key))
    };
    let mut pairs = Vec::new();
    for from in of(first) {
        let is_alike = |cell: &&OwnedCellKey| {
            cell.mode == from.mode
                && is_level(&cell.load, &from.load)
                && cell.factors.iter().all(|(other, value)| {
                    other == key || from.factors.get(other).is_none_or(|from| from == value)
                })
        };
        pairs.extend(others.iter().flat_map(of).filter(is_alike).map(|to| (key, from, to)));
    }
    pairs
}
