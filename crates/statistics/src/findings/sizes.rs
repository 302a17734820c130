//! The size of the mesh, if several sizes are compared: a proxy's memory per background service that it
//! knows, propagation of a change, and requests.

use super::factors;
use super::run::Run;
use results::{BACKGROUND_SERVICES, FactorEffect, Finding, FindingKind, Metric, Mode};

/// Effects of the size of the mesh, per mode with proxies.
pub(super) fn sizes(run: &Run<'_>) -> Vec<Finding> {
    let in_headline = headline_mode(run);
    let modes = run.modes_with_proxies().into_iter();
    modes
        .flat_map(|mode| {
            let held = if in_headline == Some(mode) { Vec::new() } else { held(run, mode) };
            let requests = factors::changes(run, mode, BACKGROUND_SERVICES, FindingKind::MeshSize);
            held.into_iter().chain(propagation(run, mode)).chain(requests)
        })
        .collect()
}

/// Headline of a run that compares sizes but no modes.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    let held = headline_mode(run).map_or_else(Vec::new, |mode| held(run, mode));
    held.into_iter().map(|finding| Finding { kind: FindingKind::Headline, ..finding }).collect()
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
fn held(run: &Run<'_>, mode: Mode) -> Vec<Finding> {
    let heap = |name: &str| {
        let mut heaps = effects(run, mode, Metric::HeapAllocatedBeforeLoadBytes);
        heaps.find(|effect| effect.component.as_deref() == Some(name)).map(finding)
    };
    effects(run, mode, Metric::MemoryAnonymousBeforeLoadBytes)
        .filter_map(|memory| Some((memory, memory.component.as_ref()?)))
        .flat_map(|(memory, name)| [Some(finding(memory)), heap(name)])
        .flatten()
        .collect()
}

fn propagation(run: &Run<'_>, mode: Mode) -> impl Iterator<Item = Finding> {
    let effects = effects(run, mode, Metric::ConfiguredInS);
    effects.filter(|effect| effect.component.is_some()).map(finding)
}

/// What each background service adds.
fn finding(effect: &FactorEffect) -> Finding {
    Finding {
        mode: Some(effect.mode),
        factors: effect.factors.clone(),
        subject: effect.component.clone(),
        verdict: Some(effect.verdict),
        ..Finding::new(FindingKind::MeshSize).with_figure(effect.figure, &effect.per_unit)
    }
}
