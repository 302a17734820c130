//! Factors with non-numeric values: the first value is compared with each other one, with everything else
//! fixed, as modes are compared.

use super::factors::{is_level, quantities, without};
use super::tables::{Subject, Tables};
use super::verdicts::{Statement, Tested};
use experiment::Experiment;
use results::{FactorDifference, FindingVerdict, Metric, Mode, OwnedCellKey, component_of, is_of_components};

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
    for (from, to) in factors.flat_map(|factor| pairs(&factor.key, &factor.values, cells)) {
        let factor = from.factor;
        for figure in COMPARED {
            let (with, base) = (to.cell.key(), from.cell.key());
            let is_left_out = match figure {
                Metric::IstiodMemoryBytes => {
                    is_of_components(factor)
                        && tables.difference(ISTIOD_MEMORY_ANONYMOUS, with, base).is_some()
                }
                ISTIOD_MEMORY_ANONYMOUS => !is_of_components(factor),
                Metric::RateCompleted => from.cell.load.rate.is_some(),
                Metric::ProxiesConfigurationBytes | Metric::ConfiguredLastUs => !is_of_components(factor),
                _ => false,
            };
            let Some(difference) = tables.difference(figure, with, base).filter(|_| !is_left_out) else {
                continue;
            };
            let change = tables.change(Subject::Path, figure, with, base);
            // Without proxies there are no proxy figures to compare.
            if change.is_none() && !figure.is_time() {
                continue;
            }
            let statement = match is_of_components(factor) {
                true => Statement::Versions(figure, differences.len()),
                false => Statement::Values(figure, differences.len()),
            };
            tested.push(Tested { statement, difference });
            differences.push(FactorDifference {
                factor: factor.to_owned(),
                mode: from.cell.mode,
                factors: without(&from.cell.factors, factor),
                load: from.cell.load.clone(),
                from: from.cell.factors[factor].clone(),
                to: to.cell.factors[factor].clone(),
                figure,
                estimate: difference.estimate,
                relative: change.map(|change| change.estimate),
                verdict: FindingVerdict::CannotTell,
                same_programs: is_of_components(factor) && tables.ran_same_programs(with, base),
            });
        }
    }
    (differences, tested)
}

/// A cell with one of a factor's values.
#[derive(Clone, Copy)]
struct Side<'a> {
    factor: &'a str,
    cell: &'a OwnedCellKey,
}

/// Every cell with the first value, paired with each cell that differs only in that value. Modes that no value can change
/// are left out: a difference between their cells is chance.
fn pairs<'a>(
    factor: &'a str,
    values: &'a [results::FactorValue],
    cells: &'a [OwnedCellKey],
) -> Vec<(Side<'a>, Side<'a>)> {
    let Some((first, others)) = values.split_first() else { return Vec::new() };
    let depends = |mode: Mode| component_of(factor).is_none_or(|component| mode.depends_on(component));
    let of = |value| {
        cells.iter().filter(move |cell| cell.factors.get(factor) == Some(value) && depends(cell.mode))
    };
    let mut pairs = Vec::new();
    for from in of(first) {
        let rest = without(&from.factors, factor);
        for value in others {
            let is_alike = |cell: &&OwnedCellKey| {
                cell.mode == from.mode
                    && is_level(&cell.load, &from.load)
                    && without(&cell.factors, factor) == rest
            };
            let to = of(value).find(is_alike);
            pairs.extend(to.map(|to| (Side { factor, cell: from }, Side { factor, cell: to })));
        }
    }
    pairs
}
