//! Sentences on factors whose values are numbers: what the greatest value changes against the least.

use super::run::{Run, distance_from_reference};
use super::words;
use experiment::Mode;
use experiment::schema::{BACKGROUND_SERVICES, Conditions, Estimate, FactorEffect, SizedFigure};

/// A sentence per factor and mode; the size of the mesh has sentences of its own.
pub(super) fn factors(run: &Run<'_>) -> Vec<String> {
    let factors = run.experiment.factors.iter().filter(|factor| factor.key != BACKGROUND_SERVICES);
    let modes = &run.experiment.modes;
    let pairs = factors.flat_map(|factor| modes.iter().map(move |mode| (factor, *mode)));
    pairs.filter_map(|(factor, mode)| sentence(run, &factor.key, mode)).collect()
}

fn sentence(run: &Run<'_>, key: &str, mode: Mode) -> Option<String> {
    let (median, changes) = changes(run, mode, key)?;
    let at = Conditions { factors: &median.factors, load: median.load.as_ref()? };
    let values = &run.experiment.factor(key)?.values;
    let typed = |number: &f64| values.iter().find(|value| value.quantity(key) == Some(*number));
    let (least, greatest) = (typed(median.values.first()?)?, typed(median.values.last()?)?);
    Some(format!(
        "With {key} {greatest} instead of {least}, mode {mode} under {}: {changes}.{}",
        words::described(at),
        cost_of_one(key, median)
    ))
}

/// What one more hop or connection costs: the slope over all values; empty where it is not shown, and for other factors.
fn cost_of_one(key: &str, median: &FactorEffect) -> String {
    let what = match key {
        "topology.hops" => "hop",
        "load.connections" => "connection",
        _ => return String::new(),
    };
    let slope = &median.per_unit;
    if !slope.excludes_zero() {
        return String::new();
    }
    format!(" Each further {what}: {} in the median.", change(slope, words::latency))
}

/// The effect on the median under the load that sentences speak of, with the first values of the other factors, and a
/// clause on it and on CPU.
pub(super) fn changes<'a>(run: &Run<'a>, mode: Mode, key: &str) -> Option<(&'a FactorEffect, String)> {
    let effects = || {
        let all = run.summary.factor_effects.iter();
        all.filter(|effect| effect.factor == key && effect.mode == mode)
    };
    let distance = |effect: &FactorEffect| effect.load.as_ref().map_or(0.0, distance_from_reference);
    let medians = effects().filter(|effect| effect.figure == SizedFigure::ResponseTimeP50Us);
    let median = medians.min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    let cpu = effects().find(|effect| {
        effect.figure == SizedFigure::ProxiesCpuCoresPer1000Rps
            && (&effect.load, &effect.factors) == (&median.load, &median.factors)
    });
    let cpu = cpu.map_or_else(String::new, |effect| {
        let difference = &effect.from_least_to_greatest;
        format!("; CPU of all proxies for each request: {}", change(difference, words::cpu_time))
    });
    let difference = &median.from_least_to_greatest;
    let latency = change(difference, words::latency);
    Some((median, format!("median response time: {latency}{cpu}")))
}

fn change(difference: &Estimate, text: fn(&Estimate) -> String) -> String {
    match (difference.low, difference.excludes_zero(), difference.estimate < 0.0) {
        (None, ..) => format!("{} more in one repeat, which shows no difference", text(difference)),
        (_, false, _) => format!("no difference shown ({})", text(difference)),
        (_, true, true) => format!("{} less", text(&difference.map_reversed(std::ops::Neg::neg))),
        (_, true, false) => format!("{} more", text(difference)),
    }
}
