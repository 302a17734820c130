//! Pricing answers "What would our mesh take and cost in each mode?"
//!
//! Runs of a topology at smaller scales or rates have the CPU and memory of its proxies; [`law`] tells what each costs by its
//! requests, and [`traffic`] how many requests go through which proxies at full scale. [`entries`] has what modes add at the
//! entry points and [`calls`] to calls, [`basis`] what all of it rests on. A mode that was not measured, or whose proxies are not those of pods, nodes
//! and namespaces, is refused. [`totals`] adds proxies up, and [`what_if`] has what other settings would change.

mod basis;
mod calls;
mod entries;
mod law;
mod totals;
mod traffic;
mod what_if;

pub use traffic::Waypoints;
pub use what_if::WhatIf;

use super::settings::differing_sections;
use super::{CONFIDENCE, MeasuredRun, described, mixed_components, one_machine, reasons};
use crate::trials::{TrialsByCell, usable};
use basis::Found;
use entries::{Added, Entries};
use experiment::dataplane::{DataPlane, Entry, Exit, ModeParts, Proxies};
use experiment::plan::topology_of;
use experiment::topology::{Resources, Topology};
use law::{CpuLaw, MemoryLaw, Seen};
use results::{
    ComponentUsage, Estimate, Factors, Figure, Mode, ModelCheck, ModelError, OwnedCellKey, PRICE_SCHEMA,
    PriceResult, PricedMode, PricedNamespace, Prices, SizeNote, SizeNoteKind, TrialRecord,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use totals::Totals;
use traffic::{Key, Kind, Requests, Traffic, Unit};
use what_if::Priced;

/// Kubernetes' default maximum of pods per node.
const PODS_PER_NODE: usize = 110;

/// Question of a price.
#[derive(Clone, Debug, Default)]
pub struct PriceQuestion {
    /// The mesh at full scale; absent: as measured at the greatest load.
    pub full: Option<FullScale>,
    /// Modes to price; empty: every measured one.
    pub modes: Vec<Mode>,
    /// Number of nodes, each with a node proxy in ambient modes; absent: as few as can hold the pods.
    pub nodes: Option<usize>,
    /// Prices; absent: no cost is computed.
    pub prices: Option<Prices>,
    /// Settings whose changes are computed.
    pub what_if: Option<WhatIf>,
}

/// A mesh at full scale.
#[derive(Clone, Debug, Default)]
pub struct FullScale {
    /// Services, their calls and the drivers, with all replicas.
    pub topology: Topology,
    /// Requests per second of each driver, by name.
    pub rates: BTreeMap<String, f64>,
    /// True if the rates were learned.
    pub is_learned: bool,
    /// Requests of the sidecars of workloads, by qualified name, where they are not the defaults.
    pub sidecar_requests: BTreeMap<String, Resources>,
    /// CPU of today's sidecars in the telemetry, cores.
    pub sidecar_cpu_cores: Option<f64>,
    /// Memory of today's sidecars in the telemetry, bytes.
    pub sidecar_memory_bytes: Option<f64>,
}

/// Trials of one mode, topology and load.
struct Cell<'a> {
    mode: Mode,
    run: usize,
    parts: ModeParts,
    topology: Arc<Topology>,
    trials: &'a [&'a TrialRecord],
}

/// The mesh that is priced.
struct Target<'a> {
    full: &'a FullScale,
    traffic: Traffic<'a>,
    requests: Requests,
    nodes: usize,
    pods_in_mesh: f64,
    requests_per_s: f64,
}

/// Laws of a mode's proxies by kind.
type Laws = BTreeMap<Kind, (CpuLaw, Option<MemoryLaw>)>;

/// Prices a topology from runs of one machine.
#[must_use]
pub fn price(question: &PriceQuestion, runs: &[MeasuredRun]) -> PriceResult {
    let (described, notes) = described(runs);
    let mut result = PriceResult {
        schema: PRICE_SCHEMA.to_owned(),
        prices: question.prices.clone(),
        confidence: CONFIDENCE,
        runs: described,
        notes,
        ..PriceResult::default()
    };
    if let Err(refusal) = answer(question, runs, &mut result) {
        result.refusals.push(refusal);
    }
    result
}

