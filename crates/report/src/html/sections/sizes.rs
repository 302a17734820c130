//! Cost of the size of the mesh, if several sizes are compared: of a proxy per background service, and of
//! requests in the largest mesh against the smallest.

use super::context::Context;
use crate::format::{self, Interval, TimeUnit};
use crate::html::style::ModeStyle;
use crate::table::Difference;
use results::{Conditions, Estimate, Mode, SizeEffect, SizedFigure};
use serde::Serialize;

/// Cost of each background service per proxy, in kB.
const HELD: [(SizedFigure, &str); 4] = [
    (SizedFigure::HeapAllocatedBeforeLoadBytes, "heap in use, kB"),
    (SizedFigure::MemoryAnonymousBeforeLoadBytes, "anonymous memory, kB"),
    (SizedFigure::MemoryBeforeLoadBytes, "memory, kB"),
    (SizedFigure::ConfigurationSizeBytes, "configuration, kB"),
];

/// Effects on requests.
const SEEN: [(SizedFigure, &str); 3] = [
    (SizedFigure::ResponseTimeP50Us, "p50"),
    (SizedFigure::ResponseTimeP99Us, "p99"),
    (SizedFigure::ProxiesCpuCoresPer1000Rps, "CPU of all proxies for each request"),
];

/// Both tables of the section.
#[derive(Debug, Serialize)]
pub struct SizeSection {
    /// Sizes as text, such as `0, 200 and 1000`.
    sizes: String,
    smallest: String,
    largest: String,
    held_columns: Vec<String>,
    held: Vec<Row>,
    seen_columns: Vec<String>,
    seen: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    /// CSS class of the mode's colour.
    class: &'static str,
    name: String,
    /// One per column; empty if there is no such figure.
    values: Vec<String>,
}

/// `None` if the run compares no sizes.
pub fn sizes(context: &Context) -> Option<SizeSection> {
    let effects = &context.run.summary.size_effects;
    let sizes = &effects.iter().max_by_key(|effect| effect.sizes.len())?.sizes;
    let text = |services: &usize| format::count(*services as u64);
    let (last, rest) = sizes.split_last()?;
    let times = TimeUnit::for_times(
        effects.iter().filter(|effect| effect.figure == SizedFigure::ConfiguredInS).map(per_thousand_us),
    );
    let mut held_columns: Vec<String> = HELD.iter().map(|(_, name)| (*name).to_owned()).collect();
    held_columns.push(format!("in force later, {} for each 1000", times.symbol()));
    let latencies = TimeUnit::for_times(
        effects.iter().filter(|effect| effect.load.is_some()).map(|effect| in_us(effect).estimate),
    );
    Some(SizeSection {
        sizes: format!("{} and {}", rest.iter().map(text).collect::<Vec<_>>().join(", "), text(last)),
        smallest: sizes.first().map(text)?,
        largest: text(last),
        held_columns,
        held: held(effects, times),
        seen_columns: SEEN.iter().map(|(_, name)| format!("{name}, {}", latencies.symbol())).collect(),
        seen: seen(context, effects, latencies),
    })
}

/// One row per proxy of each mode.
fn held(effects: &[SizeEffect], times: TimeUnit) -> Vec<Row> {
    let mut proxies: Vec<(Mode, &str)> = Vec::new();
    for effect in effects {
        if let Some(name) = effect.component.as_deref()
            && !proxies.contains(&(effect.mode, name))
        {
            proxies.push((effect.mode, name));
        }
    }
    let row = |(mode, name): (Mode, &str)| {
        let find = |figure| {
            let is_it = |effect: &&SizeEffect| {
                effect.figure == figure && effect.mode == mode && effect.component.as_deref() == Some(name)
            };
            effects.iter().find(is_it)
        };
        let sized = |(figure, _): &(SizedFigure, &str)| {
            find(*figure)
                .map_or_else(String::new, |effect| Interval::scaled(&effect.for_each_service, 1e-3).text())
        };
        let later = find(SizedFigure::ConfiguredInS).map(|effect| {
            let later = effect.for_each_service.map(|time_s| time_s * 1e9);
            times.interval(&later).text()
        });
        let values = HELD.iter().map(sized).chain([later.unwrap_or_default()]).collect();
        Row { class: ModeStyle::for_mode(mode).class, name: format!("{mode}, {name}"), values }
    };
    proxies.into_iter().map(row).collect()
}

/// One row per mode and load.
fn seen(context: &Context, effects: &[SizeEffect], unit: TimeUnit) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let medians = effects.iter().filter(|effect| effect.figure == SizedFigure::ResponseTimeP50Us);
    for median in medians {
        let Some(load) = &median.load else { continue };
        let value = |(figure, _): &(SizedFigure, &str)| {
            let is_it = |effect: &&SizeEffect| {
                effect.figure == *figure && effect.mode == median.mode && effect.load.as_ref() == Some(load)
            };
            let found = effects.iter().find(is_it);
            found.map_or_else(String::new, |effect| {
                Difference::new((&in_us(effect), effect.judged()), unit).text()
            })
        };
        rows.push(Row {
            class: ModeStyle::for_mode(median.mode).class,
            name: format!(
                "{} at {}",
                median.mode,
                context.conditions.label(Conditions { factors: &median.factors, load })
            ),
            values: SEEN.iter().map(value).collect(),
        });
    }
    rows
}

/// A difference under load in microseconds; cores per 1000 requests/s equal milliseconds per request.
fn in_us(effect: &SizeEffect) -> Estimate {
    let factor = if effect.figure == SizedFigure::ProxiesCpuCoresPer1000Rps { 1e3 } else { 1.0 };
    effect.from_smallest_to_largest.map(|difference| difference * factor)
}

/// Additional propagation time per thousand services, in microseconds.
fn per_thousand_us(effect: &SizeEffect) -> f64 {
    effect.for_each_service.estimate * 1e9
}
