//! CPU of whole cluster nodes, next to the containers of the experiment that run on them.
//!
//! The node and each container are sampled at different times. So usage is compared in cores, each between
//! two samples of the same source.

use super::CpuTimes;
use results::NodeUsage;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counters of a node at its last sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSnapshot {
    /// Name of the node in the cluster.
    pub name: String,
    /// Number of CPUs; absent if unknown.
    pub cpus: Option<usize>,
    /// CPU of everything on the node.
    pub all: CpuSample,
    /// Containers of the experiment and of its mesh's shared components, by any stable name.
    pub containers: BTreeMap<String, CpuSample>,
}

/// CPU reading with its sample time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CpuSample {
    /// Time of the sample, since any fixed moment.
    pub at: Duration,
    /// CPU until then; without user and kernel mode if the source does not separate them.
    pub cpu: CpuTimes,
}

/// Mean CPU between two samples, in cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cores {
    all: f64,
    /// Kernel mode; absent if unknown.
    system: Option<f64>,
}

/// CPU below which a container's time in user and kernel mode may not have been counted yet.
const UNDIVIDED: Duration = Duration::from_millis(50);

impl NodeSnapshot {
    /// Usage since an earlier snapshot of the same node; absent without a newer sample.
    pub(super) fn usage_since(&self, open: &Self) -> Option<NodeUsage> {
        let busy = self.all.cores_since(&open.all)?;
        let containers = self.containers.iter();
        let containers: Option<Vec<Cores>> =
            containers.map(|(name, container)| container.cores_since(open.containers.get(name)?)).collect();
        let other = containers.map(|containers| busy.without(&containers));
        Some(NodeUsage {
            name: self.name.clone(),
            window_s: self.all.at.saturating_sub(open.all.at).as_secs_f64(),
            cpus: self.cpus,
            busy_cores: busy.all,
            system_cores: busy.system,
            other_cores: other.map(|other| other.all),
            other_system_cores: other.and_then(|other| other.system),
        })
    }
}

impl CpuSample {
    /// Mean cores since an earlier sample; absent unless this sample is newer.
    fn cores_since(&self, open: &Self) -> Option<Cores> {
        let window_s = self.at.checked_sub(open.at).filter(|window| !window.is_zero())?.as_secs_f64();
        // The kernel divides by clock ticks: of an idle container none may have been counted.
        let is_divided = |cpu: CpuTimes| !(cpu.user + cpu.system).is_zero() || cpu.total < UNDIVIDED;
        let (user_s, system_s) = self.cpu.split_since(open.cpu);
        let system = (is_divided(self.cpu) && is_divided(open.cpu)).then_some(system_s / window_s);
        Some(Cores { all: (user_s + system_s) / window_s, system })
    }
}

impl Cores {
    /// Remainder after subtracting these; clamped at zero, since the samples are from different times.
    fn without(self, containers: &[Self]) -> Self {
        let all: f64 = containers.iter().map(|container| container.all).sum();
        let system: Option<f64> = containers.iter().map(|container| container.system).sum();
        let system = self.system.zip(system).map(|(own, theirs)| (own - theirs).max(0.0));
        let all = (self.all - all).max(0.0);
        Self { all, system: system.map(|system| system.min(all)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: u64, cpu_s: [u64; 3]) -> CpuSample {
        let [total, user, system] = cpu_s.map(Duration::from_secs);
        CpuSample { at: Duration::from_secs(at_s), cpu: CpuTimes { total, user, system } }
    }

    fn node(all: CpuSample, containers: &[CpuSample]) -> NodeSnapshot {
        let containers = containers.iter().enumerate();
        let containers = containers.map(|(index, sample)| (index.to_string(), *sample)).collect();
        NodeSnapshot { name: "node-1".to_owned(), cpus: Some(4), all, containers }
    }

    #[test]
    fn usage_since_compares_cores_over_own_sample_times() {
        let open = node(sample(100, [50, 30, 20]), &[sample(95, [10, 8, 2]), sample(98, [5, 4, 1])]);
        let close = node(sample(116, [98, 54, 44]), &[sample(103, [18, 14, 4]), sample(114, [13, 10, 3])]);
        let usage = close.usage_since(&open).unwrap();
        let expected = NodeUsage {
            name: "node-1".to_owned(),
            window_s: 16.0,
            cpus: Some(4),
            busy_cores: 3.0,
            system_cores: Some(1.5),
            other_cores: Some(1.5),
            other_system_cores: Some(1.125),
        };
        assert_eq!(usage, expected);
    }

    #[test]
    fn usage_since_leaves_unknown_figures_absent() {
        let (open, close) = (sample(100, [50, 30, 20]), sample(120, [90, 50, 40]));
        let undivided = [sample(100, [5, 0, 0]), sample(120, [15, 0, 0])];
        let usage = node(close, &undivided[1..]).usage_since(&node(open, &undivided[..1])).unwrap();
        assert_eq!((usage.other_cores, usage.other_system_cores), (Some(1.5), None));
        let usage = node(close, &undivided[1..]).usage_since(&node(open, &undivided[1..])).unwrap();
        assert_eq!((usage.busy_cores, usage.other_cores), (2.0, None), "one has no newer sample");
        assert_eq!(node(open, &[]).usage_since(&node(open, &[])), None);
    }

    #[test]
    fn usage_since_is_divided_although_an_idle_container_has_no_ticks() {
        let idle = |at_s| CpuSample {
            at: Duration::from_secs(at_s),
            cpu: CpuTimes { total: Duration::from_millis(9), ..CpuTimes::default() },
        };
        let (open, close) = (sample(100, [50, 30, 20]), sample(120, [90, 50, 40]));
        let usage = node(close, &[idle(120)]).usage_since(&node(open, &[idle(100)])).unwrap();
        assert_eq!((usage.other_cores, usage.other_system_cores), (Some(2.0), Some(1.0)));
    }

    #[test]
    fn usage_since_is_never_negative() {
        let (open, close) = (sample(100, [50, 30, 20]), sample(120, [60, 35, 25]));
        let container = [sample(100, [5, 3, 2]), sample(110, [25, 13, 12])];
        let usage = node(close, &container[1..]).usage_since(&node(open, &container[..1])).unwrap();
        assert_eq!((usage.other_cores, usage.other_system_cores), (Some(0.0), Some(0.0)));
    }
}
