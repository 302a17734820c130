//! Sampling compared with a known ground truth.

use crate::cases::LogFolder;
use experiment::topology::Resources;
use lab::environment::LocalLab;
use lab::observe::{self, HostProc, Watched};
use lab::{ContainerSpec, ContainerUser, Lab, PodSpec, Privileges, wait_for};
use results::Role;
use std::collections::BTreeMap;
use std::time::Duration;

const BURN_MS: u64 = 500;

/// A process burns a known amount of CPU time; its cgroup and `/proc` must both report it to within a tenth.
/// An ordinary user may lack cgroups; root must have them.
pub fn known_cpu_burn_is_read_by_both_sources(lab: &Lab, _local_lab: &mut LocalLab) {
    let logs = LogFolder::create();
    let (log, go) = (logs.path().join("burner.log"), logs.path().join("go"));
    let mut pod = lab.create_pod(&PodSpec::new("burner")).expect("a pod can be made");
    let container = pod
        .start(&ContainerSpec {
            name: "burner".to_owned(),
            program: std::env::current_exe().expect("a running program has a path"),
            arguments: vec!["burn".into(), BURN_MS.to_string().into(), go.clone().into()],
            environment: BTreeMap::new(),
            limits: Resources::default(),
            user: ContainerUser::Lab,
            confined: None,
            working_directory: None,
            output_log: log.clone(),
            pipe_error_output: false,
            pipe_input: false,
        })
        .expect("it starts");
    let watched = Watched {
        name: "burner".to_owned(),
        role: Role::App,
        pod: "burner".to_owned(),
        pid: container.pid().cast_signed(),
        cgroup: container.cgroup().cloned(),
        interface: None,
    };
    assert!(watched.cgroup.is_some() || lab.privileges() != Privileges::Root, "root has control groups");
    let by_proc = Watched { name: "burner-by-proc".to_owned(), cgroup: None, ..watched.clone() };
    let await_word = |word: &str| {
        wait_for(&format!("the burner is {word}"), Duration::from_secs(60), || {
            Ok(std::fs::read_to_string(&log).is_ok_and(|text| text.contains(word)).then_some(()))
        })
        .expect("it says so");
    };
    // Its own startup must not be part of the reading.
    await_word("ready");
    let host = HostProc::new(lab.host_proc_path()).expect("the machine's /proc can be read");
    let both = [watched, by_proc];
    let open = observe::read(&both, &host).expect("it runs");
    std::fs::write(&go, []).expect("a temporary folder can be written");
    await_word("burnt");
    let usage = observe::read(&both, &host).expect("it waits").usage_since(&open);
    for usage in &usage.components[..2] {
        let cpu_ms = (usage.cpu_user_s + usage.cpu_system_s) * 1e3;
        let error = (cpu_ms - BURN_MS as f64).abs() / BURN_MS as f64;
        assert!(error < 0.1, "{} ms were burnt, {cpu_ms:.1} read: {usage:?}", BURN_MS);
        // A loop that only spins and reads the clock.
        assert!(usage.cpu_user_s > usage.cpu_system_s, "{usage:?}");
    }
}
