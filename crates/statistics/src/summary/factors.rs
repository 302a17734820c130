//! Figures as functions of a numeric factor, and the order of factors in results.
//!
//! A line is fitted by least squares through the factor's values with all other factors fixed. A handful of repeats
//! say little of the spread of their slopes: under a load a slope takes its error from the noise of all cells, as
//! differences between values do ([`FigureTable::slope`]). What a proxy holds before the load does not depend on the
//! load, so trials of one repeat and value are averaged for it. There, and with fewer cells than the model of the noise
//! wants, a line is fitted within each repeat, and the estimate is the mean of their slopes: drift between repeats
//! shifts all values of a repeat equally, and so changes no slope.

use super::estimates::resolution_us;
use super::tables::Tables;
use super::verdicts::{Statement, Tested};
use crate::figure_table::{Difference, FigureTable};
use crate::interval;
use crate::trials::usable;
use experiment::Experiment;
use experiment::definition::Factor;
use results::{
    BACKGROUND_SERVICES, Conditions, FactorEffect, Factors, Figure, FindingVerdict, LoadPoint, Metric, Mode,
    Role, TrialRecord,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Compares values factor by factor: numbers by size, other values by their position in the experiment.
pub(super) fn order(experiment: &Experiment, one: &Factors, other: &Factors) -> Ordering {
    let by_factor = experiment.factors.iter().map(|factor| {
        let rank = |factors: &Factors| {
            let value = factors.get(&factor.key)?;
            let place = factor.values.iter().position(|known| known == value);
            Some((value.quantity(&factor.key), place))
        };
        match (rank(one), rank(other)) {
            (Some((Some(one), _)), Some((Some(other), _))) => one.total_cmp(&other),
            (one, other) => one.map(|(_, place)| place).cmp(&other.map(|(_, place)| place)),
        }
    });
    by_factor.fold(Ordering::Equal, Ordering::then)
}

/// Effects of each numeric factor: by mode, and by the values of the other factors in the order of
/// `conditions`.
pub(super) fn effects(
    experiment: &Experiment,
    conditions: &[Conditions<'_>],
    modes: &[Mode],
    trials: &[TrialRecord],
    tables: &Tables<'_>,
) -> (Vec<FactorEffect>, Vec<Tested>) {
    let mut effects = Vec::new();
    for factor in &experiment.factors {
        let Some(values) = quantities(factor) else { continue };
        let mut groups: HashMap<(Mode, Factors), Vec<&TrialRecord>> = HashMap::new();
        for trial in trials {
            let rest = without(&trial.factors, &factor.key);
            groups.entry((trial.mode, rest)).or_default().push(trial);
        }
        let mut others: Vec<Factors> = Vec::new();
        let mut known: HashSet<Factors> = HashSet::new();
        for at in conditions {
            let rest = without(at.factors, &factor.key);
            if known.insert(rest.clone()) {
                others.push(rest);
            }
        }
        for mode in modes {
            for rest in others.iter().filter(|rest| experiment.touches_cells(*mode, rest, &factor.key)) {
                let trials = groups.remove(&(*mode, rest.clone())).unwrap_or_default();
                let group = Group { factor: &factor.key, values: &values, factors: rest, mode: *mode };
                effects.extend(group.effects(&trials, tables));
            }
        }
    }
    let tested = |(index, slope): (usize, &Slope)| Tested {
        beside: Some(slope.ends),
        ..Tested::new(Statement::Effect(slope.effect.figure, index), slope.line)
    };
    let tested = effects.iter().enumerate().map(tested).collect();
    (effects.into_iter().map(|slope| slope.effect).collect(), tested)
}

/// The slope of a figure against a factor, as it is tested, and the difference between its ends.
struct Slope {
    effect: FactorEffect,
    line: Difference,
    ends: Difference,
}

/// The values of a factor as numbers, ascending; `None` if one is not a number.
pub(super) fn quantities(factor: &Factor) -> Option<Vec<f64>> {
    let values = factor.values.iter().map(|value| value.quantity(&factor.key));
    let mut values = values.collect::<Option<Vec<f64>>>()?;
    values.sort_by(f64::total_cmp);
    Some(values)
}

pub(super) fn without(factors: &Factors, key: &str) -> Factors {
    factors
        .iter()
        .filter(|(other, _)| *other != key)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Holdings of each proxy before the load.
const HELD: [Metric; 6] = [
    Metric::HeapAllocatedBeforeLoadBytes,
    Metric::MemoryAnonymousBeforeLoadBytes,
    Metric::MemoryBeforeLoadBytes,
    Metric::ConfigurationSizeBytes,
    Metric::ConfiguredInS,
    Metric::FurtherDomainInS,
];
/// Metrics under one load. Only programs are compared by anonymous memory of istiod: sizes of fleets change all of it.
const UNDER_LOAD: [Metric; 13] = [
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP99Us,
    Metric::ProxiesCpuCoresPer1000Rps,
    Metric::RateCompleted,
    Metric::ProxiesMemoryAnonymousBytes,
    Metric::ConvergenceP50Us,
    Metric::ConvergenceP90Us,
    Metric::ConvergenceP99Us,
    Metric::ConvergenceLastUs,
    Metric::FirstConfigurationLastUs,
    Metric::IstiodCpuS,
    Metric::IstiodMemoryBytes,
    Metric::BytesPerProxy,
];

/// Trials that differ only in one factor, load and repeat.
struct Group<'a> {
    factor: &'a str,
    /// Values of the factor, ascending.
    values: &'a [f64],
    /// Values of the other factors.
    factors: &'a Factors,
    mode: Mode,
}

impl Group<'_> {
    fn effects(&self, trials: &[&TrialRecord], tables: &Tables<'_>) -> Vec<Slope> {
        let mut levels: Vec<&LoadPoint> = Vec::new();
        for trial in trials {
            if !levels.iter().any(|known| is_level(known, &trial.load)) {
                levels.push(&trial.load);
            }
        }
        levels.sort_by(|one, other| one.level().partial_cmp(&other.level()).unwrap_or(Ordering::Equal));
        let mut effects = self.held(&usable(trials, Figure::Memory));
        effects.extend(levels.into_iter().flat_map(|level| self.under_load(level, trials, tables)));
        effects
    }

    /// What each proxy holds before the load.
    fn held(&self, usable: &[&TrialRecord]) -> Vec<Slope> {
        let mut names: Vec<&str> = Vec::new();
        for usage in usable.iter().flat_map(|trial| &trial.components) {
            if usage.role == Role::Proxy && !names.contains(&usage.name.as_str()) {
                names.push(&usage.name);
            }
        }
        let of = |name: &str, metric: Metric| {
            let points = self.points(usable, |trial| {
                let usage = trial.components.iter().find(|usage| usage.name == name)?;
                metric.read_of(trial, usage)
            });
            let slope = self.effect(&points, metric, None)?;
            let effect = FactorEffect { component: Some(name.to_owned()), ..slope.effect };
            Some(Slope { effect, ..slope })
        };
        let all = names.into_iter().flat_map(|name| HELD.map(|metric| (name, metric)));
        all.filter_map(|(name, metric)| of(name, metric)).collect()
    }

    /// Effects under one load; the throughput only of a closed loop.
    fn under_load(&self, level: &LoadPoint, trials: &[&TrialRecord], tables: &Tables<'_>) -> Vec<Slope> {
        let trials: Vec<&TrialRecord> =
            trials.iter().copied().filter(|trial| is_level(&trial.load, level)).collect();
        let least = trials.iter().min_by_key(|trial| self.position(trial));
        let is_size = self.factor == BACKGROUND_SERVICES;
        let load = least.map(|trial| LoadPoint {
            surrounding_services: trial.load.surrounding_services.filter(|_| !is_size),
            ..trial.load.clone()
        });
        let cells: BTreeMap<usize, usize> = trials
            .iter()
            .filter_map(|trial| Some((self.position(trial)?, tables.position(trial.cell())?)))
            .collect();
        let of = |metric: Metric| {
            let row = tables.of_path(metric).map(|table| Row { table, cells: &cells });
            let points = self.points(&usable(&trials, metric.spoiled_by()), |trial| metric.read(trial));
            let slope = self.effect(&points, metric, row)?;
            let effect = FactorEffect { load: load.clone(), ..slope.effect };
            Some(Slope { effect, ..slope })
        };
        let is_estimated = |metric: &Metric| *metric != Metric::RateCompleted || level.is_closed_loop();
        let metrics = UNDER_LOAD.into_iter().filter(is_estimated).map(|metric| metric.under(level));
        metrics.chain(level.stream.as_ref().map(|_| Metric::EventGapP99Us)).filter_map(of).collect()
    }

    /// Index of a trial's value in `values`.
    fn position(&self, trial: &TrialRecord) -> Option<usize> {
        let quantity = trial.factors.get(self.factor)?.quantity(self.factor)?;
        self.values.iter().position(|value| *value == quantity)
    }

    fn points(&self, trials: &[&TrialRecord], read: impl Fn(&TrialRecord) -> Option<f64>) -> Points {
        let mut all: BTreeMap<usize, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
        for trial in trials {
            if let (Some(position), Some(figure)) = (self.position(trial), read(trial)) {
                all.entry(trial.repeat).or_default().entry(position).or_default().push(figure);
            }
        }
        let mean = |figures: Vec<f64>| figures.iter().sum::<f64>() / figures.len() as f64;
        let of_repeat = |values: BTreeMap<usize, Vec<f64>>| {
            values.into_iter().map(|(position, figures)| (position, mean(figures))).collect()
        };
        all.into_iter().map(|(repeat, values)| (repeat, of_repeat(values))).collect()
    }

    /// A figure against the factor. `row` is where the figure is among all cells.
    fn effect(&self, repeats: &Points, figure: Metric, row: Option<Row<'_>>) -> Option<Slope> {
        let positions: BTreeSet<usize> = repeats.values().flat_map(BTreeMap::keys).copied().collect();
        let (least, greatest) = (*positions.first()?, *positions.last()?);
        if least == greatest {
            return None;
        }
        let figures = repeats.values().flat_map(BTreeMap::values);
        let greatest_value = figures.copied().fold(0.0, f64::max);
        // A difference has two readings, each rounded to the histogram's resolution.
        let resolution = if figure.clock().is_some() { resolution_us(greatest_value) * 2.0 } else { 0.0 };
        let slopes: Vec<f64> = repeats.values().filter_map(|values| self.slope(values)).collect();
        let at = |position: usize| -> BTreeMap<usize, f64> {
            let repeats = repeats.iter();
            repeats.filter_map(|(repeat, values)| Some((*repeat, *values.get(&position)?))).collect()
        };
        let range = self.values[greatest] - self.values[least];
        let per_unit = interval::mean(&slopes, resolution / range)?;
        let own = Difference::new(per_unit, interval::p_value_of_mean(&slopes), slopes.len() as f64 - 1.0);
        let line = row.and_then(|row| row.slope(&positions, self.values, resolution / range)).unwrap_or(own);
        let ends = match row.and_then(|row| row.difference(greatest, least, resolution)) {
            Some(ends) => ends,
            None => {
                let (with, without) = (at(greatest), at(least));
                let estimate = interval::difference(&with, &without, resolution)?;
                Difference::new(estimate, None, interval::freedom(&with, &without))
            }
        };
        let effect = FactorEffect {
            factor: self.factor.to_owned(),
            values: positions.iter().map(|position| self.values[*position]).collect(),
            factors: self.factors.clone(),
            figure,
            mode: self.mode,
            component: None,
            load: None,
            per_unit: line.estimate,
            from_least_to_greatest: ends.estimate,
            verdict: FindingVerdict::CannotTell,
        };
        Some(Slope { effect, line, ends })
    }

    /// Least squares slope through the values of one repeat; `None` with a single value.
    fn slope(&self, figures: &BTreeMap<usize, f64>) -> Option<f64> {
        let count = figures.len() as f64;
        let mean_value = figures.keys().map(|position| self.values[*position]).sum::<f64>() / count;
        let mean = figures.values().sum::<f64>() / count;
        let (mut products, mut squares) = (0.0, 0.0);
        for (position, figure) in figures {
            let from_mean = self.values[*position] - mean_value;
            products += from_mean * (figure - mean);
            squares += from_mean * from_mean;
        }
        (squares > 0.0).then(|| products / squares)
    }
}

/// A figure in the cells that differ only in the factor.
#[derive(Clone, Copy)]
struct Row<'a> {
    table: &'a FigureTable,
    /// Positions in the table, by the index of the factor's value.
    cells: &'a BTreeMap<usize, usize>,
}

