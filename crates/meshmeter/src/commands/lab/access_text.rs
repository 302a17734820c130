//! Ways to use a lab that is up, as text for people.

use lab::registry::{Access, ControlPlaneAccess};
use results::shell_word;
use std::fmt::Write as _;

/// Ways to use a lab, one command per line.
pub fn access(text: &mut String, access: &Access) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n  traffic, from the client's pod to {}", access.url);
    let _ = writeln!(text, "    {}", command(&access.load));
    if let Some(control_plane) = &access.control_plane {
        self::control_plane(text, control_plane);
    }
    if !access.proxies.is_empty() {
        text.push_str("\n  what each proxy is configured with\n");
        for proxy in &access.proxies {
            let _ = writeln!(text, "    {}", command(&proxy.config_dump));
        }
    }
    let versions: Vec<String> =
        access.components.iter().map(|part| format!("{} {}", part.name, part.version)).collect();
    let _ = writeln!(text, "\n  logs      {}\n  versions  {}", access.logs.display(), versions.join(", "));
}

fn control_plane(text: &mut String, access: &ControlPlaneAccess) {
    let ControlPlaneAccess { kubeconfig, api, discovery, namespace, proxy_status, .. } = access;
    let kubeconfig = shell_word(&kubeconfig.to_string_lossy());
    let _ = writeln!(
        text,
        "\n  objects: the API at {api}, from any shell of this user; client and server are in namespace {namespace}\
         \n    export KUBECONFIG={kubeconfig}\
         \n    kubectl get pods,services,virtualservices\
         \n    (no kubelet: for exec, port-forward and logs use `lab exec`, `lab forward` and the files below)\
         \n\n  istiod: which proxies are connected, and what they have\
         \n    {}\
         \n    istioctl proxy-status --xds-address {discovery}",
        command(proxy_status)
    );
}

/// A command line that can be pasted into a shell.
fn command(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::registry::ProxyAccess;
    use results::ComponentVersion;

    fn in_pod(command: &str) -> Vec<String> {
        let enter = ["meshmeter", "lab", "exec", "--lab", "k3x7ab"];
        enter.into_iter().chain(command.split(' ')).map(str::to_owned).collect()
    }

    #[test]
    fn every_command_can_be_pasted() {
        let access = Access {
            url: "http://server.mesh-1.svc.cluster.local:8080/".to_owned(),
            load: in_pod("client -- meshmeter load --rate 100 http://server:8080/"),
            logs: "/run/meshmeter/labs/k3x7ab/logs".into(),
            components: vec![ComponentVersion {
                name: "envoy".to_owned(),
                version: "1.40.0".to_owned(),
                ..ComponentVersion::default()
            }],
            proxies: vec![ProxyAccess {
                name: "client-proxy".to_owned(),
                pod: "client".to_owned(),
                config_dump: in_pod("client -- curl -sS http://localhost:15000/config_dump?include_eds"),
            }],
            control_plane: Some(ControlPlaneAccess {
                kubeconfig: "/run/meshmeter/labs/k3x7ab/kubeconfig".into(),
                api: "https://127.0.0.1:40123".to_owned(),
                discovery: "127.0.0.1:40124".to_owned(),
                namespace: "mesh-1".to_owned(),
                proxy_status: in_pod("control-plane -- curl -sS http://localhost:15014/debug/syncz"),
                enter: Vec::new(),
            }),
        };
        let mut text = String::new();
        super::access(&mut text, &access);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for line in [
            "traffic, from the client's pod to http://server.mesh-1.svc.cluster.local:8080/",
            "meshmeter lab exec --lab k3x7ab client -- meshmeter load --rate 100 http://server:8080/",
            "export KUBECONFIG=/run/meshmeter/labs/k3x7ab/kubeconfig",
            "meshmeter lab exec --lab k3x7ab control-plane -- curl -sS http://localhost:15014/debug/syncz",
            "istioctl proxy-status --xds-address 127.0.0.1:40124",
            "meshmeter lab exec --lab k3x7ab client -- curl -sS 'http://localhost:15000/config_dump?include_eds'",
            "logs      /run/meshmeter/labs/k3x7ab/logs",
            "versions  envoy 1.40.0",
        ] {
            assert!(lines.contains(&line), "{line} is not in {text}");
        }
    }
}
