//! The graph of the topology with figures, one drawing per cell. Identical namespaces are drawn once, with
//! medians over them.

use super::context::Context;
use crate::drivers::{over_copies_estimate, qualified};
use crate::edges::arrow;
use crate::format::{self, Interval, TimeUnit};
use crate::graph::{self, CallFigures, Figures, Folding, Labels, WorkloadFigures};
use experiment::Plan;
use experiment::topology::{Call, Topology, WorkloadId};
use results::{Cell, CellKey, DriverSummary, EdgeSummary, Estimate, ServiceSummary};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// Maximum number of edges over all drawings of a page. Cells beyond that are only in the tables.
const MAX_DRAWN_EDGES: usize = 1500;

/// The drawings.
#[derive(Debug, Serialize)]
pub struct GraphSection {
    /// Drawing beside the result: of the first mode with proxies under the last load.
    first: CellDrawing,
    /// The other drawings.
    drawings: Vec<CellDrawing>,
    /// Number of cells without a drawing, which would make the page too large.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct CellDrawing {
    mode: &'static str,
    load: String,
    svg: String,
    /// The call with the longest 99th percentile; empty if no caller timed its calls.
    slowest: String,
}

/// `None` if only drivers send requests.
pub fn graph(context: &Context) -> Option<GraphSection> {
    let plan = Plan::new(&context.run.experiment, context.run.summary.seed);
    let planned = plan.trials.iter().map(|trial| (trial.cell(), &trial.spec.topology));
    let topologies: HashMap<CellKey<'_>, &Arc<Topology>> = planned.collect();
    let (mut drawings, mut left_out) = (Vec::new(), 0);
    let mut drawn_edges = 0;
    // The last load comes first: it is the most relevant one.
    let loads: Vec<_> = context.conditions.all().collect();
    for (place, at) in loads.iter().rev().enumerate() {
        let mut cells = context.cells_of(*at);
        cells.sort_by_key(|cell| cell.mode.floor().is_none());
        for cell in cells {
            let Some(topology) = topologies.get(&cell.key()).filter(|topology| has_inner_calls(topology))
            else {
                continue;
            };
            let folding = Folding::of_identical_namespaces(topology);
            let edges: HashSet<Call> =
                topology.calls.iter().map(|call| folding.call_drawn_as(*call)).collect();
            if cell.valid == 0 || drawn_edges + edges.len() > MAX_DRAWN_EDGES {
                left_out += usize::from(cell.valid > 0);
                continue;
            }
            drawn_edges += edges.len();
            let load = context.conditions.label(*at);
            let title = format!("Services and calls in {} at {load}", cell.mode);
            let id = format!("graph-{place}-{}", cell.mode);
            let figures = CellFigures { cell, topology, folding: &folding }.figures();
            let svg = graph::draw(topology, &folding, &figures, Labels { id: &id, title: &title });
            drawings.push(CellDrawing { mode: cell.mode.name(), load, svg, slowest: slowest(cell) });
        }
    }
    let mut drawings = drawings.into_iter();
    Some(GraphSection { first: drawings.next()?, drawings: drawings.collect(), left_out })
}

/// Example: `web → cart, p99 2.90 ms`.
fn slowest(cell: &Cell) -> String {
    cell.slowest_call().map_or_else(String::new, |(edge, p99_us)| {
        let p99 = TimeUnit::for_times([p99_us]).time(p99_us);
        format!("{}, p99 {p99}", arrow(edge))
    })
}

fn has_inner_calls(topology: &Topology) -> bool {
    topology.calls.iter().any(|call| topology.workloads[call.from].serves())
}

struct CellFigures<'a> {
    cell: &'a Cell,
    topology: &'a Topology,
    folding: &'a Folding,
}

