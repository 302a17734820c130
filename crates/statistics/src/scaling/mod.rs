//! Scaling laws answer "What do twice the cores, workers or replicas give me?": throughput as a function of a CPU limit, or
//! of a number of workers or replicas.
//!
//! A law is fitted per mode, combination of the other factors and closed loop, if the factor has at least
//! three values. In an open loop the throughput is that at the highest rate that the target did not keep up
//! with. [`usl`] has the law and its fit. If the limit is the factor, throttling by it is not a fault: such
//! trials count.

mod lack_of_fit;
mod usl;

use crate::retakes::fills_machine;
use crate::trials::{
    TrialsByCell, first_takes, is_limited_by_generator, is_usable_at_limit, shows_saturation,
};
use experiment::Experiment;
use noise::{Noise, Place, Values};
use results::{
    FactorValue, Factors, Figure, LoadPoint, MeasuredRange, Mode, OwnedCellKey, Role, Scaling, ScalingLaw,
    ScalingResidual, TrialRecord, UNIVERSAL_SCALABILITY_LAW,
};
use std::collections::BTreeMap;
use usl::Observation;

/// Minimum number of values for a law.
const MIN_VALUES: usize = 3;

/// A factor key that throughput scales with.
struct ScaledKey {
    key: &'static str,
    /// Role that the limit applies to.
    limited: Role,
}

const KEYS: [ScaledKey; 6] = [
    ScaledKey { key: "gateway.cpu", limited: Role::Proxy },
    ScaledKey { key: "proxy.cpu", limited: Role::Proxy },
    ScaledKey { key: "server.cpu", limited: Role::App },
    ScaledKey { key: "gateway.workers", limited: Role::Proxy },
    ScaledKey { key: "proxy.workers", limited: Role::Proxy },
    ScaledKey { key: "topology.replicas", limited: Role::App },
];

/// The laws of a run; `None` if there are none.
pub(crate) fn scaling(
    experiment: &Experiment,
    cells: &[OwnedCellKey],
    trials: &TrialsByCell<'_>,
) -> Option<Scaling> {
    let swept = KEYS.iter().filter(|key| experiment.factor(key.key).is_some());
    let mut laws =
        swept.flat_map(|key| series(experiment, key, cells)).filter_map(|series| series.law(trials));
    let main = laws.next()?;
    Some(Scaling { main, others: laws.collect() })
}

/// Cells that differ in one factor only and, in an open loop, in the rate.
struct Series<'a> {
    key: &'a ScaledKey,
    mode: Mode,
    /// The other factors.
    factors: Factors,
    load: LoadPoint,
    cells: Vec<(f64, &'a OwnedCellKey)>,
}

/// The series of a key, the heaviest load first.
fn series<'a>(experiment: &Experiment, key: &'a ScaledKey, cells: &'a [OwnedCellKey]) -> Vec<Series<'a>> {
    let mut all: Vec<Series<'a>> = Vec::new();
    let is_limited = |cell: &&OwnedCellKey| experiment.touches(cell.mode, key.key) && !bypasses_gateway(cell);
    for cell in cells.iter().filter(is_limited) {
        let Some(at) = cell.factors.get(key.key).and_then(|value| value.quantity(key.key)) else { continue };
        let mut factors = cell.factors.clone();
        factors.remove(key.key);
        let is_same = |known: &&mut Series<'_>| {
            (known.mode, &known.factors) == (cell.mode, &factors) && is_same_level(&known.load, &cell.load)
        };
        match all.iter_mut().find(is_same) {
            Some(known) => {
                if cell.load.rate > known.load.rate {
                    known.load = cell.load.clone();
                }
                known.cells.push((at, cell));
            }
            None => all.push(Series {
                key,
                mode: cell.mode,
                factors,
                load: cell.load.clone(),
                cells: vec![(at, cell)],
            }),
        }
    }
    all.sort_by_key(|series| std::cmp::Reverse(series.load.clients));
    all
}

/// True if the cell's path bypasses the gateway: its limit has no effect then.
fn bypasses_gateway(cell: &OwnedCellKey) -> bool {
    cell.factors.get("ingress.scenario") == Some(&FactorValue::Text("direct".to_owned()))
}

/// True if two loads are the same closed loop, or rates of the same open loop.
fn is_same_level(one: &LoadPoint, other: &LoadPoint) -> bool {
    one.rate.is_some() == other.rate.is_some()
        && LoadPoint { rate: None, ..one.clone() } == LoadPoint { rate: None, ..other.clone() }
}

