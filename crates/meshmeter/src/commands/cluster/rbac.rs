//! `meshmeter cluster rbac`.

use super::documents;
use crate::cli::RbacArgs;
use crate::failure::Failure;
use crate::output;
use cluster::rights::{Parts, Rights, roles, roles_to_detach};
use cluster::settings::ClusterSettings;

const HEADING: &str = "# Rights of a run on this cluster: written by `meshmeter cluster rbac`.\n";

/// Prints the Roles.
pub(super) fn run(args: &RbacArgs) -> Result<(), Failure> {
    if args.detach {
        let objects = roles_to_detach(&args.namespace, &args.subject.subject());
        return output::print(&format!("{HEADING}{}", documents(&objects)));
    }
    let settings = ClusterSettings {
        existing_namespaces: !args.namespaces,
        reads_nodes: args.nodes,
        prometheus: args.prometheus.clone(),
        ..ClusterSettings::new("", "")
    };
    let parts = Parts {
        istio: args.istio,
        ambient: args.ambient,
        gateway_tls: args.gateway_tls,
        linkerd: args.linkerd,
        cilium: args.cilium,
    };
    let rights = Rights::new(&settings, parts);
    let mut text = HEADING.to_owned();
    let options = [
        (!args.namespaces, "--existing-namespaces: it may not create namespaces (here: --namespaces)"),
        (!args.nodes, "--without-nodes: it may not read usage from kubelets (here: --nodes)"),
    ];
    for (_, option) in options.iter().filter(|(is_left_out, _)| *is_left_out) {
        text.push_str(&format!("# Run with {option}.\n"));
    }
    text.push_str(&documents(&roles(&rights, &args.namespace, &args.subject.subject())));
    output::print(&text)
}
