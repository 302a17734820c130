//! Foundation of prices: measured here, learned there, published, or assumed.

use super::law::MemoryLaw;
use super::traffic::{Kind, Unit};
use super::{Cell, Laws, MeasuredRun, PriceQuestion, Target, rates};
use crate::control_plane::size::over;
use crate::summary::reservation::{NODE_PROXY, PROXY};
use crate::words;
use experiment::MeshKind;
use results::{Basis, BasisKind, Clock, Estimate, Mode, SizeNote, SizeNoteKind};
use std::collections::{BTreeMap, BTreeSet};

/// A rate beyond the measured ones by at most this fraction does not count as extrapolated.
const TOLERANCE: f64 = 0.01;
/// A prediction beyond this multiple of the greatest measured value is far from what was measured.
const FAR: f64 = 3.0;
/// Values within this multiple of each other are one scale. A prediction beyond a single scale is far from what was measured: the
/// runs have no slope for it.
const SAME: f64 = 1.1;
/// Maximum number of loads that are listed one by one.
const MAX_LISTED: usize = 6;

/// Everything found so far.
pub(super) struct Found {
    rests_on: Vec<Basis>,
    requests_per_s: f64,
    /// Modes by quantity that is predicted far from what was measured.
    far: BTreeMap<String, BTreeSet<Mode>>,
}

/// A quantity that a law takes, and the values at which it was measured.
struct Reach<'a> {
    /// Example: `requests through a sidecar`.
    name: &'a str,
    predicted: f64,
    measured: f64,
    /// True if it was measured at a single value.
    is_single: bool,
    text: fn(f64) -> String,
}

