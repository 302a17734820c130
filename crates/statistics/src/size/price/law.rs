//! CPU and memory of a proxy as functions of its requests and of the mesh.
//!
//! CPU = that of an idle proxy, common to all, plus a cost per request that each workload has of its own, since sizes and
//! protocols differ. A proxy whose rate differs between trials tells the two apart (least squares with a slope per workload,
//! weighted for errors in proportion to the cost); if none does, the differences between workloads do ([`FittedLaw`]); and if
//! these do not either, the two extremes are bounds. Memory = constant + per pod of the mesh + per request/s of all drivers,
//! as far as trials separate them, plus what each workload has more or less.
//!
//! Each repeat has its own law: all trials of a repeat are one observation, and the interval is over repeats.

use crate::control_plane::linear::{FittedLaw, Observation, Terms, Unresolved};
use std::collections::{BTreeMap, BTreeSet};

/// CPU of idle proxies is read off changing rates if at least this share of it (in length) is not proportional to requests.
const MIN_IDLE_SHARE: f64 = 0.1;
const CPU: Terms = Terms { unit: "cores", variables: &["requests/s"], needs_slope: true };
const MEMORY: Terms =
    Terms { unit: "bytes", variables: &["pods in the mesh", "requests/s"], needs_slope: false };

/// Proxies of a key in one trial.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Name of the key.
    pub unit: String,
    pub repeat: usize,
    /// Number of its cell and key.
    pub cell: usize,
    /// Requests per second through each proxy for CPU; of the whole mesh its pods and requests per second for memory.
    pub at: Vec<f64>,
    /// Per proxy.
    pub cost: f64,
}

impl Seen {
    fn observation(&self) -> Observation {
        Observation { repeat: self.repeat, cell: self.cell, at: self.at.clone(), cost: self.cost }
    }
}

/// The part of an unresolved cost that grows with requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Extreme {
    /// All of it.
    Proportional,
    /// None of it.
    Constant,
}

/// Observations by unit.
#[derive(Default)]
struct Units(BTreeMap<String, Vec<Seen>>);

impl Units {
    fn new(seen: &[Seen]) -> Self {
        let mut units = Self::default();
        seen.iter().for_each(|one| units.0.entry(one.unit.clone()).or_default().push(one.clone()));
        units
    }

    fn all(&self) -> impl Iterator<Item = &Seen> {
        self.0.values().flatten()
    }

    /// Observations of a unit in a repeat or, if it was not measured there, of all units.
    fn of(&self, unit: Option<&str>, repeat: Option<usize>) -> Vec<&Seen> {
        let is_in = |one: &&Seen| repeat.is_none_or(|repeat| one.repeat == repeat);
        let own = unit.and_then(|unit| self.0.get(unit)).into_iter().flatten();
        let own: Vec<&Seen> = own.filter(is_in).collect();
        if own.is_empty() { self.all().filter(is_in).collect() } else { own }
    }

    fn repeats(&self) -> BTreeSet<usize> {
        self.all().map(|one| one.repeat).collect()
    }
}

/// CPU of proxies of a kind.
pub(super) struct CpuLaw {
    units: Units,
    /// CPU of an idle proxy by repeat; empty if trials cannot tell it from that of requests.
    idle: BTreeMap<usize, f64>,
    /// True if only differences between workloads tell it.
    pub is_between_workloads: bool,
}

impl CpuLaw {
    pub fn fit(seen: &[Seen]) -> Self {
        let units = Units::new(seen);
        let weights = weights(seen);
        let within = |repeat: usize| Some((repeat, idle_within(&units, &weights, repeat)?));
        let mut idle: BTreeMap<usize, f64> = units.repeats().into_iter().filter_map(within).collect();
        let is_between_workloads = idle.is_empty();
        if is_between_workloads {
            let observations: Vec<Observation> = seen.iter().map(Seen::observation).collect();
            if let Ok(law) = FittedLaw::fit(CPU, &observations) {
                idle = law.repeats().map(|repeat| (repeat, law.cost(Some(repeat), &[0.0]))).collect();
            }
        }
        Self { is_between_workloads: is_between_workloads && !idle.is_empty(), units, idle }
    }

