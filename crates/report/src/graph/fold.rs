//! Namespaces that are alike are drawn once: fifty copies of one application are one drawing with "× 50".

use experiment::topology::script::{ScriptedService, Step};
use experiment::topology::{Call, Runs, Topology, Workload, WorkloadId};
use std::collections::{BTreeMap, HashMap};

/// Which workloads are drawn, and for which others they stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Folding {
    /// By workload: the one that is drawn for it.
    drawn_as: Vec<WorkloadId>,
    /// By name of a namespace that is drawn: the names of all that are like it, itself first.
    copies: BTreeMap<String, Vec<String>>,
}

impl Folding {
    /// Every workload is drawn.
    #[must_use]
    pub fn none(topology: &Topology) -> Self {
        let copies = topology.namespaces().into_iter().map(|name| (name.to_owned(), vec![name.to_owned()]));
        Self { drawn_as: (0..topology.workloads.len()).collect(), copies: copies.collect() }
    }

    /// Of namespaces with the same workloads, scripts, drivers and calls, the first is drawn.
    #[must_use]
    pub fn of_identical_namespaces(topology: &Topology) -> Self {
        let members = members(topology);
        let calls = calls_by_namespace(topology, &members);
        let mut first_with: HashMap<String, &str> = HashMap::new();
        let mut folding = Self { drawn_as: (0..topology.workloads.len()).collect(), copies: BTreeMap::new() };
        for namespace in topology.namespaces() {
            let own = &members.by_namespace[namespace];
            let first = *first_with
                .entry(signature(topology, namespace, &members, &calls[namespace]))
                .or_insert(namespace);
            for (workload, drawn) in own.iter().zip(&members.by_namespace[first]) {
                folding.drawn_as[*workload] = *drawn;
            }
            folding.copies.entry(first.to_owned()).or_default().push(namespace.to_owned());
        }
        folding
    }

    /// The workload that is drawn for this one.
    #[must_use]
    pub fn drawn_as(&self, workload: WorkloadId) -> WorkloadId {
        self.drawn_as[workload]
    }

    /// The edge that is drawn for this one.
    #[must_use]
    pub fn call_drawn_as(&self, call: Call) -> Call {
        Call { from: self.drawn_as(call.from), to: self.drawn_as(call.to) }
    }

    /// Whether some namespace stands for several.
    #[must_use]
    pub fn is_folded(&self) -> bool {
        self.copies.values().any(|copies| copies.len() > 1)
    }

    /// Workloads that are drawn.
    pub(super) fn workloads(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        self.drawn_as.iter().enumerate().filter(|(id, drawn)| id == *drawn).map(|(id, _)| id)
    }

    /// Edges that are drawn, each once, in the order of their first mention.
    pub(super) fn calls(&self, topology: &Topology) -> Vec<Call> {
        let mut seen = std::collections::HashSet::new();
        let drawn = topology.calls.iter().map(|call| self.call_drawn_as(*call));
        drawn.filter(|call| seen.insert(*call)).collect()
    }

    /// Caption of a namespace that is drawn: its name, or first and last name and number of those that are like it.
    #[must_use]
    pub fn caption(&self, namespace: &str) -> String {
        match self.copies.get(namespace).map(Vec::as_slice) {
            Some([first, .., last]) => {
                let count = self.copies[namespace].len();
                format!("{first} … {last}  × {count}")
            }
            _ => namespace.to_owned(),
        }
    }

    /// Number of namespaces that this one stands for, itself included.
    pub(super) fn count(&self, namespace: &str) -> usize {
        self.copies.get(namespace).map_or(1, Vec::len)
    }
}

struct Members<'a> {
    by_namespace: HashMap<&'a str, Vec<WorkloadId>>,
    /// Position of each workload within its namespace.
    position: Vec<usize>,
}

fn members(topology: &Topology) -> Members<'_> {
    let mut members = Members { by_namespace: HashMap::new(), position: Vec::new() };
    for (id, workload) in topology.workloads.iter().enumerate() {
        let own: &mut Vec<WorkloadId> = members.by_namespace.entry(&workload.namespace).or_default();
        members.position.push(own.len());
        own.push(id);
    }
    members
}

fn calls_by_namespace<'a>(topology: &'a Topology, members: &Members<'a>) -> HashMap<&'a str, Vec<Call>> {
    let mut calls: HashMap<&str, Vec<Call>> =
        members.by_namespace.keys().map(|namespace| (*namespace, Vec::new())).collect();
    for call in &topology.calls {
        let namespaces = [call.from, call.to].map(|id| topology.workloads[id].namespace.as_str());
        calls.entry(namespaces[0]).or_default().push(*call);
        if namespaces[0] != namespaces[1] {
            calls.entry(namespaces[1]).or_default().push(*call);
        }
    }
    calls
}

/// Equal for namespaces that are alike but for their names.
fn signature(topology: &Topology, namespace: &str, members: &Members<'_>, calls: &[Call]) -> String {
    // A workload of the same namespace is known by its position; all others are themselves.
    let relative = |id: WorkloadId| {
        if topology.workloads[id].namespace == namespace { members.position[id] } else { usize::MAX - id }
    };
    let workload = |id: &WorkloadId| {
        let workload = &topology.workloads[*id];
        let runs = match &workload.runs {
            Runs::Scripted(service) => Runs::Scripted(relative_service(service, &relative)),
            runs => runs.clone(),
        };
        Workload { namespace: String::new(), runs, ..workload.clone() }
    };
    let workloads: Vec<Workload> = members.by_namespace[namespace].iter().map(workload).collect();
    let mut calls: Vec<_> = calls.iter().map(|call| (relative(call.from), relative(call.to))).collect();
    calls.sort_unstable();
    let drivers =
        topology.drivers.iter().filter(|driver| topology.workloads[driver.at].namespace == namespace);
    let drivers: Vec<_> =
        drivers.map(|driver| (relative(driver.at), relative(driver.target), &driver.endpoint)).collect();
    format!("{workloads:?}{calls:?}{drivers:?}")
}

fn relative_service(
    service: &ScriptedService,
    relative: &impl Fn(WorkloadId) -> WorkloadId,
) -> ScriptedService {
    let mut service = service.clone();
    for step in service.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.steps) {
        make_relative(step, relative);
    }
    service
}

fn make_relative(step: &mut Step, relative: &impl Fn(WorkloadId) -> WorkloadId) {
    match step {
        Step::Call(call) => call.to = relative(call.to),
        Step::Query(query) => query.to = relative(query.to),
        Step::Parallel(steps) | Step::Sequence(steps) => {
            steps.iter_mut().for_each(|step| make_relative(step, relative));
        }
        Step::Sleep(_) | Step::Compute(_) | Step::Hold(_) => {}
    }
}