impl Row<'_> {
    fn slope(self, positions: &BTreeSet<usize>, values: &[f64], resolution: f64) -> Option<Difference> {
        let point = |position: &usize| Some((values[*position], *self.cells.get(position)?));
        let points = positions.iter().map(point).collect::<Option<Vec<_>>>()?;
        self.table.slope(&points, resolution)
    }

    fn difference(self, with: usize, without: usize, resolution: f64) -> Option<Difference> {
        let (with, without) = (*self.cells.get(&with)?, *self.cells.get(&without)?);
        self.table.difference(with, without, resolution)
    }
}

/// A figure by repeat, and within it by the index of the factor's value.
type Points = BTreeMap<usize, BTreeMap<usize, f64>>;

/// True if two loads have the same rate and clients, whatever a factor sets in them.
pub(super) fn is_level(one: &LoadPoint, other: &LoadPoint) -> bool {
    (one.rate, one.clients) == (other.rate, other.clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group<'a>(factors: &'a Factors, values: &'a [f64]) -> Group<'a> {
        Group { factor: BACKGROUND_SERVICES, values, factors, mode: Mode::Sidecar }
    }

    fn points(values: &[(usize, usize, f64)]) -> Points {
        let mut repeats = Points::new();
        for (repeat, position, value) in values {
            repeats.entry(*repeat).or_default().insert(*position, *value);
        }
        repeats
    }

    #[test]
    fn drift_between_repeats_does_not_change_slope() {
        let values = [0.0, 200.0, 1000.0];
        // 70 per service, on a base that rises by a thousand per repeat.
        let line = |repeat: usize, position: usize, noise: f64| {
            (repeat, position, 5000.0 + 1000.0 * repeat as f64 + 70.0 * values[position] + noise)
        };
        let points = points(&[
            line(0, 0, 0.0),
            line(0, 1, 40.0),
            line(0, 2, -10.0),
            line(1, 0, 20.0),
            line(1, 1, -30.0),
            line(1, 2, 15.0),
            line(2, 0, -10.0),
            line(2, 1, 0.0),
            line(2, 2, 20.0),
        ]);
        let (none, figure) = (Factors::new(), Metric::HeapAllocatedBeforeLoadBytes);
        let effect = group(&none, &values).effect(&points, figure, None).unwrap().effect;
        assert_eq!(effect.values, values);
        let slope = effect.per_unit;
        assert!((slope.estimate - 70.0).abs() < 0.1, "{slope:?}");
        assert!(slope.low.unwrap() > 69.5 && slope.high.unwrap() < 70.5, "{slope:?}");
        assert!((effect.from_least_to_greatest.estimate - 70_000.0).abs() < 30.0);
    }

    #[test]
    fn single_repeat_has_no_interval_and_single_value_no_slope() {
        let (none, figure) = (Factors::new(), Metric::ConfiguredInS);
        let group = group(&none, &[0.0, 10.0]);
        let effect = group.effect(&points(&[(0, 0, 1.0), (0, 1, 2.0)]), figure, None).unwrap().effect;
        assert!((effect.per_unit.estimate - 0.1).abs() < 1e-9);
        assert_eq!((effect.per_unit.low, effect.from_least_to_greatest.high), (None, None));
        assert!(group.effect(&points(&[(0, 1, 1.0), (1, 1, 2.0)]), figure, None).is_none());
        // Repeats that were cut short have no slope. Values that no repeat has in common have none at all.
        assert!(group.effect(&points(&[(0, 0, 1.0), (1, 1, 2.0)]), figure, None).is_none());
    }
}
