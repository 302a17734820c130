//! The size of the mesh, if several sizes are compared: a proxy's memory per background service that it
//! knows, propagation of a change, and requests.

use super::factors::{changes, content};
use super::run::Run;
use results::finding::{Effect, Headline};
use results::{BACKGROUND_SERVICES, FactorEffect, Finding, Metric, Mode};

/// Effects of the size of the mesh, per mode with proxies.
pub(super) fn sizes(run: &Run<'_>) -> Vec<Finding> {
    let in_headline = headline_mode(run);
    let modes = run.modes_with_proxies().into_iter();
    modes
        .flat_map(|mode| {
            let held = if in_headline == Some(mode) { Vec::new() } else { held(run, mode) };
            held.into_iter().chain(propagation(run, mode)).chain(changes(run, mode, BACKGROUND_SERVICES))
        })
        .map(Finding::MeshSize)
        .collect()
}

/// Headline of a run that compares sizes but no modes, unless the experiment chooses a figure of requests.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    let mode = headline_mode(run).filter(|_| run.experiment.headline.is_none());
    let held = mode.into_iter().flat_map(|mode| held(run, mode));
    held.map(|effect| Finding::Headline(Headline::Effect(effect))).collect()
}

fn headline_mode(run: &Run<'_>) -> Option<Mode> {
    match run.modes_with_proxies().as_slice() {
        [mode] if run.experiment.modes.len() == 1 => Some(*mode),
        _ => None,
    }
}

fn effects<'a>(run: &Run<'a>, mode: Mode, figure: Metric) -> impl Iterator<Item = &'a FactorEffect> {
    let all = || run.summary.factor_effects.iter().filter(|effect| effect.factor == BACKGROUND_SERVICES);
    let first = all().next().map(|effect| &effect.factors);
    all().filter(move |effect| {
        effect.mode == mode && effect.figure == figure && Some(&effect.factors) == first
    })
}

/// Memory of each proxy, and of its heap, per background service.
fn held(run: &Run<'_>, mode: Mode) -> Vec<Effect> {
    let heap = |name: &str| {
        let mut heaps = effects(run, mode, Metric::HeapAllocatedBeforeLoadBytes);
        heaps.find_map(|effect| of_component(effect).filter(|effect| effect.subject == name))
    };
    effects(run, mode, Metric::MemoryAnonymousBeforeLoadBytes)
        .filter_map(of_component)
        .flat_map(|memory| {
            let heap = heap(&memory.subject);
            [Some(memory), heap]
        })
        .flatten()
        .collect()
}

fn propagation(run: &Run<'_>, mode: Mode) -> impl Iterator<Item = Effect> {
    effects(run, mode, Metric::ConfiguredInS).filter_map(of_component)
}

/// Effect of each background service on a component.
fn of_component(effect: &FactorEffect) -> Option<Effect> {
    Some(content(effect, effect.component.as_ref()?, effect.figure, &effect.per_unit))
}
