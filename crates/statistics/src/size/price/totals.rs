//! Resources and cost of some of a mode's proxies, and how they change with other laws or proxies.

use super::law::{CpuLaw, Extreme, MemoryLaw};
use super::traffic::{Kind, Unit};
use super::{FullScale, Laws, Target};
use crate::control_plane::linear::over_repeats;
use crate::control_plane::size::over;
use crate::size::usage::hull;
use crate::summary::reservation::{Amount, NODE_PROXY, PROXY};
use results::{Estimate, Mode, PriceChange, PricedMode, Prices};
use std::collections::BTreeSet;

/// Proxies with the laws of their kind.
pub(super) struct Totals<'a> {
    used: Vec<(&'a Unit, &'a CpuLaw, Option<&'a MemoryLaw>)>,
    /// The size of the mesh.
    at: [f64; 2],
    proxies: f64,
    reserved: Amount,
}

/// A sum over proxies in a repeat, or by the laws of all repeats together.
type Value<'a> = dyn Fn(Option<usize>, Extreme) -> f64 + 'a;

impl<'a> Totals<'a> {
    pub fn new(units: &[&'a Unit], laws: &'a Laws, target: &Target<'_>) -> Self {
        let used = units.iter().map(|unit| {
            let (cpu, memory) = &laws[&unit.key.0];
            (*unit, cpu, memory.as_ref())
        });
        Self {
            used: used.collect(),
            at: [target.pods_in_mesh, target.requests_per_s],
            proxies: units.iter().map(|unit| unit.proxies).sum(),
            reserved: Amount::sum(units.iter().map(|unit| reserved(unit, target.full))),
        }
    }

    fn cpu(&self, repeat: Option<usize>, extreme: Extreme) -> f64 {
        let each = self
            .used
            .iter()
            .map(|(unit, law, _)| unit.proxies * law.cost(repeat, &unit.key.1, unit.requests_per_s, extreme));
        each.sum()
    }

    /// Bytes; 0 if a kind was not measured.
    fn memory(&self, repeat: Option<usize>) -> f64 {
        let each = self
            .used
            .iter()
            .map(|(unit, _, law)| Some(unit.proxies * (*law)?.cost(repeat, &unit.key.1, &self.at)));
        each.sum::<Option<f64>>().unwrap_or(0.0)
    }

    fn cost(&self, prices: &Prices, repeat: Option<usize>, extreme: Extreme) -> f64 {
        prices.per_month(self.cpu(repeat, extreme), self.memory(repeat), self.proxies)
    }

    fn has_memory(&self) -> bool {
        self.used.iter().all(|(.., law)| law.is_some())
    }

    fn is_resolved(&self) -> bool {
        self.used.iter().all(|(_, law, _)| law.is_resolved())
    }

    fn repeats_of_cpu(&self) -> BTreeSet<usize> {
        common(self.used.iter().map(|(_, law, _)| law.repeats()))
    }

    fn repeats_of_memory(&self) -> BTreeSet<usize> {
        common(self.used.iter().filter_map(|(.., law)| law.map(MemoryLaw::repeats)))
    }

    fn estimate(&self, repeats: &BTreeSet<usize>, value: &Value<'_>) -> Estimate {
        if self.used.is_empty() {
            return Estimate { low: Some(0.0), high: Some(0.0), ..Estimate::default() };
        }
        let of = |extreme: Extreme| over(repeats, &|repeat| value(repeat, extreme));
        let proportional = of(Extreme::Proportional);
        if self.is_resolved() { proportional } else { hull(proportional, of(Extreme::Constant)) }
    }

    /// The proxies of a mode, without latency.
    pub fn priced(&self, mode: Mode, prices: Option<&Prices>) -> PricedMode {
        let (of_cpu, of_memory) = (self.repeats_of_cpu(), self.repeats_of_memory());
        let reserved = &self.reserved;
        let cost = |prices: &Prices| {
            let both = &of_cpu & &of_memory;
            self.estimate(&both, &|repeat, extreme| self.cost(prices, repeat, extreme))
        };
        PricedMode {
            mode,
            proxies: self.proxies as u64,
            cpu_cores_used: Some(self.estimate(&of_cpu, &|repeat, extreme| self.cpu(repeat, extreme))),
            cpu_cores_reserved: reserved.cpu_cores,
            memory_bytes_used: self
                .has_memory()
                .then(|| self.estimate(&of_memory, &|repeat, _| self.memory(repeat))),
            memory_bytes_reserved: reserved.memory_bytes,
            cost_per_month: prices.filter(|_| self.has_memory()).map(cost),
            cost_per_month_reserved: prices
                .map(|prices| prices.per_month(reserved.cpu_cores, reserved.memory_bytes, self.proxies)),
            entries: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Change from others to these, repeat by repeat, without latency.
    pub fn change_from(&self, base: &Totals<'_>, mode: Mode, prices: Option<&Prices>) -> PriceChange {
        let is_resolved = self.is_resolved() && base.is_resolved();
        let estimate = |repeats: BTreeSet<usize>, value: &Value<'_>| {
            let of = |extreme: Extreme| {
                let values: Vec<f64> = repeats.iter().map(|repeat| value(Some(*repeat), extreme)).collect();
                over_repeats(&values).unwrap_or_else(|| Estimate::single(value(None, extreme)))
            };
            let proportional = of(Extreme::Proportional);
            if is_resolved { proportional } else { hull(proportional, of(Extreme::Constant)) }
        };
        let of_cpu = &self.repeats_of_cpu() & &base.repeats_of_cpu();
        let of_memory = &self.repeats_of_memory() & &base.repeats_of_memory();
        let has_memory = self.has_memory() && base.has_memory();
        let cost = |prices: &Prices| {
            estimate(&of_cpu & &of_memory, &|repeat, extreme| {
                self.cost(prices, repeat, extreme) - base.cost(prices, repeat, extreme)
            })
        };
        let cost_per_month = prices.filter(|_| has_memory).map(cost);
        let reserved = |totals: &Totals<'_>, prices: &Prices| {
            prices.per_month(totals.reserved.cpu_cores, totals.reserved.memory_bytes, totals.proxies)
        };
        PriceChange {
            mode,
            proxies: self.proxies as i64 - base.proxies as i64,
            cpu_cores_used: Some(estimate(of_cpu, &|repeat, extreme| {
                self.cpu(repeat, extreme) - base.cpu(repeat, extreme)
            })),
            cpu_cores_reserved: self.reserved.cpu_cores - base.reserved.cpu_cores,
            memory_bytes_used: has_memory
                .then(|| estimate(of_memory, &|repeat, _| self.memory(repeat) - base.memory(repeat))),
            memory_bytes_reserved: self.reserved.memory_bytes - base.reserved.memory_bytes,
            cost_per_month,
            cost_per_month_reserved: prices.map(|prices| reserved(self, prices) - reserved(base, prices)),
            entries: Vec::new(),
        }
    }
}

/// Repeats that all have.
fn common(mut repeats: impl Iterator<Item = BTreeSet<usize>>) -> BTreeSet<usize> {
    let first = repeats.next().unwrap_or_default();
    repeats.fold(first, |common, own| &common & &own)
}

/// Requests of the proxies of a unit: their own, or the defaults of Istio's charts.
fn reserved(unit: &Unit, full: &FullScale) -> Amount {
    let default = if unit.key.0 == Kind::NodeProxy { NODE_PROXY } else { PROXY };
    let own = full.sidecar_requests.get(&unit.key.1).filter(|_| unit.key.0 == Kind::Sidecar);
    let cpu_cores = own.and_then(|own| own.cpu_request_cores).unwrap_or(default.cpu_cores);
    let memory_bytes = own.and_then(|own| own.memory_request_bytes);
    let memory_bytes = memory_bytes.map_or(default.memory_bytes, |bytes| bytes as f64);
    Amount { cpu_cores: cpu_cores * unit.proxies, memory_bytes: memory_bytes * unit.proxies }
}
