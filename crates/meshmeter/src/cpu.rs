//! Estimates the CPU that proxies need for a planned load, and compares it with the CPUs of this machine
//! before anything starts.
//!
//! Costs are those that Istio publishes for release 1.24. Applications, generators and the kernel need CPU
//! besides, and proxies that are rarely used need several times as much per request
//! (docs/topology.md, "Resources of a topology"), so a load that passes this check may still be too high.

use experiment::dataplane::{Entry, ModeParts, ProxyProgram};
use experiment::{Plan, PlannedTrial};
use report::format::counted;

/// Cores of an Envoy, as sidecar or gateway, for 1000 requests/s.
const ENVOY_CORES_PER_1000: f64 = 0.20;
const WAYPOINT_CORES_PER_1000: f64 = 0.25;
/// Cores of a ztunnel for 1000 requests/s of the pods of either side.
const ZTUNNEL_CORES_PER_1000: f64 = 0.06;

/// Compares the trial of a plan that needs most with the CPUs of the machine. Returns a warning as a
/// sentence.
pub fn check(plan: &Plan, cpus: usize) -> Option<String> {
    // Each repeat has every cell once.
    let needs = plan.repeats().next()?.iter().filter_map(|trial| Some((ProxyNeed::of(trial)?, trial)));
    let (need, trial) = needs.max_by(|(one, _), (other, _)| one.cores.total_cmp(&other.cores))?;
    let machine = counted(cpus as u64, "CPU", "CPUs");
    let rate = trial.load.rate?;
    (need.cores >= cpus as f64).then(|| {
        format!(
            "mode {} at {rate} requests/s per driver: {:.0} requests/s through proxies take about {:.1} cores by \
             Istio's published figures, and this machine has {machine}: its trials will be saturated",
            trial.mode(), need.requests_s, need.cores
        )
    })
}

/// Requests through proxies per second, each counted at every proxy that it passes, and cores for them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ProxyNeed {
    requests_s: f64,
    cores: f64,
}

impl ProxyNeed {
    /// Absent for closed loops, whose rate is not known, and for fleets.
    fn of(trial: &PlannedTrial) -> Option<Self> {
        let topology = &trial.spec.topology;
        let rate = trial.load.rate?;
        let expected = topology.expected_of_all().ok()?;
        let ModeParts { data_plane, entry, .. } = trial.spec.parts();
        let proxies = data_plane.proxies();
        let mut need = Self::default();
        for (call, requests) in &expected.edges {
            let in_mesh = |workload: usize| f64::from(u8::from(topology.workloads[workload].in_mesh));
            let requests_s = requests * rate;
            let of_ends = requests_s * (in_mesh(call.from) + in_mesh(call.to));
            need.add(of_ends, proxies.pod.map_or(0.0, cores_per_1000));
            need.add(of_ends, proxies.node.map_or(0.0, cores_per_1000));
            let waypoint = proxies.namespace.map_or(0.0, |_| WAYPOINT_CORES_PER_1000);
            need.add(requests_s * in_mesh(call.to), waypoint);
        }
        if entry != Entry::Direct {
            need.add(rate * topology.drivers.len() as f64, ENVOY_CORES_PER_1000);
        }
        Some(need)
    }

    fn add(&mut self, requests_s: f64, cores_per_1000: f64) {
        if cores_per_1000 > 0.0 {
            self.requests_s += requests_s;
            self.cores += requests_s / 1000.0 * cores_per_1000;
        }
    }
}

fn cores_per_1000(program: ProxyProgram) -> f64 {
    match program {
        ProxyProgram::StaticEnvoy | ProxyProgram::AgentEnvoy => ENVOY_CORES_PER_1000,
        ProxyProgram::Ztunnel | ProxyProgram::Linkerd => ZTUNNEL_CORES_PER_1000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Experiment;

    fn plan(modes: &str, load: &str) -> Plan {
        let text = format!(
            "{{name: x, mesh: istio, modes: [{modes}], load: {{{load}}}, repeats: 1, \
             topology: {{shape: tiered, namespaces: 50}}}}"
        );
        Plan::new(&Experiment::parse(&text, "test").unwrap(), 1)
    }

    /// A request of a tenant is five calls, so it passes ten sidecars, each ztunnel ten times, and five waypoints.
    #[test]
    fn requests_count_at_every_proxy_that_they_pass() {
        let need = |mode: &str| ProxyNeed::of(&plan(mode, "rate: 20").trials[0]).unwrap();
        let rounded = |need: ProxyNeed| (need.requests_s.round(), (need.cores * 1000.0).round());
        assert_eq!(rounded(need("none")), (0.0, 0.0));
        assert_eq!(rounded(need("sidecar")), (10_000.0, 2000.0));
        assert_eq!(rounded(need("ambient")), (10_000.0, 600.0));
        assert_eq!(rounded(need("ambient-waypoint")), (15_000.0, 1850.0));
        assert_eq!(ProxyNeed::of(&plan("sidecar", "clients: 4").trials[0]), None);
    }

    #[test]
    fn load_beyond_the_cpus_is_a_warning() {
        let modes = "none, ambient, sidecar";
        let warning = check(&plan(modes, "rate: [2, 20]"), 2);
        assert_eq!(
            warning.as_deref(),
            Some(
                "mode sidecar at 20 requests/s per driver: 10000 requests/s through proxies take about 2.0 cores by \
                 Istio's published figures, and this machine has 2 CPUs: its trials will be saturated"
            )
        );
        assert_eq!(check(&plan(modes, "rate: 20"), 4), None);
        assert_eq!(check(&plan(modes, "clients: 20"), 1), None);
    }
}
