//! Selects the pod of a lab that a command refers to.

use crate::cli::PodArgs;
use crate::failure::Failure;
use lab::registry::{self, LabStatus, PodStatus};

/// The named pod, in the named lab or in the only one that is up.
pub fn pod(args: &PodArgs) -> Result<PodStatus, Failure> {
    choose(registry::list()?, args.lab.as_deref(), &args.pod)
}

fn choose(labs: Vec<LabStatus>, id: Option<&str>, pod: &str) -> Result<PodStatus, Failure> {
    let wanted = |lab: &LabStatus| lab.running && id.is_none_or(|id| lab.id == id);
    let mut up: Vec<LabStatus> = labs.into_iter().filter(wanted).collect();
    let lab = match (up.pop(), id) {
        (Some(lab), _) if up.is_empty() => lab,
        (Some(last), _) => {
            let ids: Vec<&str> = up.iter().chain([&last]).map(|lab| lab.id.as_str()).collect();
            return Err(Failure::usage(format!("{} labs are up: {}", ids.len(), ids.join(", ")))
                .with_hint(format!("name one: --lab {}", last.id)));
        }
        (None, Some(id)) => {
            return Err(Failure::usage(format!("no lab {id} is up"))
                .with_hint("`meshmeter lab status` lists the labs of this user"));
        }
        (None, None) => {
            return Err(Failure::usage("no lab is up").with_hint(
                "`meshmeter lab up` brings one up, until Ctrl-C; labs belong to the user who made them",
            ));
        }
    };
    let names: Vec<&str> = lab.pods.iter().map(|pod| pod.name.as_str()).collect();
    let hint = if names.is_empty() {
        "it has none now: it is being brought up, or between two trials".to_owned()
    } else {
        format!("it has {}", names.join(", "))
    };
    let missing = Failure::usage(format!("lab {} has no pod {pod}", lab.id)).with_hint(hint);
    lab.pods.into_iter().find(|candidate| candidate.name == pod).ok_or(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn lab(id: &str, running: bool) -> LabStatus {
        let pod = PodStatus {
            name: "client".to_owned(),
            address: Ipv4Addr::new(10, 77, 0, 2),
            enter: Vec::new(),
            containers: Vec::new(),
            namespaces: registry::PodNamespaces::default(),
        };
        LabStatus {
            id: id.to_owned(),
            purpose: "lab up".to_owned(),
            started_at: "2026-11-20T10:03:22Z".to_owned(),
            running,
            processes: 1,
            pods: vec![pod],
            directory: "/run/meshmeter/labs".into(),
            access: None,
        }
    }

    fn refusal(labs: Vec<LabStatus>, id: Option<&str>, pod: &str) -> String {
        format!("{:?}", choose(labs, id, pod).expect_err("it makes no sense"))
    }

    #[test]
    fn only_lab_is_selected_by_default() {
        let labs = vec![lab("k3x7ab", true), lab("old234", false)];
        assert_eq!(choose(labs.clone(), None, "client").expect("it is there").name, "client");
        assert!(refusal(labs.clone(), Some("old234"), "client").contains("no lab old234 is up"));
        assert!(refusal(labs, None, "sever").contains("it has client"));
        assert!(refusal(Vec::new(), None, "client").contains("no lab is up"));
    }

    #[test]
    fn one_of_several_labs_must_be_named() {
        let labs = vec![lab("k3x7ab", true), lab("m2n4pq", true)];
        let refusal = refusal(labs.clone(), None, "client");
        assert!(
            refusal.contains("2 labs are up: k3x7ab, m2n4pq") && refusal.contains("--lab m2n4pq"),
            "{refusal}"
        );
        assert!(choose(labs, Some("k3x7ab"), "client").is_ok());
    }
}
