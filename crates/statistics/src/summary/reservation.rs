//! What the pods of a cell reserve, and how much of it they used.
//!
//! Reservations of the application and the generators come from the topology. The mesh reserves what Istio's
//! charts request by default, node proxies what the study of fifty tenants gave them. Containers are counted
//! from the components that the trials observed.

use super::estimates::estimate;
use crate::trials::usable;
use experiment::topology::{Topology, Workload};
use results::{
    ComponentUsage, Figure, GroupReservation, Mode, ReservationSummary, ResourceGroup, Role, TrialRecord,
};
use std::collections::BTreeSet;

const GROUPS: [ResourceGroup; 3] = [ResourceGroup::App, ResourceGroup::Generators, ResourceGroup::Mesh];

const MIB: f64 = 1_048_576.0;
/// A sidecar or a waypoint: CPU in cores, memory in bytes.
pub(crate) const PROXY: Amount = Amount { cpu_cores: 0.1, memory_bytes: 128.0 * MIB };
/// A ztunnel: `ztunnel.resources` in `manifests/charts/ztunnel/values.yaml` of the Istio that labs build.
pub(crate) const NODE_PROXY: Amount = Amount { cpu_cores: 0.2, memory_bytes: 512.0 * MIB };
/// A ztunnel in the study of fifty tenants.
const STUDY_NODE_PROXY: Amount = Amount { cpu_cores: 0.5, memory_bytes: 2048.0 * MIB };
const ISTIOD: Amount = Amount { cpu_cores: 0.5, memory_bytes: 2048.0 * MIB };

/// CPU and memory.
#[derive(Clone, Copy, Default)]
pub(crate) struct Amount {
    pub cpu_cores: f64,
    pub memory_bytes: f64,
}

impl Amount {
    pub(crate) fn sum(amounts: impl Iterator<Item = Self>) -> Self {
        amounts.fold(Self::default(), |sum, next| Self {
            cpu_cores: sum.cpu_cores + next.cpu_cores,
            memory_bytes: sum.memory_bytes + next.memory_bytes,
        })
    }
}

/// Reservation of a cell; `None` if no trial observed its components.
pub(super) fn reservation(topology: &Topology, all: &[&TrialRecord]) -> Option<ReservationSummary> {
    let observed = all.iter().max_by_key(|trial| trial.components.len())?;
    // In mode none the control plane keeps running between trials, but is not needed.
    let has_mesh = observed.mode != Mode::None;
    let counts = |usage: &&ComponentUsage| {
        group_of(usage).is_some_and(|group| has_mesh || group != ResourceGroup::Mesh)
    };
    let counted: Vec<&ComponentUsage> = observed.components.iter().filter(counts).collect();
    if counted.is_empty() {
        return None;
    }
    let pods: BTreeSet<&str> = counted.iter().filter_map(|usage| usage.pod.as_deref()).collect();
    let group = |group| group_reservation(group, topology, &counted, all);
    Some(ReservationSummary {
        namespaces: topology.namespaces().len(),
        services: topology.workloads.iter().filter(|workload| workload.serves()).count(),
        workloads: topology.workloads.len(),
        pods: pods.len(),
        containers: counted.len(),
        proxies: counted.iter().filter(|usage| usage.role == Role::Proxy).count(),
        groups: GROUPS.into_iter().filter_map(group).collect(),
    })
}

/// The resource group of a component; `None` for components of the machine, Meshmeter and Kubernetes.
fn group_of(usage: &ComponentUsage) -> Option<ResourceGroup> {
    match usage.role {
        Role::App => Some(ResourceGroup::App),
        Role::Generator => Some(ResourceGroup::Generators),
        Role::Proxy => Some(ResourceGroup::Mesh),
        Role::ControlPlane => (usage.name == "istiod").then_some(ResourceGroup::Mesh),
        // No reservations are published for these.
        Role::FilterService | Role::Kernel | Role::Observer => None,
    }
}

fn group_reservation(
    group: ResourceGroup,
    topology: &Topology,
    counted: &[&ComponentUsage],
    trials: &[&TrialRecord],
) -> Option<GroupReservation> {
    let own: Vec<&&ComponentUsage> = counted.iter().filter(|usage| group_of(usage) == Some(group)).collect();
    let of_topology = |serves| {
        let workloads = topology.workloads.iter().filter(move |workload| workload.serves() == serves);
        Amount::sum(workloads.map(requested))
    };
    let reserved = match group {
        ResourceGroup::App => of_topology(true),
        ResourceGroup::Generators => of_topology(false),
        ResourceGroup::Mesh => Amount::sum(own.iter().map(|usage| mesh_default(usage))),
    };
    let is_own = |usage: &&ComponentUsage| group_of(usage) == Some(group);
    let cpu = |trial: &&TrialRecord| {
        trial.components.iter().filter(is_own).map(ComponentUsage::cpu_cores).sum::<f64>()
    };
    let memory = |trial: &&TrialRecord| {
        let own = trial.components.iter().filter(is_own);
        own.map(|usage| usage.memory_working_set_bytes.map(|bytes| bytes as f64)).sum::<Option<f64>>()
    };
    (!own.is_empty()).then(|| GroupReservation {
        group,
        containers: own.len(),
        reserved_cpu_cores: reserved.cpu_cores,
        reserved_memory_bytes: reserved.memory_bytes,
        used_cpu_cores: estimate(usable(trials, Figure::Cpu).iter().map(cpu)),
        used_memory_bytes: estimate(usable(trials, Figure::Memory).iter().filter_map(memory)),
    })
}

fn requested(workload: &Workload) -> Amount {
    let (pods, resources) = (workload.replicas as f64, workload.resources);
    Amount {
        cpu_cores: pods * resources.cpu_request_cores.unwrap_or_default(),
        memory_bytes: pods * resources.memory_request_bytes.unwrap_or_default() as f64,
    }
}

fn mesh_default(usage: &ComponentUsage) -> Amount {
    match usage.role {
        Role::ControlPlane => ISTIOD,
        _ if usage.name.ends_with("ztunnel") => STUDY_NODE_PROXY,
        _ => PROXY,
    }
}
