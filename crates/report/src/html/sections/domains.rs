//! Domains of a gateway: propagation time of a further domain, and the cost of a thousand domains, routes and
//! certificates.

use super::context::{Context, ModeRow};
use crate::footprint::in_us;
use crate::format::{Interval, TimeUnit};
use experiment::file::label::setting;
use results::{Estimate, FactorEffect, Factors, Metric};
use serde::Serialize;

/// Factors of the section, with their nouns.
const FACTORS: [(&str, &str); 3] = [
    ("ingress.domains", "domains"),
    ("ingress.paths", "paths of each domain"),
    ("ingress.credentials", "certificates"),
];

/// Memory per thousand at a gateway, in MB.
const HELD: [(Metric, &str); 4] = [
    (Metric::HeapAllocatedBeforeLoadBytes, "heap in use, MB"),
    (Metric::MemoryAnonymousBeforeLoadBytes, "anonymous memory, MB"),
    (Metric::MemoryBeforeLoadBytes, "memory, MB"),
    (Metric::ConfigurationSizeBytes, "configuration, MB"),
];

const THOUSAND: f64 = 1e3;
const MEGABYTE: f64 = 1e6;

/// Both tables; either may be empty.
#[derive(Debug, Serialize)]
pub struct DomainSection {
    further_columns: Vec<String>,
    further: Vec<ModeRow>,
    cost_columns: Vec<String>,
    costs: Vec<ModeRow>,
}

/// `None` if no gateway served domains, or no figures are known.
pub fn domains(context: &Context) -> Option<DomainSection> {
    let cells = &context.run.summary.cells;
    let components = || cells.iter().flat_map(|cell| &cell.components);
    let times = components()
        .filter_map(|component| Some(component.estimate(Metric::FurtherDomainInS)?.estimate * 1e6));
    let further_unit = TimeUnit::for_times(times);
    let (further, costs) = (further(context, further_unit), costs(context));
    let has_any = !further.is_empty() || !costs.is_empty();
    has_any.then(|| DomainSection {
        further_columns: vec![format!("propagated after, {}", further_unit.symbol())],
        further,
        cost_columns: HELD
            .iter()
            .map(|(_, name)| *name)
            .chain(["propagated later, s", "further domain later, s", "CPU of all proxies per request, µs"])
            .map(str::to_owned)
            .collect(),
        costs,
    })
}

/// One row per gateway and cell.
fn further(context: &Context, unit: TimeUnit) -> Vec<ModeRow> {
    let cells = context.conditions.all().flat_map(|at| context.cells_of(at));
    cells
        .flat_map(|cell| {
            cell.components.iter().filter_map(|gateway| {
                let time = gateway.estimate(Metric::FurtherDomainInS)?;
                let name = format!("{}, {}", gateway.name, context.conditions.label(cell.conditions()));
                Some(ModeRow::new(cell.mode, name, [unit.interval(&in_us(&time)).text()]))
            })
        })
        .collect()
}

/// One row per gateway and factor, with the other factors fixed.
fn costs(context: &Context) -> Vec<ModeRow> {
    let all = &context.run.summary.factor_effects;
    let mut rows = Vec::new();
    for (key, noun) in FACTORS {
        let of_factor = || all.iter().filter(move |effect| effect.factor == key);
        let held = of_factor().filter(|effect| effect.figure == Metric::ConfigurationSizeBytes);
        // Memory of the service's own proxy does not depend on the domains.
        let gateways = held.filter(|effect| effect.component.as_deref().is_some_and(is_gateway));
        for gateway in gateways {
            let find = |figure: Metric| of_factor().find(|effect| is_same(effect, gateway, figure));
            let scaled = |figure: Metric, factor: f64| {
                find(figure).map_or_else(String::new, |effect| text(effect, factor))
            };
            let cpu = of_factor().find(|effect| {
                effect.figure == Metric::ProxiesCpuCoresPer1000Rps
                    && (effect.mode, &effect.factors) == (gateway.mode, &gateway.factors)
            });
            let held = HELD.iter().map(|(figure, _)| scaled(*figure, THOUSAND / MEGABYTE));
            let later = [Metric::ConfiguredInS, Metric::FurtherDomainInS];
            let later = later.map(|figure| scaled(figure, THOUSAND));
            // Cores per 1000 requests/s equal milliseconds per request.
            let cpu = cpu.map_or_else(String::new, |effect| text(effect, THOUSAND * 1e3));
            rows.push(ModeRow::new(gateway.mode, name(gateway, noun), held.chain(later).chain([cpu])));
        }
    }
    rows
}

fn is_gateway(component: &str) -> bool {
    component.contains("gateway")
}

fn is_same(effect: &FactorEffect, gateway: &FactorEffect, figure: Metric) -> bool {
    effect.figure == figure
        && (effect.mode, &effect.factors, &effect.component)
            == (gateway.mode, &gateway.factors, &gateway.component)
}

fn text(effect: &FactorEffect, factor: f64) -> String {
    let slope: Estimate = effect.per_unit;
    Interval::scaled(&slope, factor).text()
}

/// Example: `1000 domains, ingress-gateway, 10 paths`.
fn name(gateway: &FactorEffect, noun: &str) -> String {
    let component = gateway.component.as_deref().unwrap_or_default();
    let factors: &Factors = &gateway.factors;
    factors.iter().fold(format!("1000 {noun}, {component}"), |name, (key, value)| {
        format!("{name}, {}", setting(key, value))
    })
}
