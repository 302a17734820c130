//! Figures against the size of the mesh.
//!
//! The line is fitted within each repeat, by least squares through its sizes, and the estimate is the mean of the repeats'
//! slopes: what drifts from repeat to repeat moves all sizes of one alike, and so no slope. What a proxy holds before the
//! load is the same under every load; trials of one repeat and size are averaged there.

use super::resolution_us;
use super::totals::Sum;
use crate::curve::is_valid;
use crate::interval;
use experiment::Mode;
use experiment::schema::{
    ComponentUsage, LoadPoint, ProxyHoldings, Role, SizeEffect, SizedFigure, TrialRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// What rises with the size of the mesh and what does not; nothing where the trials have one size.
pub(super) fn effects(loads: &[LoadPoint], modes: &[Mode], trials: &[TrialRecord]) -> Vec<SizeEffect> {
    let mut levels: Vec<LoadPoint> = Vec::new();
    for load in loads {
        let level = LoadPoint { surrounding_services: None, ..load.clone() };
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    modes
        .iter()
        .flat_map(|mode| {
            let valid: Vec<&TrialRecord> =
                trials.iter().filter(|trial| trial.mode == *mode && is_valid(trial)).collect();
            let mut effects = held(*mode, &valid);
            effects.extend(levels.iter().flat_map(|level| under_load(*mode, level, &valid)));
            effects
        })
        .collect()
}

/// A figure of a trial's component.
type OfComponent = fn(&TrialRecord, &ComponentUsage) -> Option<f64>;

/// What each proxy of a mode holds before the load.
fn held(mode: Mode, valid: &[&TrialRecord]) -> Vec<SizeEffect> {
    let figures: [(SizedFigure, OfComponent); 5] = [
        (SizedFigure::HeapAllocatedBeforeLoadBytes, |_, usage| {
            let heap = |held: &ProxyHoldings| held.heap_before_load;
            Some(usage.holdings.as_ref().and_then(heap)?.allocated_bytes as f64)
        }),
        (SizedFigure::MemoryAnonymousBeforeLoadBytes, |_, usage| {
            usage.memory_anonymous_before_load_bytes.map(|bytes| bytes as f64)
        }),
        (SizedFigure::MemoryBeforeLoadBytes, |_, usage| {
            usage.memory_before_load_bytes.map(|bytes| bytes as f64)
        }),
        (SizedFigure::ConfigurationSizeBytes, |_, usage| {
            let configuration = |held: &ProxyHoldings| held.configuration;
            Some(usage.holdings.as_ref().and_then(configuration)?.size_bytes as f64)
        }),
        (SizedFigure::ConfiguredInS, |trial, usage| {
            trial.push.as_ref()?.in_force_s.get(&usage.name).copied()
        }),
    ];
    let mut names: Vec<&str> = Vec::new();
    for usage in valid.iter().flat_map(|trial| &trial.components) {
        if usage.role == Role::Proxy && !names.contains(&usage.name.as_str()) {
            names.push(&usage.name);
        }
    }
    let of = |name: &str, figure: SizedFigure, read: OfComponent| {
        let points = Points::new(valid, |trial| {
            let usage = trial.components.iter().find(|usage| usage.name == name)?;
            read(trial, usage)
        });
        points
            .effect(mode, figure, |_| 0.0)
            .map(|effect| SizeEffect { component: Some(name.to_owned()), ..effect })
    };
    names
        .into_iter()
        .flat_map(|name| figures.into_iter().filter_map(move |(figure, read)| of(name, figure, read)))
        .collect()
}

/// Response times and CPU of a mode under one load.
fn under_load(mode: Mode, level: &LoadPoint, valid: &[&TrialRecord]) -> Vec<SizeEffect> {
    let is_of_level =
        |trial: &TrialRecord| LoadPoint { surrounding_services: None, ..trial.load.clone() } == *level;
    let trials: Vec<&TrialRecord> = valid.iter().copied().filter(|trial| is_of_level(trial)).collect();
    let time = |figure, read: fn(&TrialRecord) -> Option<f64>| {
        // Two readings, each to the nearest of what its histogram tells apart.
        Points::new(&trials, read).effect(mode, figure, |greatest| resolution_us(greatest) * 2.0)
    };
    let effects = [
        time(SizedFigure::ResponseTimeP50Us, |trial| Some(trial.result.as_ref()?.response_time_us.p50)),
        time(SizedFigure::ResponseTimeP99Us, |trial| Some(trial.result.as_ref()?.response_time_us.p99)),
        Points::new(&trials, |trial| Sum::of(Role::Proxy, trial)?.cpu_cores_per_1000_rps()).effect(
            mode,
            SizedFigure::ProxiesCpuCoresPer1000Rps,
            |_| 0.0,
        ),
    ];
    let with_load = |effect: SizeEffect| SizeEffect { load: Some(level.clone()), ..effect };
    effects.into_iter().flatten().map(with_load).collect()
}

/// A figure by repeat and size.
struct Points {
    repeats: BTreeMap<usize, BTreeMap<usize, f64>>,
}

impl Points {
    fn new(trials: &[&TrialRecord], read: impl Fn(&TrialRecord) -> Option<f64>) -> Self {
        let mut all: BTreeMap<usize, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
        for trial in trials {
            if let (Some(services), Some(value)) = (trial.load.surrounding_services, read(trial)) {
                all.entry(trial.repeat).or_default().entry(services).or_default().push(value);
            }
        }
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let of_repeat = |sizes: BTreeMap<usize, Vec<f64>>| {
            sizes.into_iter().map(|(services, values)| (services, mean(values))).collect()
        };
        Self { repeats: all.into_iter().map(|(repeat, sizes)| (repeat, of_repeat(sizes))).collect() }
    }

    /// The figure against the size. `resolution` tells from the greatest value the least difference that can be measured.
    fn effect(&self, mode: Mode, figure: SizedFigure, resolution: impl Fn(f64) -> f64) -> Option<SizeEffect> {
        let sizes: BTreeSet<usize> = self.repeats.values().flat_map(BTreeMap::keys).copied().collect();
        let (smallest, largest) = (*sizes.first()?, *sizes.last()?);
        if smallest == largest {
            return None;
        }
        let values = self.repeats.values().flat_map(BTreeMap::values);
        let resolution = resolution(values.copied().fold(0.0, f64::max));
        let slopes: Vec<f64> = self.repeats.values().filter_map(slope).collect();
        let at = |services: usize| -> BTreeMap<usize, f64> {
            let repeats = self.repeats.iter();
            repeats.filter_map(|(repeat, sizes)| Some((*repeat, *sizes.get(&services)?))).collect()
        };
        Some(SizeEffect {
            figure,
            mode,
            component: None,
            load: None,
            sizes: sizes.iter().copied().collect(),
            for_each_service: interval::mean(&slopes, resolution / (largest - smallest) as f64)?,
            from_smallest_to_largest: interval::difference(&at(largest), &at(smallest), resolution)?,
        })
    }
}

/// The least squares line through the sizes of one repeat; nothing where it has one size alone.
fn slope(sizes: &BTreeMap<usize, f64>) -> Option<f64> {
    let count = sizes.len() as f64;
    let mean_size = sizes.keys().map(|services| *services as f64).sum::<f64>() / count;
    let mean = sizes.values().sum::<f64>() / count;
    let (mut products, mut squares) = (0.0, 0.0);
    for (services, value) in sizes {
        let from_mean = *services as f64 - mean_size;
        products += from_mean * (value - mean);
        squares += from_mean * from_mean;
    }
    (squares > 0.0).then(|| products / squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(usize, usize, f64)]) -> Points {
        let mut repeats: BTreeMap<usize, BTreeMap<usize, f64>> = BTreeMap::new();
        for (repeat, services, value) in values {
            repeats.entry(*repeat).or_default().insert(*services, *value);
        }
        Points { repeats }
    }

    #[test]
    fn drift_between_repeats_is_in_no_slope() {
        // 70 a service, on a base that rises by a thousand from repeat to repeat.
        let line = |repeat: usize, services: usize, noise: f64| {
            (repeat, services, 5000.0 + 1000.0 * repeat as f64 + 70.0 * services as f64 + noise)
        };
        let points = points(&[
            line(0, 0, 0.0),
            line(0, 200, 40.0),
            line(0, 1000, -10.0),
            line(1, 0, 20.0),
            line(1, 200, -30.0),
            line(1, 1000, 15.0),
            line(2, 0, -10.0),
            line(2, 200, 0.0),
            line(2, 1000, 20.0),
        ]);
        let figure = SizedFigure::HeapAllocatedBeforeLoadBytes;
        let effect = points.effect(Mode::Sidecar, figure, |_| 0.0).unwrap();
        assert_eq!(effect.sizes, [0, 200, 1000]);
        let slope = effect.for_each_service;
        assert!((slope.estimate - 70.0).abs() < 0.1, "{slope:?}");
        assert!(slope.low.unwrap() > 69.5 && slope.high.unwrap() < 70.5, "{slope:?}");
        assert!((effect.from_smallest_to_largest.estimate - 70_000.0).abs() < 30.0);
    }

    #[test]
    fn one_repeat_has_no_interval_and_one_size_no_slope() {
        let figure = SizedFigure::ConfiguredInS;
        let effect = points(&[(0, 0, 1.0), (0, 10, 2.0)]).effect(Mode::Sidecar, figure, |_| 0.0).unwrap();
        assert!((effect.for_each_service.estimate - 0.1).abs() < 1e-9);
        assert_eq!((effect.for_each_service.low, effect.from_smallest_to_largest.high), (None, None));
        assert!(points(&[(0, 7, 1.0), (1, 7, 2.0)]).effect(Mode::Sidecar, figure, |_| 0.0).is_none());
        // Repeats that were cut short have no slope; sizes that never met in one have none at all.
        assert!(points(&[(0, 0, 1.0), (1, 7, 2.0)]).effect(Mode::Sidecar, figure, |_| 0.0).is_none());
    }
}
