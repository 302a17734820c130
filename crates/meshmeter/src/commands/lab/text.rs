//! Labs as text for people.

use super::access_text;
use lab::registry::{ContainerStatus, LabStatus, Removed};
use std::fmt::Write as _;

/// Printed by `lab up` once everything is ready.
pub fn lab_up(lab: &LabStatus) -> String {
    let mut rendered = format!("lab {} is up\n", lab.id);
    pods(&mut rendered, lab);
    if let Some(access) = &lab.access {
        access_text::access(&mut rendered, access);
    }
    rendered.push_str("Ctrl-C, or `meshmeter lab down` with the lab's name, takes it down\n");
    rendered
}

/// Printed by `lab status`.
pub fn labs(labs: &[LabStatus]) -> String {
    if labs.is_empty() {
        return "no lab is up\n".to_owned();
    }
    let mut text = String::new();
    for lab in labs {
        let since = lab.started_at.split('.').next().unwrap_or_default().replace('T', " ");
        let _ = writeln!(text, "{}  {}, since {since} UTC", lab.id, lab.purpose);
        if lab.running {
            let _ = writeln!(text, "  {} processes, {} pods", lab.processes, lab.pods.len());
            pods(&mut text, lab);
            if let Some(access) = &lab.access {
                access_text::access(&mut text, access);
            }
        } else {
            let _ = writeln!(text, "  killed; `meshmeter lab down {}` removes what it has left", lab.id);
        }
    }
    text
}

/// Pods with their processes and how to enter them.
pub fn pods(text: &mut String, lab: &LabStatus) {
    for pod in &lab.pods {
        let _ = writeln!(text, "  {}  {}", pod.name, pod.address);
        for container in &pod.containers {
            let _ = writeln!(text, "    {}", one_container(container));
        }
        let _ = writeln!(text, "    enter: meshmeter lab exec --lab {} {} -- COMMAND", lab.id, pod.name);
    }
}

fn one_container(container: &ContainerStatus) -> String {
    let program = container.program.file_name().unwrap_or_default().to_string_lossy();
    match container.pid {
        Some(pid) => format!("{}: {program}, process {pid}", container.name),
        None => format!("{}: {program}, has ended", container.name),
    }
}

/// Printed by `lab down`. `left`: number of labs that are still up.
pub fn removed(removed: &[Removed], left: usize) -> String {
    let mut text = String::new();
    for lab in removed {
        let state = if lab.was_running { "took down" } else { "removed what was left of" };
        let _ = writeln!(text, "{state} {} ({})", lab.id, lab.purpose);
        for cgroup in &lab.cgroups {
            let _ = writeln!(text, "  control group {}", cgroup.display());
        }
        let _ = writeln!(text, "  folder {}", lab.directory.display());
    }
    if removed.is_empty() {
        text.push_str("nothing to take down\n");
    }
    if left > 0 {
        let labs = if left == 1 { "lab is" } else { "labs are" };
        let _ = writeln!(
            text,
            "{left} {labs} up: `meshmeter lab status` lists them, `--all` takes down every one"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::registry::{PodNamespaces, PodStatus};
    use std::net::Ipv4Addr;

    fn lab(running: bool) -> LabStatus {
        let container = |name: &str, pid| ContainerStatus {
            name: name.to_owned(),
            program: format!("/opt/{name}").into(),
            pid,
        };
        let pod = PodStatus {
            name: "client".to_owned(),
            address: Ipv4Addr::new(10, 77, 0, 2),
            enter: vec!["nsenter".to_owned(), "--net=/proc/812/fd/9".to_owned()],
            containers: vec![container("envoy", Some(830)), container("generator", None)],
            namespaces: PodNamespaces::default(),
        };
        LabStatus {
            id: "k3x7ab".to_owned(),
            purpose: "run sidecar-cost".to_owned(),
            started_at: "2026-11-20T10:03:22.123456789Z".to_owned(),
            running,
            processes: if running { 3 } else { 0 },
            pods: if running { vec![pod] } else { Vec::new() },
            directory: "/run/meshmeter/labs/k3x7ab".into(),
            access: None,
        }
    }

    #[test]
    fn lab_text_shows_pods_and_how_to_enter_them() {
        insta::assert_snapshot!(labs(&[lab(true)]), @r"
        k3x7ab  run sidecar-cost, since 2026-11-20 10:03:22 UTC
          3 processes, 1 pods
          client  10.77.0.2
            envoy: envoy, process 830
            generator: generator, has ended
            enter: meshmeter lab exec --lab k3x7ab client -- COMMAND
        ");
    }

    #[test]
    fn killed_lab_shows_how_to_remove_it() {
        assert!(labs(&[lab(false)]).contains("`meshmeter lab down k3x7ab` removes what it has left"));
    }

    #[test]
    fn removed_labs_are_named() {
        let removed_lab = Removed {
            id: "k3x7ab".to_owned(),
            purpose: "run sidecar-cost".to_owned(),
            was_running: false,
            cgroups: vec!["/sys/fs/cgroup/cpu/meshmeter/k3x7ab".into()],
            directory: "/run/meshmeter/labs/k3x7ab".into(),
        };
        insta::assert_snapshot!(removed(&[removed_lab], 1), @r"
        removed what was left of k3x7ab (run sidecar-cost)
          control group /sys/fs/cgroup/cpu/meshmeter/k3x7ab
          folder /run/meshmeter/labs/k3x7ab
        1 lab is up: `meshmeter lab status` lists them, `--all` takes down every one
        ");
        assert_eq!(removed(&[], 0), "nothing to take down\n");
    }
}
