//! Cost of the size of the mesh, if several sizes are compared: of a proxy per background service, and of
//! requests in the largest mesh against the smallest.

use super::context::{Context, ModeRow};
use crate::differences::in_us;
use crate::format::{self, SizeUnit, TimeUnit};
use crate::table::Difference;
use results::{BACKGROUND_SERVICES, Conditions, FactorEffect, Metric, Mode};
use serde::Serialize;

/// Cost of each background service per proxy, in kB.
const HELD: [(Metric, &str); 4] = [
    (Metric::HeapAllocatedBeforeLoadBytes, "heap in use, kB"),
    (Metric::MemoryAnonymousBeforeLoadBytes, "anonymous memory, kB"),
    (Metric::MemoryBeforeLoadBytes, "memory, kB"),
    (Metric::ConfigurationSizeBytes, "configuration, kB"),
];

/// Effects on requests.
const SEEN: [(Metric, &str); 3] = [
    (Metric::ResponseTimeP50Us, "p50"),
    (Metric::ResponseTimeP99Us, "p99"),
    (Metric::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request"),
];

/// Both tables of the section.
#[derive(Debug, Serialize)]
pub struct SizeSection {
    /// Sizes as text, such as `0, 200 and 1000`.
    sizes: String,
    smallest: String,
    largest: String,
    held_columns: Vec<String>,
    held: Vec<ModeRow>,
    seen_columns: Vec<String>,
    seen: Vec<ModeRow>,
}

/// `None` if the run compares no sizes.
pub fn sizes(context: &Context) -> Option<SizeSection> {
    let all = context.run.summary.factor_effects.iter();
    let effects: Vec<&FactorEffect> = all.filter(|effect| effect.factor == BACKGROUND_SERVICES).collect();
    let sizes = &effects.iter().max_by_key(|effect| effect.values.len())?.values;
    let text = |services: &f64| format::count(*services as u64);
    let (last, rest) = sizes.split_last()?;
    let times = TimeUnit::for_times(
        effects
            .iter()
            .filter(|effect| effect.figure == Metric::ConfiguredInS)
            .map(|effect| per_thousand_us(effect)),
    );
    let mut held_columns: Vec<String> = HELD.iter().map(|(_, name)| (*name).to_owned()).collect();
    held_columns.push(format!("propagated later, {} per 1000", times.symbol()));
    let latencies = TimeUnit::for_times(
        effects.iter().filter(|effect| effect.load.is_some()).map(|effect| in_us(effect).estimate),
    );
    Some(SizeSection {
        sizes: format!("{} and {}", rest.iter().map(text).collect::<Vec<_>>().join(", "), text(last)),
        smallest: sizes.first().map(text)?,
        largest: text(last),
        held_columns,
        held: held(&effects, times),
        seen_columns: SEEN.iter().map(|(_, name)| format!("{name}, {}", latencies.symbol())).collect(),
        seen: seen(context, &effects, latencies),
    })
}

/// One row per proxy of each mode.
fn held(effects: &[&FactorEffect], times: TimeUnit) -> Vec<ModeRow> {
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
            let is_it = |effect: &&&FactorEffect| {
                effect.figure == figure && effect.mode == mode && effect.component.as_deref() == Some(name)
            };
            effects.iter().find(is_it)
        };
        let sized = |(figure, _): &(Metric, &str)| {
            find(*figure).map_or_else(String::new, |effect| {
                Difference::size((&effect.per_unit, effect.verdict), SizeUnit::Kilobytes).text()
            })
        };
        let later = find(Metric::ConfiguredInS).map(|effect| {
            let later = effect.per_unit.map(|time_s| time_s * 1e9);
            Difference::new((&later, effect.verdict), times).text()
        });
        let values = HELD.iter().map(sized).chain([later.unwrap_or_default()]);
        ModeRow::new(mode, format!("{mode}, {name}"), values)
    };
    proxies.into_iter().map(row).collect()
}

/// One row per mode and load.
fn seen(context: &Context, effects: &[&FactorEffect], unit: TimeUnit) -> Vec<ModeRow> {
    let mut rows: Vec<ModeRow> = Vec::new();
    let medians = effects.iter().filter(|effect| effect.figure == Metric::ResponseTimeP50Us);
    for median in medians {
        let Some(load) = &median.load else { continue };
        let value = |(figure, _): &(Metric, &str)| {
            let is_it = |effect: &&&FactorEffect| {
                effect.figure == *figure && effect.mode == median.mode && effect.load.as_ref() == Some(load)
            };
            let found = effects.iter().find(is_it);
            found.map_or_else(String::new, |effect| {
                Difference::new((&in_us(effect), effect.verdict), unit).text()
            })
        };
        let label = context.conditions.label(Conditions { factors: &median.factors, load });
        let name = format!("{} at {label}", median.mode);
        rows.push(ModeRow::new(median.mode, name, SEEN.iter().map(value)));
    }
    rows
}

/// Additional propagation time per thousand services, in microseconds.
fn per_thousand_us(effect: &FactorEffect) -> f64 {
    effect.per_unit.estimate * 1e9
}
