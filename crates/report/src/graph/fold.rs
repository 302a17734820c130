//! Draws identical namespaces once: fifty copies of one application are one drawing with "× 50".

use experiment::topology::{Call, Runs, Topology, Workload, WorkloadId};
use std::collections::{BTreeMap, HashMap};

/// Which workloads are drawn, and which others each of them represents.
#[derive(Clone, Debug, PartialEq)]
pub struct Folding {
    /// The workload that is drawn in place of each workload.
    drawn_as: Vec<WorkloadId>,
    /// By name of a drawn namespace: the names of all namespaces identical to it, itself first.
    copies: BTreeMap<String, Vec<String>>,
}

impl Folding {
    /// Draws every workload.
    #[must_use]
    pub fn none(topology: &Topology) -> Self {
        let copies = topology.namespaces().into_iter().map(|name| (name.to_owned(), vec![name.to_owned()]));
        Self { drawn_as: (0..topology.workloads.len()).collect(), copies: copies.collect() }
    }

    /// Draws the first of the namespaces that have the same workloads, scripts, drivers and calls. Namespaces
    /// that call each other are first compared as groups, then individually.
    #[must_use]
    pub fn of_identical_namespaces(topology: &Topology) -> Self {
        let members = Members::new(topology);
        let mut folding = Self::none(topology);
        folding.fold(topology, &members, &joined_namespaces(topology));
        let drawn = topology.namespaces().into_iter().filter(|name| folding.copies.contains_key(*name));
        let single: Vec<Vec<&str>> = drawn.map(|name| vec![name]).collect();
        folding.fold(topology, &members, &single);
        folding
    }

    /// Draws the first of identical groups.
    fn fold(&mut self, topology: &Topology, members: &Members<'_>, groups: &[Vec<&str>]) {
        let mut first_with: HashMap<String, &[&str]> = HashMap::new();
        let mut drawn_as: Vec<WorkloadId> = (0..topology.workloads.len()).collect();
        for group in groups {
            let first = *first_with.entry(signature(topology, group, members)).or_insert(group);
            for (namespace, drawn) in group.iter().zip(first).filter(|(namespace, drawn)| namespace != drawn)
            {
                let copies = self.copies.remove(*namespace).unwrap_or_default();
                self.copies.entry((*drawn).to_owned()).or_default().extend(copies);
                for (workload, drawn) in members.workloads[namespace].iter().zip(&members.workloads[drawn]) {
                    drawn_as[*workload] = *drawn;
                }
            }
        }
        self.drawn_as.iter_mut().for_each(|drawn| *drawn = drawn_as[*drawn]);
    }

    /// The workload that is drawn in place of this one.
    #[must_use]
    pub fn drawn_as(&self, workload: WorkloadId) -> WorkloadId {
        self.drawn_as[workload]
    }

    /// The edge that is drawn in place of this one.
    #[must_use]
    pub fn call_drawn_as(&self, call: Call) -> Call {
        Call { from: self.drawn_as(call.from), to: self.drawn_as(call.to) }
    }

    /// True if some drawn namespace represents several.
    #[must_use]
    pub fn is_folded(&self) -> bool {
        self.copies.values().any(|copies| copies.len() > 1)
    }

    /// Workloads that are drawn.
    pub(super) fn workloads(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        self.drawn_as.iter().enumerate().filter(|(id, drawn)| id == *drawn).map(|(id, _)| id)
    }

    /// Distinct edges that are drawn, in the order in which they first appear.
    pub(super) fn calls(&self, topology: &Topology) -> Vec<Call> {
        let mut seen = std::collections::HashSet::new();
        let drawn = topology.calls.iter().map(|call| self.call_drawn_as(*call));
        drawn.filter(|call| seen.insert(*call)).collect()
    }

    /// Caption of a drawn namespace: its name, or the first and last name and the number of identical
    /// namespaces.
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

    /// Number of namespaces that a drawn one represents, including itself.
    pub(super) fn count(&self, namespace: &str) -> usize {
        self.copies.get(namespace).map_or(1, Vec::len)
    }
}