    /// True if trials tell the CPU of idle proxies from that of requests.
    pub fn is_resolved(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Repeats for which it holds.
    pub fn repeats(&self) -> BTreeSet<usize> {
        if self.is_resolved() { self.idle.keys().copied().collect() } else { self.units.repeats() }
    }

    /// The greatest rate of a proxy in the trials.
    pub fn measured_up_to(&self) -> f64 {
        self.units.all().map(|one| one.at[0]).fold(0.0, f64::max)
    }

    /// Cores of an idle proxy; 0 if unresolved.
    pub fn idle(&self, repeat: Option<usize>) -> f64 {
        let mean = || self.idle.values().sum::<f64>() / self.idle.len().max(1) as f64;
        repeat.and_then(|repeat| self.idle.get(&repeat).copied()).unwrap_or_else(mean)
    }

    /// Cores per request/s of a unit, or of all units together; never negative.
    pub fn per_request(&self, repeat: Option<usize>, unit: Option<&str>) -> f64 {
        let seen = self.units.of(unit, repeat);
        let requests: f64 = seen.iter().map(|one| one.at[0]).sum();
        let above_idle: f64 = seen.iter().map(|one| one.cost - self.idle(repeat)).sum();
        if requests > 0.0 { (above_idle / requests).max(0.0) } else { 0.0 }
    }

    /// Cores of a proxy of a unit with these requests per second.
    pub fn cost(&self, repeat: Option<usize>, unit: &str, requests_per_s: f64, extreme: Extreme) -> f64 {
        if extreme == Extreme::Constant && !self.is_resolved() {
            return mean(self.units.of(Some(unit), repeat).iter().map(|one| one.cost));
        }
        (self.idle(repeat) + self.per_request(repeat, Some(unit)) * requests_per_s).max(0.0)
    }
}

/// CPU of an idle proxy by least squares with a slope per unit, within a repeat; `None` if rates differ too little.
fn idle_within(units: &Units, weights: &BTreeMap<usize, f64>, repeat: usize) -> Option<f64> {
    let (mut of_cost, mut of_one, mut ones) = (0.0, 0.0, 0.0);
    for seen in units.0.values() {
        let own = || seen.iter().filter(|one| one.repeat == repeat).map(|one| (one, weights[&one.cell]));
        let sum = |value: &dyn Fn(&Seen) -> f64| own().map(|(one, weight)| weight * value(one)).sum::<f64>();
        let squares = sum(&|one| one.at[0].powi(2));
        // The constant less its part that is proportional to requests.
        let slope = if squares > 0.0 { sum(&|one| one.at[0]) / squares } else { 0.0 };
        of_cost += sum(&|one| one.cost * (1.0 - slope * one.at[0]));
        of_one += sum(&|one| 1.0 - slope * one.at[0]);
        ones += sum(&|_| 1.0);
    }
    (ones > 0.0 && of_one.max(0.0).sqrt() >= MIN_IDLE_SHARE * ones.sqrt()).then(|| of_cost / of_one)
}

/// Weight of the observations of each cell: errors are proportional to the cost.
fn weights(seen: &[Seen]) -> BTreeMap<usize, f64> {
    let mut costs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    seen.iter().for_each(|one| costs.entry(one.cell).or_default().push(one.cost));
    let means: BTreeMap<usize, f64> =
        costs.into_iter().map(|(cell, costs)| (cell, mean(costs.into_iter()))).collect();
    // A zero cost would have infinite weight.
    let least = means.values().copied().fold(f64::MIN_POSITIVE, f64::max) * 1e-3;
    means.into_iter().map(|(cell, mean)| (cell, mean.max(least).powi(-2))).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Memory of proxies of a kind.
pub(super) struct MemoryLaw {
    units: Units,
    law: FittedLaw,
}

impl MemoryLaw {
    /// `None` if no trial measured it.
    pub fn fit(seen: &[Seen]) -> Option<Self> {
        let observations: Vec<Observation> = seen.iter().map(Seen::observation).collect();
        Some(Self { units: Units::new(seen), law: FittedLaw::fit(MEMORY, &observations).ok()? })
    }

    pub fn repeats(&self) -> BTreeSet<usize> {
        self.law.repeats().collect()
    }

    /// The least and the greatest value of a variable in the trials.
    pub fn measured_range(&self, variable: usize) -> (f64, f64) {
        let values = self.units.all().map(|one| one.at[variable]);
        values.fold((f64::INFINITY, 0.0), |(low, high), value| (low.min(value), high.max(value)))
    }

    /// The reason why its variables are not those of a mesh of this size, if they are not.
    pub fn check(&self, at: &[f64]) -> Result<(), Unresolved> {
        self.law.check(at)
    }

    /// Bytes of a proxy of a unit in a mesh of this size.
    pub fn cost(&self, repeat: Option<usize>, unit: &str, at: &[f64]) -> f64 {
        let own = self.units.0.get(unit).into_iter().flatten();
        let own = own.filter(|one| repeat.is_none_or(|repeat| one.repeat == repeat));
        let more = mean(own.map(|one| one.cost - self.law.cost(repeat, &one.at)));
        (self.law.cost(repeat, at) + more).max(0.0)
    }
}