impl Found {
    pub fn new(
        question: &PriceQuestion,
        target: &Target<'_>,
        runs: &[MeasuredRun],
        cells: &[Cell<'_>],
    ) -> Self {
        let mut found =
            Self { rests_on: Vec::new(), requests_per_s: target.requests_per_s, far: BTreeMap::new() };
        let kind = match &question.full {
            Some(full) if full.is_learned => BasisKind::Learned,
            Some(_) => BasisKind::Assumed,
            None => BasisKind::Measured,
        };
        let topology = &target.full.topology;
        found.push(
            format!("rates and replicas of {}", topology.name),
            kind,
            format!("{}, pods in the mesh: {}", words::rate(target.requests_per_s), target.pods_in_mesh),
        );
        let of_trials = cells.iter().flat_map(|cell| {
            let drivers = &cell.topology.drivers;
            cell.trials.iter().filter_map(move |trial| {
                let rates = rates(trial);
                drivers.iter().map(|driver| rates.get(driver.name.as_str()).copied()).sum::<Option<f64>>()
            })
        });
        let shares: BTreeSet<u64> =
            of_trials.map(|sum| (sum / target.requests_per_s * 100.0).round() as u64).collect();
        let shares: Vec<String> = shares.into_iter().map(|share| format!("{share} %")).collect();
        let shares = match &shares[..] {
            [first, .., last] if shares.len() > MAX_LISTED => format!("{first} to {last}"),
            all => all.join(", "),
        };
        found.push("load of the runs", BasisKind::Measured, format!("{shares} of that rate"));
        found.add_reserved(target, runs);
        if let Some(run) = runs.first() {
            let text = format!("does as much as one of {}", run.host.cpu_model);
            found.push("a core of the mesh's nodes", BasisKind::Assumed, text);
        }
        let clients = topology.workloads.iter().filter(|one| one.in_mesh && !one.serves()).count();
        if clients > 0 && question.full.is_some() {
            let text = format!("{clients} in the mesh, with one pod each");
            found.push("clients", BasisKind::Assumed, text);
        }
        if target.full.sidecar_cpu_cores.is_none() {
            let text = "not in the telemetry: the model is not checked against them";
            found.push("CPU and memory of today's proxies", BasisKind::Assumed, text);
        }
        found.push("istiod, gateways and kernels", BasisKind::Assumed, "not counted");
        found
    }

    fn push(&mut self, what: impl Into<String>, kind: BasisKind, value: impl Into<String>) {
        self.rests_on.push(Basis { what: what.into(), kind, value: value.into() });
    }

    /// Requests of proxies, and the number of nodes.
    fn add_reserved(&mut self, target: &Target<'_>, runs: &[MeasuredRun]) {
        let is_istio = runs.iter().all(|run| run.experiment.mesh == MeshKind::Istio);
        let kind = if is_istio { BasisKind::Published } else { BasisKind::Assumed };
        let text = format!(
            "{} and {} for a sidecar or waypoint, {} and {} for a node proxy: defaults of Istio's charts",
            words::cores_value(PROXY.cpu_cores),
            words::memory_value(PROXY.memory_bytes),
            words::cores_value(NODE_PROXY.cpu_cores),
            words::memory_value(NODE_PROXY.memory_bytes)
        );
        self.push("CPU and memory requests of proxies", kind, text);
        let own = target.full.sidecar_requests.len();
        if own > 0 {
            self.push(
                "CPU and memory requests of sidecars",
                BasisKind::Learned,
                format!("those of {own} workloads"),
            );
        }
    }

    /// Laws of a mode's proxies.
    pub fn add(&mut self, mode: Mode, laws: &Laws, units: &[Unit], target: &Target<'_>) {
        for (kind, (cpu, memory)) in laws {
            let own: Vec<&Unit> = units.iter().filter(|unit| unit.key.0 == *kind).collect();
            let what = |figure: &str| format!("{figure} of a {}, mode {mode}", kind.name());
            let repeats = cpu.repeats();
            let per_request = over(&repeats, &|repeat| cpu.per_request(repeat, None) * 1e6);
            let mut text = format!("{} per request", words::latency(&per_request));
            if cpu.is_resolved() {
                // It is not bounded: the interval of an idle proxy that takes nothing is around zero.
                let idle = over(&repeats, &|repeat| cpu.idle(repeat));
                text = format!("{} at rest, {text}", words::cores(&idle));
            }
            self.push(what("CPU"), BasisKind::Measured, text);
            if repeats.len() < 2 {
                self.push(what("CPU"), BasisKind::Measured, "one repeat: no interval");
            }
            if !cpu.is_resolved() {
                let text = "proportional to requests, since one rate was measured; the interval reaches to a cost that does not grow";
                self.push(what("CPU"), BasisKind::Assumed, text);
            } else if cpu.is_between_workloads {
                let text = "no proxy had two rates: what it takes at rest follows from the differences between workloads";
                self.push(what("CPU"), BasisKind::Assumed, text);
            }
            let greatest = own.iter().map(|unit| unit.requests_per_s).fold(0.0, f64::max);
            let through = Reach {
                name: &format!("requests through a {}", kind.name()),
                predicted: greatest,
                measured: cpu.measured_up_to(),
                is_single: !cpu.is_resolved() || cpu.is_between_workloads,
                text: words::rate,
            };
            self.extrapolate(mode, what("extrapolated requests"), &through);
            if *kind == Kind::NodeProxy {
                self.push(what("nodes"), BasisKind::Assumed, format!("{}, one each", target.nodes));
            }
            let Some(memory) = memory else {
                self.push(what("memory"), BasisKind::Assumed, "not measured: in no figure");
                continue;
            };
            let at = [target.pods_in_mesh, target.requests_per_s];
            let proxies: f64 = own.iter().map(|unit| unit.proxies).sum();
            let each = |repeat: Option<usize>| {
                own.iter().map(|unit| unit.proxies * memory.cost(repeat, &unit.key.1, &at)).sum::<f64>()
                    / proxies
            };
            let bytes: Estimate = over(&memory.repeats(), &each);
            self.push(what("memory"), BasisKind::Measured, words::memory(&bytes));
            self.extrapolate_mesh(mode, memory, &at);
            if let Err(reason) = memory.check(&at) {
                self.push(
                    what("memory"),
                    BasisKind::Assumed,
                    format!("constant in what the runs did not tell: {reason}"),
                );
            }
        }
    }

    /// The size of the mesh, on which the memory of a mode's proxies depends. All kinds of proxies share it.
    fn extrapolate_mesh(&mut self, mode: Mode, memory: &MemoryLaw, at: &[f64; 2]) {
        let names = ["pods in the mesh", "requests of all drivers"];
        let texts: [fn(f64) -> String; 2] = [|pods| format!("{pods:.0}"), words::rate];
        for (place, (name, text)) in names.into_iter().zip(texts).enumerate() {
            let (least, measured) = memory.measured_range(place);
            let is_single = measured <= least * SAME;
            let reach = Reach { name, predicted: at[place], measured, is_single, text };
            self.extrapolate(mode, format!("extrapolated {name}, mode {mode}"), &reach);
        }
    }

    /// Says how far a prediction reaches beyond what was measured, if it does.
    fn extrapolate(&mut self, mode: Mode, what: String, reach: &Reach<'_>) {
        let Reach { name, predicted, measured, is_single, text } = *reach;
        if predicted <= measured * (1.0 + TOLERANCE) {
            return;
        }
        let range = format!("up to {}, measured up to {}", text(predicted), text(measured));
        if predicted > measured * if is_single { SAME } else { FAR } {
            let only = if is_single { ", at one scale" } else { "" };
            self.far.entry(format!("{name} {range}{only}")).or_default().insert(mode);
        }
        if self.rests_on.iter().all(|basis| basis.what != what) {
            self.push(what, BasisKind::Assumed, range);
        }
    }

    /// The warning of predictions that are far from what was measured.
    pub fn far(&self) -> Option<SizeNote> {
        let one = |(what, modes): (&String, &BTreeSet<Mode>)| {
            let modes: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
            format!("{what} ({})", modes.join(", "))
        };
        let all: Vec<String> = self.far.iter().map(one).collect();
        (!all.is_empty()).then(|| SizeNote::naming(SizeNoteKind::FarBeyondMeasured, all.join("; ")))
    }

    /// Everything, in the order measured, learned, published, assumed. `latency` is the load at which it was measured, and what it
    /// is of.
    pub fn finish(mut self, latency: Option<(f64, Clock)>, mixed: Option<SizeNote>) -> Vec<Basis> {
        if let Some((rate, clock)) = latency {
            let first = if clock == Clock::FirstEvent { "to the first events of streams, " } else { "" };
            self.push("added latency", BasisKind::Measured, format!("{first}at {}", words::rate(rate)));
            if self.requests_per_s > rate * (1.0 + TOLERANCE) {
                self.push("added latency at full scale", BasisKind::Assumed, "as at the measured rate");
            }
        }
        if let Some(detail) = mixed.and_then(|note| note.detail) {
            self.push("versions that differ between runs", BasisKind::Measured, detail);
        }
        let kinds = [BasisKind::Measured, BasisKind::Learned, BasisKind::Published, BasisKind::Assumed];
        let place = |basis: &Basis| kinds.iter().position(|kind| *kind == basis.kind);
        self.rests_on.sort_by_key(place);
        self.rests_on
    }
}
