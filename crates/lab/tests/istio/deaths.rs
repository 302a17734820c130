//! Components that die: each is reported with its last log lines, and the next trial starts clean.

use crate::cases::LogFolder;
use crate::death::{check_named, container, end, signal};
use crate::modes::spec;
use crate::prepared;
use crate::trial::{TEST_TIMEOUT, trial};
use experiment::environment::error_chain;
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use lab::{Container, Lab};
use results::Mode;
use rustix::process::Signal;
use std::time::Instant;

fn bring_up<'a>(local_lab: &'a LocalLab, logs: &std::path::Path) -> LabDeployment<'a> {
    bring_up_mode(local_lab, Mode::Sidecar, logs)
}

pub fn bring_up_mode<'a>(local_lab: &'a LocalLab, mode: Mode, logs: &std::path::Path) -> LabDeployment<'a> {
    let brought_up = local_lab.bring_up(&spec(mode), logs);
    brought_up.unwrap_or_else(|error| panic!("{}", error_chain(&error)))
}

pub fn dead_proxy_is_reported_with_log(lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    // The agent: its Envoy ends with it.
    let deployment = bring_up(local_lab, logs.path());
    let agent = container(deployment.pods(), "server-proxy").clone();
    end(&agent, Signal::KILL);
    check_named(deployment, "server-proxy", "Envoy proxy is ready");
    // Envoy itself: the agent ends with it.
    let deployment = bring_up(local_lab, logs.path());
    let agent = container(deployment.pods(), "client-proxy").clone();
    let envoy = processes_of(&agent).into_iter().find(|pid| program_of(*pid).contains("envoy"));
    let envoy = envoy.expect("an agent runs an Envoy");
    signal(envoy, Signal::KILL);
    // Whether or not the agent has ended too.
    lab::wait_for("the Envoy has ended", TEST_TIMEOUT, || Ok(agent.failed().map(drop)))
        .expect("it was killed");
    check_named(deployment, "client-proxy", "Envoy");
    assert!(lab.status().expect("the lab is up").pods.len() <= 1, "pods of dead trials are left");
}

fn processes_of(container: &Container) -> Vec<i32> {
    let cgroup = container.cgroup().expect("this test needs control groups");
    cgroup.processes().expect("its processes run")
}

fn program_of(pid: i32) -> String {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program.to_string_lossy().into_owned()
}

/// The tests of runs do the same to kube-apiserver, and to all three that hang.
pub fn dead_control_plane_is_reported_and_replaced(_lab: &Lab, local_lab: &LocalLab) {
    for (name, word) in [("istiod", "ADS"), ("etcd", "")] {
        let logs = LogFolder::create();
        let begun = Instant::now();
        let deployment = bring_up(local_lab, logs.path());
        let up_s = begun.elapsed().as_secs_f64();
        let running = local_lab.running_control_plane().expect("it configured the proxies");
        let part = container([running.pod()], name).clone();
        // The next control plane is the first one after the damage; the one after that starts from what it
        // left.
        if name == "istiod" {
            prepared::damage();
        }
        end(&part, Signal::KILL);
        drop(running);
        check_named(deployment, name, word);
        let named_s = begun.elapsed().as_secs_f64();
        let next = trial(local_lab, &spec(Mode::Sidecar), |_| ());
        assert_eq!(next.unanswered, 0);
        assert!(
            next.observation.evidence.path.proven,
            "after {name}: {:?}",
            next.observation.evidence.path.reasons
        );
        if name == "istiod" {
            prepared::check_replaced(local_lab);
        } else {
            prepared::check_started_from(local_lab);
        }
        let next_s = begun.elapsed().as_secs_f64();
        println!(
            "  {name}: up after {up_s:.1} s, killed and named after {named_s:.1} s, the next trial had ended after \
             {next_s:.1} s"
        );
    }
}