struct Members<'a> {
    /// Workloads by namespace.
    workloads: HashMap<&'a str, Vec<WorkloadId>>,
    /// Calls from and to each namespace.
    calls: HashMap<&'a str, Vec<Call>>,
    /// Indices of the drivers in each namespace.
    drivers: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Members<'a> {
    fn new(topology: &'a Topology) -> Self {
        let namespace = |id: WorkloadId| topology.workloads[id].namespace.as_str();
        let mut members = Self { workloads: HashMap::new(), calls: HashMap::new(), drivers: HashMap::new() };
        for id in 0..topology.workloads.len() {
            members.workloads.entry(namespace(id)).or_default().push(id);
        }
        for call in &topology.calls {
            members.calls.entry(namespace(call.from)).or_default().push(*call);
            if namespace(call.from) != namespace(call.to) {
                members.calls.entry(namespace(call.to)).or_default().push(*call);
            }
        }
        for (position, driver) in topology.drivers.iter().enumerate() {
            members.drivers.entry(namespace(driver.at)).or_default().push(position);
        }
        members
    }
}

/// Groups of namespaces connected by calls, in the order of their first workloads.
fn joined_namespaces(topology: &Topology) -> Vec<Vec<&str>> {
    let namespaces = topology.namespaces();
    let position: HashMap<&str, usize> =
        namespaces.iter().enumerate().map(|(position, name)| (*name, position)).collect();
    let mut group: Vec<usize> = (0..namespaces.len()).collect();
    for call in &topology.calls {
        let ends = [call.from, call.to].map(|id| position[topology.workloads[id].namespace.as_str()]);
        let roots = ends.map(|end| root(&mut group, end));
        group[roots[0].max(roots[1])] = roots[0].min(roots[1]);
    }
    let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (position, namespace) in namespaces.iter().enumerate() {
        groups.entry(root(&mut group, position)).or_default().push(namespace);
    }
    groups.into_values().collect()
}

/// Root of the union-find tree that contains the namespace.
fn root(group: &mut [usize], mut namespace: usize) -> usize {
    while group[namespace] != namespace {
        group[namespace] = group[group[namespace]];
        namespace = group[namespace];
    }
    namespace
}

/// Equal for groups of namespaces that differ only in their names.
fn signature(topology: &Topology, group: &[&str], members: &Members<'_>) -> String {
    let own: Vec<WorkloadId> =
        group.iter().flat_map(|namespace| &members.workloads[namespace]).copied().collect();
    let position: HashMap<WorkloadId, usize> =
        own.iter().enumerate().map(|(position, id)| (*id, position)).collect();
    // A workload of the group is identified by its position, all others by their own id.
    let relative = |id: WorkloadId| position.get(&id).copied().unwrap_or(usize::MAX - id);
    let number = |name: &str| group.iter().position(|namespace| *namespace == name).unwrap_or(0);
    let workload = |id: &WorkloadId| {
        let mut workload = topology.workloads[*id].clone();
        workload.namespace = number(&workload.namespace).to_string();
        if let Runs::Scripted(service) = &mut workload.runs {
            let steps = service.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.steps);
            steps.for_each(|step| step.map_callees(&relative));
        }
        workload
    };
    let workloads: Vec<Workload> = own.iter().map(workload).collect();
    let calls = group.iter().flat_map(|namespace| members.calls.get(namespace).into_iter().flatten());
    let mut calls: Vec<_> = calls.map(|call| (relative(call.from), relative(call.to))).collect();
    calls.sort_unstable();
    let drivers = group.iter().flat_map(|namespace| members.drivers.get(namespace).into_iter().flatten());
    let drivers = drivers.map(|position| &topology.drivers[*position]);
    let drivers: Vec<_> =
        drivers.map(|driver| (relative(driver.at), relative(driver.target), &driver.endpoint)).collect();
    format!("{workloads:?}{calls:?}{drivers:?}")
}
