//! The size of the mesh, if several sizes are compared: a proxy's memory per background service that it
//! knows, propagation of a change, and requests.

use super::factors;
use super::run::Run;
use results::finding::figures;
use results::{BACKGROUND_SERVICES, Finding, FindingKind, Mode, SizeEffect, SizedFigure};

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

fn effects<'a>(run: &Run<'a>, mode: Mode, figure: SizedFigure) -> impl Iterator<Item = &'a SizeEffect> {
    let all = run.summary.size_effects.iter();
    let first = run.summary.size_effects.first().map(|effect| &effect.factors);
    all.filter(move |effect| effect.mode == mode && effect.figure == figure && Some(&effect.factors) == first)
}

/// Memory of each proxy, and of its heap, per background service.
fn held(run: &Run<'_>, mode: Mode) -> Vec<Finding> {
    let of = |figure, name| {
        effects(run, mode, figure).filter(move |effect| effect.component == Some(String::clone(name)))
    };
    effects(run, mode, SizedFigure::MemoryAnonymousBeforeLoadBytes)
        .filter_map(|memory| Some((memory, memory.component.as_ref()?)))
        .flat_map(|(memory, name)| {
            let heap = of(SizedFigure::HeapAllocatedBeforeLoadBytes, name);
            let heap = heap.map(|effect| finding(effect, figures::HEAP_BEFORE_LOAD)).next();
            [Some(finding(memory, figures::ANONYMOUS_BEFORE_LOAD)), heap]
        })
        .flatten()
        .collect()
}

fn propagation(run: &Run<'_>, mode: Mode) -> impl Iterator<Item = Finding> {
    let effects = effects(run, mode, SizedFigure::ConfiguredInS);
    effects.filter(|effect| effect.component.is_some()).map(|effect| finding(effect, figures::CONFIGURED_IN))
}

/// What each background service adds.
fn finding(effect: &SizeEffect, figure: &str) -> Finding {
    let slope = &effect.for_each_service;
    Finding {
        mode: Some(effect.mode),
        factors: effect.factors.clone(),
        subject: effect.component.clone(),
        verdict: Some(effect.judged()),
        ..Finding::new(FindingKind::MeshSize).with_figure(figure, slope)
    }
}