/// Fills in the modes, and what they rest on. Refused if no mode can be priced; a single mode that cannot is among the refusals.
fn answer(question: &PriceQuestion, runs: &[MeasuredRun], result: &mut PriceResult) -> Result<(), SizeNote> {
    let machine = one_machine(runs)?;
    let (chosen, changed) = values(question, runs)?;
    result.machine = machine;
    let trials: Vec<TrialsByCell<'_>> = runs.iter().map(|run| TrialsByCell::new(&run.trials)).collect();
    let cells = cells(runs, &trials, &chosen);
    let measured = as_measured(&cells);
    let full = question.full.as_ref().or(measured.as_ref());
    let full = full.ok_or_else(|| SizeNote::naming(SizeNoteKind::NoValidTrial, all_reasons(&cells)))?;
    let target = Target::new(question, full, &cells, Waypoints::default())?;
    result.topology.clone_from(&full.topology.name);
    result.requests_per_s = target.requests_per_s;
    let entries = Entries::new(&cells);
    let mut found = Found::new(question, &target, runs, &cells);
    let mut priced = Vec::new();
    for (mode, parts) in asked(question, &cells, &mut result.refusals) {
        match Priced::new((mode, parts), &cells, &target) {
            Ok(own) => {
                found.add(mode, &own.laws, &own.units, &target);
                add_mode(result, question.prices.as_ref(), &own, &target, entries.of(mode).as_ref());
                priced.push(own);
            }
            Err(refusal) => result.refusals.push(refusal),
        }
    }
    result.namespaces.sort_by(|one, other| one.name.cmp(&other.name));
    result.model_error = model_error(&result.modes, full);
    result.notes.extend(found.far());
    if let Some(what_if) = &question.what_if {
        let head = self::cells(runs, &trials, &changed);
        match what_if::what_if(question, what_if, (&target, &cells, &priced), &head) {
            Ok(changes) => result.what_if = Some(changes),
            Err(refusal) => result.refusals.push(refusal),
        }
    }
    let latency = entries.measured_at(&result.modes);
    result.rests_on = found.finish(latency, mixed_components(runs));
    Ok(())
}

/// Adds the price of a mode, and of each of several namespaces in it.
fn add_mode(
    result: &mut PriceResult,
    prices: Option<&Prices>,
    priced: &Priced,
    target: &Target<'_>,
    added: Option<&Added>,
) {
    let of = |totals: &Totals<'_>, is_own: &dyn Fn(&str) -> bool| {
        let mut mode = totals.priced(priced.mode, prices);
        added.iter().for_each(|added| added.add_to(&mut mode, is_own));
        mode
    };
    result.modes.push(of(&priced.totals(target), &|_| true));
    if target.full.topology.namespaces().len() <= 1 {
        return;
    }
    let mut of_namespace: BTreeMap<&str, Vec<&Unit>> = BTreeMap::new();
    priced.units.iter().for_each(|unit| of_namespace.entry(unit.namespace.as_str()).or_default().push(unit));
    for (name, units) in of_namespace {
        let totals = Totals::new(&units, &priced.laws, target);
        let mode = of(&totals, &|namespace| namespace == name);
        match result.namespaces.iter_mut().find(|known| known.name == name) {
            Some(known) => known.modes.push(mode),
            None => result.namespaces.push(PricedNamespace { name: name.to_owned(), modes: vec![mode] }),
        }
    }
}

/// Values of the factors that are priced, and those of `what_if`.
fn values(question: &PriceQuestion, runs: &[MeasuredRun]) -> Result<(Factors, Factors), SizeNote> {
    let Some(what_if) = &question.what_if else {
        return same_settings(runs, &Factors::new()).map(|()| Default::default());
    };
    let chosen = what_if.base(runs)?;
    same_settings(runs, &chosen)?;
    Ok((chosen, what_if.factors.clone()))
}

/// Refuses runs whose settings differ in more than topology, rate and factors with a chosen value: their proxies do not follow one
/// law.
fn same_settings(runs: &[MeasuredRun], chosen: &Factors) -> Result<(), SizeNote> {
    let mut differing: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        let sections = differing_sections(&runs[0].experiment, &run.experiment);
        differing.extend(sections.into_iter().filter(|name| *name != "topology").map(str::to_owned));
        let factors = run.experiment.factors.iter().map(|factor| factor.key.clone());
        differing.extend(factors.filter(|key| !key.starts_with("topology") && !chosen.contains_key(key)));
    }
    if differing.is_empty() {
        return Ok(());
    }
    let differing: Vec<String> = differing.into_iter().collect();
    Err(SizeNote::naming(SizeNoteKind::MixedSettings, differing.join(", ")))
}

