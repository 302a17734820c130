//! Numeric factors: the change from the smallest to the largest value.

use super::run::{Run, distance_from_reference, nearest};
use results::finding::{Effect, Measured};
use results::{BACKGROUND_SERVICES, Estimate, FactorEffect, Finding, Metric, Mode};

/// Findings per factor and mode, except for the size of the mesh, which has its own.
pub(super) fn factors(run: &Run<'_>) -> Vec<Finding> {
    let factors = run.experiment.factors.iter().filter(|factor| factor.key != BACKGROUND_SERVICES);
    let modes = &run.experiment.modes;
    let pairs = factors.flat_map(|factor| modes.iter().map(move |mode| (factor, *mode)));
    pairs.flat_map(|(factor, mode)| changes(run, mode, &factor.key)).map(Finding::FactorEffect).collect()
}

/// The effect on the median at the reference load, with the first values of the other factors, and the effects
/// on the throughput of a closed loop, on CPU and, except of the size of the mesh, on memory.
pub(super) fn changes(run: &Run<'_>, mode: Mode, key: &str) -> Vec<Effect> {
    let effects = || {
        let all = run.summary.factor_effects.iter();
        all.filter(|effect| effect.factor == key && effect.mode == mode)
    };
    let medians = effects().filter(|effect| {
        let load = effect.load.as_ref();
        load.is_some_and(|load| effect.figure == Metric::ResponseTimeP50Us.under(load))
    });
    let Some(median) = nearest_effect(medians) else { return Vec::new() };
    let beside = |figure: Metric| {
        let place = (&median.load, &median.factors);
        effects().find(move |effect| effect.figure == figure && (&effect.load, &effect.factors) == place)
    };
    let change =
        |of: Metric, figure: Metric| beside(of).map(|effect| content(effect, key, figure, &effect.change()));
    // What each other service costs before the load is more exact.
    let memory = change(Metric::ProxiesMemoryAnonymousBytes, Metric::MemoryAnonymousBytes);
    let changes = [
        change(Metric::RateCompleted, Metric::RateCompleted),
        change(median.figure, median.figure),
        change(Metric::ProxiesCpuCoresPer1000Rps, Metric::CpuCoresPer1000Rps),
        memory.filter(|_| key != BACKGROUND_SERVICES),
    ];
    changes.into_iter().flatten().collect()
}

/// The effect at the load nearest to the reference.
pub(super) fn nearest_effect<'a>(
    effects: impl Iterator<Item = &'a FactorEffect>,
) -> Option<&'a FactorEffect> {
    nearest(effects, |effect| effect.load.as_ref().map_or(0.0, distance_from_reference))
}

/// An effect with its figure and the change to report.
pub(super) fn content(effect: &FactorEffect, subject: &str, figure: Metric, change: &Estimate) -> Effect {
    Effect {
        mode: effect.mode,
        factors: effect.factors.clone(),
        load: effect.load.clone(),
        subject: subject.to_owned(),
        measured: Measured::new(figure, change),
        verdict: effect.verdict,
        n: change.n,
    }
}
