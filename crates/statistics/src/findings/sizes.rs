//! Sentences on the size of the mesh, where several are compared: what each other service costs a proxy that holds it, how
//! much later a change is in force, and whether requests feel it.

use super::run::Run;
use super::{factors, words};
use experiment::Mode;
use experiment::schema::{BACKGROUND_SERVICES, Estimate, SizeEffect, SizedFigure};

/// In so many services the time until a change is in force is told: for each it is a fraction of a millisecond.
const THOUSAND: f64 = 1000.0;

/// For each mode with proxies, what the size of the mesh changes.
pub(super) fn sizes(run: &Run<'_>) -> Vec<String> {
    let modes = run.modes_with_proxies().into_iter();
    modes.flat_map(|mode| [held(run, mode), in_force(run, mode), requests(run, mode)]).flatten().collect()
}

/// Where sizes are compared and no modes, that is the question.
pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    match run.modes_with_proxies().as_slice() {
        [mode] if run.experiment.modes.len() == 1 => held(run, *mode),
        _ => None,
    }
}

fn effects<'a>(run: &Run<'a>, mode: Mode, figure: SizedFigure) -> impl Iterator<Item = &'a SizeEffect> {
    let all = run.summary.size_effects.iter();
    let first = run.summary.size_effects.first().map(|effect| &effect.factors);
    all.filter(move |effect| effect.mode == mode && effect.figure == figure && Some(&effect.factors) == first)
}

fn held(run: &Run<'_>, mode: Mode) -> Option<String> {
    let of = |figure, name: &str| {
        let found = effects(run, mode, figure).find(|effect| effect.component.as_deref() == Some(name))?;
        Some(found.for_each_service)
    };
    let memory: Vec<&SizeEffect> = effects(run, mode, SizedFigure::MemoryAnonymousBeforeLoadBytes).collect();
    let costs: Vec<String> = memory
        .iter()
        .filter_map(|effect| {
            let name = effect.component.as_deref()?;
            let heap = of(SizedFigure::HeapAllocatedBeforeLoadBytes, name);
            let heap = heap.map_or_else(String::new, |heap| format!(", {} of heap in use", cost(&heap)));
            Some(format!("{name} {} of memory{heap}", cost(&effect.for_each_service)))
        })
        .collect();
    let first = memory.first()?;
    (!costs.is_empty()).then(|| {
        format!(
            "Each other service of the mesh costs {} (mode {mode}, before the load, {}).",
            costs.join("; "),
            among(first)
        )
    })
}

/// Such as `90 kB (88–92)`; where the interval includes zero, no cost is shown.
fn cost(bytes: &Estimate) -> String {
    match (bytes.low, bytes.excludes_zero()) {
        (Some(_), false) => format!("nothing that is shown ({})", words::size_interval(bytes)),
        _ => words::size_interval(bytes),
    }
}

fn in_force(run: &Run<'_>, mode: Mode) -> Option<String> {
    let later: Vec<String> = effects(run, mode, SizedFigure::ConfiguredInS)
        .filter_map(|effect| {
            let of_thousand = effect.for_each_service.map(|time_s| time_s * THOUSAND * 1e6);
            let time = words::latency(&of_thousand);
            let later = match (of_thousand.low, of_thousand.estimate) {
                (Some(_), _) if !of_thousand.excludes_zero() => format!("no difference shown ({time})"),
                (_, slope) if slope < 0.0 => format!("sooner ({time})"),
                _ => format!("{time} later"),
            };
            Some(format!("at {} {later}", effect.component.as_deref()?))
        })
        .collect();
    (!later.is_empty()).then(|| {
        format!(
            "For each 1000 other services more, a change is in force {} (mode {mode}).",
            words::list(&later)
        )
    })
}

/// Response time and CPU in the largest mesh against the smallest, under the load that sentences speak of.
fn requests(run: &Run<'_>, mode: Mode) -> Option<String> {
    let (median, changes) = factors::changes(run, mode, BACKGROUND_SERVICES)?;
    let (smallest, largest) = (median.values.first()?, median.values.last()?);
    let offered = median.load.as_ref().map(words::offered)?;
    Some(format!(
        "Among {largest} other services instead of {smallest}, mode {mode} under {offered}: {changes}."
    ))
}

/// Such as `from meshes of 0, 200 and 1000 other services`.
fn among(effect: &SizeEffect) -> String {
    let sizes: Vec<String> = effect.sizes.iter().map(ToString::to_string).collect();
    format!("from meshes of {} other services", words::list(&sizes))
}
