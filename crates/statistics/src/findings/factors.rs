//! Numeric factors: the change from the smallest to the largest value.

use super::run::{Run, distance_from_reference};
use results::{BACKGROUND_SERVICES, Estimate, FactorEffect, Finding, FindingKind, Metric, Mode};

/// Findings per factor and mode, except for the size of the mesh, which has its own.
pub(super) fn factors(run: &Run<'_>) -> Vec<Finding> {
    let factors = run.experiment.factors.iter().filter(|factor| factor.key != BACKGROUND_SERVICES);
    let modes = &run.experiment.modes;
    let pairs = factors.flat_map(|factor| modes.iter().map(move |mode| (factor, *mode)));
    pairs.flat_map(|(factor, mode)| changes(run, mode, &factor.key, FindingKind::FactorEffect)).collect()
}

/// The effect on the median at the reference load, with the first values of the other factors, and the effects
/// on the throughput of a closed loop, on CPU and, except of the size of the mesh, on memory.
pub(super) fn changes(run: &Run<'_>, mode: Mode, key: &str, kind: FindingKind) -> Vec<Finding> {
    let effects = || {
        let all = run.summary.factor_effects.iter();
        all.filter(|effect| effect.factor == key && effect.mode == mode)
    };
    let distance = |effect: &FactorEffect| effect.load.as_ref().map_or(0.0, distance_from_reference);
    let medians = effects().filter(|effect| effect.figure == Metric::ResponseTimeP50Us);
    let Some(median) = medians.min_by(|one, other| distance(one).total_cmp(&distance(other))) else {
        return Vec::new();
    };
    let beside = |figure: Metric| {
        let place = (&median.load, &median.factors);
        effects().find(move |effect| effect.figure == figure && (&effect.load, &effect.factors) == place)
    };
    let finding = |effect: &FactorEffect, figure: Metric| {
        let change: &Estimate = &effect.from_least_to_greatest;
        Finding {
            mode: Some(mode),
            factors: effect.factors.clone(),
            load: effect.load.clone(),
            verdict: Some(effect.verdict),
            ..Finding::new(kind).about(key).with_figure(figure, change)
        }
    };
    let completed = beside(Metric::RateCompleted);
    let completed = completed.map(|effect| finding(effect, Metric::RateCompleted));
    let cpu = beside(Metric::ProxiesCpuCoresPer1000Rps);
    let cpu = cpu.map(|effect| finding(effect, Metric::CpuCoresPer1000Rps));
    // What each other service costs before the load is more exact.
    let memory = beside(Metric::ProxiesMemoryAnonymousBytes).filter(|_| kind == FindingKind::FactorEffect);
    let memory = memory.map(|effect| finding(effect, Metric::MemoryAnonymousBytes));
    completed
        .into_iter()
        .chain([finding(median, Metric::ResponseTimeP50Us)])
        .chain(cpu)
        .chain(memory)
        .collect()
}
