//! One pacing for all trials of a run, chosen before the first trial (docs/decisions/0006-pacing.md).

use super::drivers;
use experiment::dataplane::{Entry, Exit, ModeParts, Proxies};
use experiment::environment::DeploymentSpec;
use experiment::{MeshKind, Plan, PlannedTrial};
use results::{Pacing, Pauses, RunPacing};

/// Pauses of 1 ms or more per second above which threads do not spin: a hypervisor takes the CPU of a thread
/// that never sleeps.
const MAX_LONG_PAUSES_PER_S: f64 = 0.5;

/// Pacing of a plan on a machine with `cpus` usable CPUs.
pub(super) fn choose(plan: &Plan, cpus: usize, pauses: Option<&Pauses>) -> RunPacing {
    let fixed = plan.trials.first().and_then(|trial| trial.pacing);
    if let Some(pacing) = fixed {
        return RunPacing { pacing, fixed: true, reason: "the experiment fixes it".to_owned() };
    }
    let sleeping = |reason: String| RunPacing { pacing: Pacing::Economical, fixed: false, reason };
    let heaviest = plan.trials.iter().max_by_key(|trial| spinners(trial) + components(&trial.spec));
    let Some(heaviest) = heaviest else { return sleeping("there is no trial".to_owned()) };
    if is_limited(heaviest) {
        return sleeping("the CPU limit of the generator would be spent on spinning".to_owned());
    }
    let (spinners, components) = (spinners(heaviest), components(&heaviest.spec));
    let sum = format!(
        "{cpus} CPUs, {spinners} generator threads and {components} other busy components in mode {}",
        heaviest.mode()
    );
    if cpus <= spinners + components {
        return sleeping(format!("{sum}: no CPU is to spare for spinning"));
    }
    let long_per_s = pauses.and_then(Pauses::overall).map_or(0.0, |seen| seen.long_per_s);
    if long_per_s > MAX_LONG_PAUSES_PER_S {
        return sleeping(format!(
            "this machine pauses spinning threads, for 1 ms or more {long_per_s:.1} times per second"
        ));
    }
    RunPacing { pacing: Pacing::Precise, fixed: false, reason: format!("{sum}: each has a CPU") }
}

fn spinners(trial: &PlannedTrial) -> usize {
    trial.threads * drivers::generator_count(trial)
}

fn is_limited(trial: &PlannedTrial) -> bool {
    let topology = &trial.spec.topology;
    topology.drivers.iter().any(|driver| topology.workloads[driver.at].resources.cpu_limit_cores.is_some())
}

/// Services and proxies that requests may keep busy, each on its own CPU.
fn components(spec: &DeploymentSpec) -> usize {
    let topology = &spec.topology;
    let ModeParts { data_plane, entry, exit } = spec.parts();
    let Proxies { pod, node, namespace } = data_plane.proxies();
    let services = topology.workloads.iter().filter(|workload| workload.serves());
    let services: usize = services.map(|workload| workload.replicas).sum();
    // A node proxy uses a worker on each side of a call; a request passes one waypoint.
    let proxies =
        pod.map_or(0, |_| topology.pods()) + node.map_or(0, |_| 2) + usize::from(namespace.is_some());
    let gateways =
        usize::from(entry != Entry::Direct) + usize::from(!matches!(exit, Exit::None | Exit::Bypass));
    services + proxies + gateways + usize::from(spec.mesh == MeshKind::Istio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Experiment;
    use experiment::environment::deploy::Argument;
    use results::CpuPauses;

    fn plan(text: &str) -> Plan {
        Plan::new(&Experiment::parse(text, "test").unwrap(), 1)
    }

    fn pairs() -> Plan {
        plan("{name: a, modes: [none, gateway, sidecar], load: {rate: 1000}}")
    }

    #[test]
    fn threads_spin_only_if_every_component_of_heaviest_mode_has_a_cpu() {
        let chosen = |cpus| choose(&pairs(), cpus, None);
        assert_eq!(
            [2, 4, 5].map(|cpus| chosen(cpus).pacing),
            [Pacing::Economical, Pacing::Economical, Pacing::Precise]
        );
        assert!(chosen(2).reason.contains("in mode sidecar"), "{}", chosen(2).reason);
        // Without proxies, fewer CPUs are needed.
        let none = plan("{name: a, modes: [none], load: {rate: 1000}}");
        assert_eq!(choose(&none, 4, None).pacing, Pacing::Precise);
        assert_eq!(choose(&none, 2, None).pacing, Pacing::Economical);
    }

    #[test]
    fn many_drivers_sleep() {
        let tenants = plan(
            "{name: a, mesh: istio, modes: [none, sidecar], topology: {shape: tiered, namespaces: 50}, load: {rate: 20}}",
        );
        assert_eq!(choose(&tenants, 64, None).pacing, Pacing::Economical);
    }

    #[test]
    fn pauses_of_the_machine_and_limits_of_the_generator_forbid_spinning() {
        let seen = CpuPauses { observed_s: 1.0, long_per_s: 9.0, ..CpuPauses::default() };
        let pauses = Pauses { idle: vec![seen], ..Pauses::default() };
        let chosen = choose(&pairs(), 64, Some(&pauses));
        assert_eq!(chosen.pacing, Pacing::Economical);
        assert!(chosen.reason.contains("9.0 times per second"), "{}", chosen.reason);
        let limited = plan("{name: a, modes: [none], load: {rate: 1000}, client: {cpu: 500m}}");
        assert_eq!(choose(&limited, 64, None).pacing, Pacing::Economical);
    }

    #[test]
    fn every_trial_of_a_plan_has_the_same_pacing() {
        let mut plan = pairs();
        let chosen = choose(&plan, 4, None);
        plan.set_pacing(chosen.pacing);
        for trial in &plan.trials {
            for driver in drivers::starts(trial) {
                let option = Argument::Text("--pacing".to_owned());
                let at = driver.arguments.iter().position(|argument| *argument == option).unwrap();
                assert_eq!(driver.arguments[at + 1], Argument::Text("economical".to_owned()));
            }
        }
    }

    #[test]
    fn pacing_of_experiment_takes_precedence() {
        let fixed = plan("{name: a, modes: [none], load: {rate: 1000, pacing: precise}}");
        let chosen = choose(&fixed, 1, None);
        assert_eq!((chosen.pacing, chosen.fixed), (Pacing::Precise, true));
    }
}