/// Every cell of the runs that drivers loaded, with these values of factors. A cell that a factor does not touch lacks it.
fn cells<'a>(runs: &[MeasuredRun], trials: &'a [TrialsByCell<'a>], chosen: &Factors) -> Vec<Cell<'a>> {
    let is_chosen =
        |factors: &Factors| chosen.iter().all(|(key, value)| factors.get(key).is_none_or(|own| own == value));
    let mut cells = Vec::new();
    for (run, (measured, trials)) in runs.iter().zip(trials).enumerate() {
        for of_cell in trials.cells().filter(|of_cell| of_cell[0].mode.has_requests()) {
            let key = OwnedCellKey::from(of_cell[0].cell());
            if !is_chosen(&key.factors) {
                continue;
            }
            if let Some(topology) = topology_of(&measured.experiment, &key) {
                let parts = measured.experiment.mesh.parts(key.mode);
                cells.push(Cell { mode: key.mode, run, parts, topology, trials: of_cell });
            }
        }
    }
    cells
}

/// Throughput of the drivers of a trial, by name; those without a result are left out.
fn rates(trial: &TrialRecord) -> BTreeMap<&str, f64> {
    trial.drivers().into_iter().filter_map(|view| Some((view.name, view.result?.rate.completed))).collect()
}

/// Throughput of all drivers of a cell in a trial.
fn rate_of_all(cell: &Cell<'_>, trial: &TrialRecord) -> f64 {
    let rates = rates(trial);
    cell.topology.drivers.iter().filter_map(|driver| rates.get(driver.name.as_str())).sum()
}

/// The topology and rates of the cell with the greatest load; `None` if no trial can be used.
fn as_measured<'a>(cells: &'a [Cell<'a>]) -> Option<FullScale> {
    let of_cell = |cell: &'a Cell<'a>| {
        let by_trial: Vec<BTreeMap<&str, f64>> =
            usable(cell.trials, Figure::Cpu).into_iter().map(rates).collect();
        let mean = |driver: &str| {
            let rates: Vec<f64> = by_trial.iter().filter_map(|rates| rates.get(driver).copied()).collect();
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
        };
        let drivers = cell.topology.drivers.iter();
        let rates = drivers.map(|driver| Some((driver.name.clone(), mean(&driver.name)?)));
        let rates: BTreeMap<String, f64> = rates.collect::<Option<_>>()?;
        (!rates.is_empty()).then(|| (rates.values().sum::<f64>(), cell, rates))
    };
    let (_, cell, rates) =
        cells.iter().filter_map(of_cell).max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    Some(FullScale { topology: Topology::clone(&cell.topology), rates, ..FullScale::default() })
}

impl<'a> Target<'a> {
    fn new(
        question: &PriceQuestion,
        full: &'a FullScale,
        cells: &[Cell<'_>],
        waypoints: Waypoints,
    ) -> Result<Self, SizeNote> {
        let names = |topology: &Topology| -> BTreeSet<String> {
            topology.workloads.iter().filter(|one| one.serves()).map(|one| one.qualified_name()).collect()
        };
        let asked = names(&full.topology);
        if let Some(other) = cells.iter().map(|cell| names(&cell.topology)).find(|own| *own != asked) {
            let name = other.symmetric_difference(&asked).next().cloned().unwrap_or_default();
            let detail = format!("the topology {}: {name} is in one of them only", full.topology.name);
            return Err(SizeNote::naming(SizeNoteKind::NotMeasured, detail));
        }
        if let Some(name) = waypoints.unknown(&full.topology) {
            let detail = format!("the namespace {name}: {} has none of this name", full.topology.name);
            return Err(SizeNote::naming(SizeNoteKind::NotMeasured, detail));
        }
        let traffic = Traffic::new(&full.topology).with_waypoints(waypoints);
        let Some(requests) = traffic.requests(|driver| full.rates.get(driver).copied()) else {
            let lacking = full.topology.drivers.iter().find(|driver| !full.rates.contains_key(&driver.name));
            let name = lacking.map_or("", |driver| &driver.name);
            return Err(SizeNote::naming(SizeNoteKind::NotMeasured, format!("a rate of the driver {name}")));
        };
        let pods = full.topology.pods();
        Ok(Self {
            full,
            traffic,
            requests,
            nodes: question.nodes.unwrap_or(pods.div_ceil(PODS_PER_NODE)).max(1),
            pods_in_mesh: full.topology.pods_in_mesh() as f64,
            requests_per_s: full.rates.values().sum(),
        })
    }
}

/// The modes to price with their parts; the others are refused.
fn asked(
    question: &PriceQuestion,
    cells: &[Cell<'_>],
    refusals: &mut Vec<SizeNote>,
) -> Vec<(Mode, ModeParts)> {
    let measured: BTreeMap<Mode, ModeParts> = cells.iter().map(|cell| (cell.mode, cell.parts)).collect();
    let names: Vec<&str> = measured.keys().map(|mode| mode.name()).collect();
    for mode in question.modes.iter().filter(|mode| !measured.contains_key(mode)) {
        let detail = format!("mode {mode}; measured modes: {}", names.join(", "));
        refusals.push(SizeNote::naming(SizeNoteKind::NotMeasured, detail));
    }
    let is_asked = |mode: &Mode| question.modes.is_empty() || question.modes.contains(mode);
    let is_priced = |parts: &ModeParts| {
        parts.entry == Entry::Direct && parts.exit == Exit::None && parts.data_plane != DataPlane::Cilium
    };
    let (priced, others): (Vec<_>, Vec<_>) = measured
        .iter()
        .filter(|(mode, _)| is_asked(mode))
        .map(|(mode, parts)| (*mode, *parts))
        .partition(|(_, parts)| is_priced(parts));
    let refused = |(mode, _): (Mode, ModeParts)| SizeNote::naming(SizeNoteKind::NotPriced, mode.name());
    refusals.extend(others.into_iter().map(refused));
    priced
}

fn all_reasons(cells: &[Cell<'_>]) -> String {
    let all: Vec<&TrialRecord> = cells.iter().flat_map(|cell| cell.trials).copied().collect();
    if all.is_empty() { "no trial was recorded".to_owned() } else { reasons(&all) }
}

/// Laws of a mode's proxies, or why there are none.
fn laws(mode: Mode, cells: &[Cell<'_>]) -> Result<Laws, SizeNote> {
    let of_mode = cells.iter().filter(|cell| cell.mode == mode);
    let cells: Vec<(&Cell<'_>, Traffic<'_>)> =
        of_mode.map(|cell| (cell, Traffic::new(&cell.topology))).collect();
    let plane = cells[0].0.parts.data_plane.proxies();
    let cpu = seen(&cells, plane, Figure::Cpu, |usage| usage.cpu_cores());
    // The working set, as for sizes; resident memory if no cgroup reports it.
    let memory = seen(&cells, plane, Figure::Memory, |usage| {
        usage.memory_working_set_bytes.or(usage.memory_bytes()).unwrap_or_default() as f64
    });
    let kinds = [Kind::Sidecar, Kind::NodeProxy, Kind::Waypoint];
    let law = |kind: Kind| {
        let cpu = cpu.get(&kind).ok_or_else(|| {
            let trials: Vec<&TrialRecord> = cells.iter().flat_map(|(cell, _)| cell.trials).copied().collect();
            let detail = format!("a {} in mode {mode}: {}", kind.name(), reasons(&trials));
            SizeNote::naming(SizeNoteKind::NoValidTrial, detail.trim_end_matches(": "))
        })?;
        Ok((kind, (CpuLaw::fit(cpu), memory.get(&kind).and_then(|seen| MemoryLaw::fit(seen)))))
    };
    kinds.into_iter().filter(|kind| traffic::has(plane, *kind)).map(law).collect()
}

/// Proxies of every usable trial, by kind.
fn seen(
    cells: &[(&Cell<'_>, Traffic<'_>)],
    plane: Proxies,
    figure: Figure,
    read: impl Fn(&ComponentUsage) -> f64,
) -> BTreeMap<Kind, Vec<Seen>> {
    let mut seen: BTreeMap<Kind, Vec<Seen>> = BTreeMap::new();
    let mut numbers: BTreeMap<(usize, Key), usize> = BTreeMap::new();
    for (number, (cell, traffic)) in cells.iter().enumerate() {
        let pods = cell.topology.pods_in_mesh() as f64;
        for trial in usable(cell.trials, figure) {
            let rates = rates(trial);
            let Some(requests) = traffic.requests(|driver| rates.get(driver).copied()) else { continue };
            let of_drivers = rate_of_all(cell, trial);
            for (key, proxies) in traffic.proxies(&trial.components, plane) {
                let count = proxies.len() as f64;
                let at = match figure {
                    Figure::Memory => vec![pods, of_drivers],
                    _ => vec![traffic::through(&requests, &key) / count],
                };
                let next = numbers.len();
                let cell = *numbers.entry((number, key.clone())).or_insert(next);
                let cost = proxies.into_iter().map(&read).sum::<f64>() / count;
                let (kind, unit) = key;
                seen.entry(kind).or_default().push(Seen { unit, repeat: trial.repeat, cell, at, cost });
            }
        }
    }
    seen
}

/// The model against the telemetry of today's sidecars.
fn model_error(modes: &[PricedMode], full: &FullScale) -> Option<ModelError> {
    let sidecars = modes.iter().find(|mode| mode.mode == Mode::Sidecar)?;
    let check = |measured: Option<f64>, predicted: Option<Estimate>| {
        let (measured, predicted) = (measured.filter(|measured| *measured > 0.0)?, predicted?);
        Some(ModelCheck { measured, predicted, error: predicted.estimate / measured - 1.0 })
    };
    let cpu_cores = check(full.sidecar_cpu_cores, sidecars.cpu_cores_used);
    let memory_bytes = check(full.sidecar_memory_bytes, sidecars.memory_bytes_used);
    (cpu_cores.is_some() || memory_bytes.is_some()).then_some(ModelError {
        mode: Mode::Sidecar,
        cpu_cores,
        memory_bytes,
    })
}