impl CellFigures<'_> {
    fn figures(&self) -> Figures {
        Figures { workloads: self.workloads(), calls: self.calls() }
    }

    fn workloads(&self) -> BTreeMap<WorkloadId, WorkloadFigures> {
        let ids = self.ids();
        let services = self.cell.services.iter();
        let known = services
            .filter_map(|service| Some((*ids.get(&qualified(&service.namespace, &service.name))?, service)));
        let mut figures = BTreeMap::new();
        for (id, services) in self.by_copy(known, |id| self.folding.drawn_as(id)) {
            let each = |read: fn(&ServiceSummary) -> Option<Estimate>| {
                over_copies_estimate(services.iter().map(|service| read(service)))
            };
            let requests = each(|service| service.requests_per_s);
            let (cores, proxies) =
                (each(|service| service.cpu_cores), each(|service| service.proxy_cpu_cores));
            let lines = [
                requests.map(|rate| format!("{}/s", Interval::new(&rate).estimate)),
                cores.map(|cores| format!("{} cores", differing(format::cores_interval(&cores)).text())),
                proxies.map(|cores| format!("proxies {}", differing(format::cores_interval(&cores)).text())),
            ];
            let lines = lines.into_iter().flatten().collect();
            figures.insert(id, WorkloadFigures { lines, emphasised: false });
        }
        figures
    }

    fn calls(&self) -> BTreeMap<Call, CallFigures> {
        let ids = self.ids();
        let id = |name: &str| ids.get(name).copied();
        let edges = self.cell.edges.iter();
        let edges = edges.filter_map(|edge| Some((Call { from: id(&edge.from)?, to: id(&edge.to)? }, edge)));
        let drivers = self.cell.drivers.iter().filter_map(|driver| Some((self.call_of(driver)?, driver)));
        let carried = |edge: &EdgeSummary| Carried {
            rate: edge.requests_per_s,
            p50: edge.response_time_us.and_then(|times| times.p50),
            p99: edge.response_time_us.and_then(|times| times.p99),
            is_wrong: !edge.proven || edge.errors > 0.0,
        };
        let driven = |driver: &DriverSummary| Carried {
            rate: driver.rate_completed,
            p50: driver.response_time_us.and_then(|times| times.p50),
            p99: driver.response_time_us.and_then(|times| times.p99),
            is_wrong: driver.errors > 0.0,
        };
        let all = edges.map(|(call, edge)| (call, carried(edge)));
        let all = all.chain(drivers.map(|(call, driver)| (call, driven(driver))));
        let calls = self.by_copy(all, |call| self.folding.call_drawn_as(call));
        let median = |carried: &[Carried]| over_copies_estimate(carried.iter().map(|carried| carried.p50));
        let medians = calls.values().filter_map(|carried| Some(median(carried)?.estimate));
        let greatest_us = medians.fold(0.0, f64::max);
        let unit = TimeUnit::for_times([greatest_us]);
        calls
            .iter()
            .map(|(call, carried)| {
                let weight = median(carried).map_or(0.0, |p50| p50.estimate / greatest_us.max(1.0));
                let emphasised = carried.iter().any(|carried| carried.is_wrong);
                (*call, CallFigures { lines: lines(carried, unit), weight, emphasised })
            })
            .collect()
    }

    fn ids(&self) -> HashMap<String, WorkloadId> {
        let workloads = self.topology.workloads.iter().enumerate();
        workloads.map(|(id, workload)| (workload.qualified_name(), id)).collect()
    }

    fn call_of(&self, driver: &DriverSummary) -> Option<Call> {
        let placement = self.topology.driver(&driver.name)?;
        Some(Call { from: placement.at, to: placement.target })
    }

    /// Groups items by the workload or edge drawn in their place.
    fn by_copy<Id: Copy + Eq + Hash + Ord, T>(
        &self,
        items: impl Iterator<Item = (Id, T)>,
        drawn_as: impl Fn(Id) -> Id,
    ) -> BTreeMap<Id, Vec<T>> {
        let mut copies: BTreeMap<Id, Vec<T>> = BTreeMap::new();
        for (id, item) in items {
            copies.entry(drawn_as(id)).or_default().push(item);
        }
        copies
    }
}

/// Traffic of an edge whose caller is a service or a driver.
struct Carried {
    rate: Option<Estimate>,
    p50: Option<Estimate>,
    p99: Option<Estimate>,
    is_wrong: bool,
}

/// A range has its own line: long lines make the drawing wide.
fn lines(carried: &[Carried], unit: TimeUnit) -> Vec<String> {
    let each = |read: fn(&Carried) -> Option<Estimate>| over_copies_estimate(carried.iter().map(read));
    let time = |name: &str, estimate: Option<Estimate>| {
        let figure = estimate.map(|time| differing(unit.interval(&time)));
        figure.map_or_else(Vec::new, |figure| {
            let line = format!("{name} {}", format::with_unit(&figure.estimate, unit.symbol()));
            std::iter::once(line).chain(figure.range.map(|range| format!("({range})"))).collect()
        })
    };
    let rate = each(|carried| carried.rate).map(|rate| format!("{}/s", Interval::new(&rate).estimate));
    let times = [time("p50", each(|carried| carried.p50)), time("p99", each(|carried| carried.p99))];
    rate.into_iter().chain(times.into_iter().flatten()).collect()
}

/// Omits a range that has no width in the displayed digits: there is little space on a drawing.
fn differing(figure: Interval) -> Interval {
    let same = format!("{0}–{0}", figure.estimate);
    Interval { range: figure.range.filter(|range| *range != same), ..figure }
}