impl Series<'_> {
    fn law(&self, trials: &TrialsByCell<'_>) -> Option<ScalingLaw> {
        let values = self.values(trials);
        if values.len() < MIN_VALUES {
            return None;
        }
        let observations = observations(&values);
        let law = usl::fit(&observations)?;
        let mut scaling = ScalingLaw {
            law: UNIVERSAL_SCALABILITY_LAW.to_owned(),
            factor: self.key.key.to_owned(),
            figure: Figure::Throughput.name().to_owned(),
            mode: self.mode,
            factors: self.factors.clone(),
            load: self.load.clone(),
            parameters: law.parameters,
            residuals: Vec::new(),
            measured: MeasuredRange { from: values.first()?.0, to: values.last()?.0 },
            peak: law.peak,
            lack_of_fit: law.lack_of_fit,
            deviation: law.deviation,
        };
        let residual = |(at, values): &(f64, Values)| {
            let logarithms: f64 = values.values().map(|value| value.ln()).sum();
            ScalingResidual {
                at: *at,
                measured: (logarithms / values.len() as f64).exp(),
                fitted: scaling.throughput(*at),
                n: values.len(),
                machine_full: self.fills_machine(*at, trials),
            }
        };
        scaling.residuals = values.iter().map(residual).collect();
        Some(scaling)
    }

    /// Throughput by repeat at each value of the factor, ascending.
    fn values(&self, trials: &TrialsByCell<'_>) -> Vec<(f64, Values)> {
        // Sorted by rate, so that the highest rate of a repeat overwrites the others.
        let mut cells: Vec<_> = self.cells.iter().collect();
        cells.sort_by(|(_, one), (_, other)| one.load.rate.partial_cmp(&other.load.rate).expect("no NaN"));
        let mut all: BTreeMap<u64, (f64, Values)> = BTreeMap::new();
        for (at, cell) in cells {
            let (_, values) = all.entry(at.to_bits()).or_insert_with(|| (*at, Values::new()));
            for trial in first_takes(trials.of(cell.key()), |trial| self.is_usable(trial)) {
                let completed = trial.result.as_ref().map(|result| result.rate.completed);
                values.extend(completed.filter(|rate| *rate > 0.0).map(|rate| (trial.repeat, rate)));
            }
        }
        // The bit patterns of positive floats sort like the numbers.
        all.into_values().filter(|(_, values)| !values.is_empty()).collect()
    }

    /// True if all CPUs of the machine were busy at a value: throughput was then limited by everything on the
    /// machine.
    fn fills_machine(&self, at: f64, trials: &TrialsByCell<'_>) -> bool {
        let cells = self.cells.iter().filter(|(value, _)| *value == at);
        let usable = cells.flat_map(|(_, cell)| trials.of(cell.key())).copied();
        fills_machine(usable.filter(|trial| self.is_usable(trial)))
    }

    fn is_usable(&self, trial: &TrialRecord) -> bool {
        let saturates = shows_saturation(&trial.verdict) && !is_limited_by_generator(trial);
        is_usable_at_limit(trial, Figure::Throughput, self.key.limited)
            && (trial.load.rate.is_none() || saturates)
    }
}

/// Trials weighted by the noise of their value.
fn observations(values: &[(f64, Values)]) -> Vec<Observation> {
    let mut repeats: Vec<usize> = values.iter().flat_map(|(_, values)| values.keys().copied()).collect();
    repeats.sort_unstable();
    repeats.dedup();
    // Values of one factor are as similar as loads of a mode.
    let place = Place { mode: 0, conditions: 0 };
    let cells: Vec<(Place, &Values)> = values.iter().map(|(_, values)| (place, values)).collect();
    let noise = Noise::new(&cells);
    let weights: Option<Vec<f64>> =
        (0..cells.len()).map(|cell| Some(1.0 / noise.of_trials(cell)?.variance)).collect();
    let weights = weights.unwrap_or_else(|| vec![1.0; cells.len()]);
    let count: usize = values.iter().map(|(_, values)| values.len()).sum();
    let sum: f64 =
        values.iter().zip(&weights).map(|((_, values), weight)| values.len() as f64 * weight).sum();
    let of_value = |((at, values), weight): (&(f64, Values), f64)| {
        let observation = |(repeat, value): (&usize, &f64)| Observation {
            at: *at,
            repeat: repeats.binary_search(repeat).expect("a repeat of the values"),
            logarithm: value.ln(),
            weight: weight * count as f64 / sum,
        };
        values.iter().map(observation).collect::<Vec<_>>()
    };
    values.iter().zip(weights).flat_map(of_value).collect()
}

#[cfg(test)]
mod tests;
