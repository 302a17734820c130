//! `meshmeter cluster rbac`.

use super::documents;
use crate::cli::RbacArgs;
use crate::failure::Failure;
use crate::output;
use cluster::rights::{Parts, Rights, roles, roles_to_detach};
use cluster::settings::ClusterSettings;
use std::process::ExitCode;

const HEADING: &str = "# Rights of a run on this cluster: written by `meshmeter cluster rbac`.\n";
const NODES_PROXY_WARNING: &str = "\
# Warning: with nodes/proxy its holder can run commands in every container of the cluster, through the kubelets.
# The API server has no smaller right to them. A Prometheus makes it unnecessary: --prometheus, here and in runs.
";
const NAMESPACES_WARNING: &str = "\
# Warning: rights in all namespaces. Pods can be created in each, with its Secrets and its service accounts.
";
const SECRETS_WARNING: &str = "# Warning: a right to read and write all Secrets of the cluster.\n";

/// Prints the Roles.
pub(super) fn run(args: &RbacArgs) -> Result<ExitCode, Failure> {
    let text = if args.detach {
        let objects = roles_to_detach(&args.namespace, &args.subject.subject());
        format!("{HEADING}{}", documents(&objects))
    } else {
        check_secrets(args)?;
        text_of_roles(args)
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns an error if all Secrets of the cluster would be granted without a word that confirms it.
fn check_secrets(args: &RbacArgs) -> Result<(), Failure> {
    if !(args.namespaces && args.gateway_tls) || args.all_secrets {
        return Ok(());
    }
    Err(Failure::usage("--gateway-tls with --namespaces is a right to all Secrets of the cluster").with_hint(
        "create the namespaces of the run beforehand and leave out --namespaces; if all Secrets are meant: --all-secrets",
    ))
}

fn text_of_roles(args: &RbacArgs) -> String {
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
    let warnings = [
        (settings.reads_kubelets(), NODES_PROXY_WARNING),
        (args.namespaces, NAMESPACES_WARNING),
        (args.namespaces && args.gateway_tls, SECRETS_WARNING),
    ];
    warnings.iter().filter(|(is_granted, _)| *is_granted).for_each(|(_, warning)| text.push_str(warning));
    let options = [
        (!args.namespaces, "--existing-namespaces: it may not create namespaces (here: --namespaces)"),
        (!args.nodes, "--without-nodes: it may not read usage from kubelets (here: --nodes)"),
    ];
    for (_, option) in options.iter().filter(|(is_left_out, _)| *is_left_out) {
        text.push_str(&format!("# Run with {option}.\n"));
    }
    text.push_str(&documents(&roles(&rights, &args.namespace, &args.subject.subject())));
    text
}
