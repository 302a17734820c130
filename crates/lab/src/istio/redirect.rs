//! Redirect rules in a pod's own network namespace: to its proxy, or from a Service's address to pods.
//!
//! With a sidecar, Istio itself installs the rules: `pilot-agent istio-iptables` runs in the pod as an
//! injected init container would, with the same arguments. In ambient mode they are Istio's too:
//! `components/istio/ambient-iptables` runs the code with which Istio's CNI agent installs them. Without a
//! proxy, each Service's address leads to the Service's pods, as kube-proxy's rules on a node would do. Here
//! the rules are in the pod, since a lab's bridge is not a router.

use super::programs::{AmbientPrograms, IstioPrograms};
use crate::Result;
use crate::container::{Confined, ContainerSpec, ContainerUser};
use crate::pod::Pod;
use crate::redirect::{self, INBOUND_PORT, OUTBOUND_PORT, PROXY_USER};
use crate::wait::wait_for;
use components::Installed;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

/// Ports of the proxy's own pod that are never redirected: Envoy's statistics, readiness, and the agent's
/// port.
const EXCLUDED_INBOUND: &str = "15090,15021,15020";

/// Installing the rules takes some 100 ms.
const REDIRECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two checks whether the run was stopped.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Installs Istio's rules as its init container does. Excluded addresses have the meaning of
/// `excludeOutboundIPRanges`.
pub fn redirect_through_sidecar(
    pod: &mut Pod,
    programs: &IstioPrograms,
    log_dir: &Path,
    excluded: &[Ipv4Addr],
) -> Result<()> {
    let excluded: Vec<String> = excluded.iter().map(|address| format!("{address}/32")).collect();
    let excluded = excluded.join(",");
    let [outbound, inbound] = [OUTBOUND_PORT, INBOUND_PORT].map(|port| port.to_string());
    let user = PROXY_USER.to_string();
    let options = [
        ("-p", outbound.as_str()),
        ("-z", &inbound),
        ("-u", &user),
        ("-m", "REDIRECT"),
        ("-i", "*"),
        ("-x", &excluded),
        ("-b", "*"),
        ("-d", EXCLUDED_INBOUND),
    ];
    let options = options.iter().flat_map(|(option, value)| [*option, value]);
    let log_level = "--log_output_level=default:info";
    let arguments: Vec<&str> = std::iter::once("istio-iptables").chain(options).chain([log_level]).collect();
    set_up(pod, "istio-init", &programs.pilot_agent, &arguments, log_dir)
}

/// Installs Istio's ambient rules in a pod, as its CNI agent does. A ztunnel in the pod does not mark its own
/// connections to the control plane, so the rules exclude `control_plane`.
pub fn redirect_into_ambient(
    pod: &mut Pod,
    programs: &AmbientPrograms,
    control_plane: Option<SocketAddrV4>,
    log_dir: &Path,
) -> Result<()> {
    if let Some(address) = control_plane {
        // Must come first, since Istio's rules are appended.
        let (ip, port) = (address.ip(), address.port());
        pod.load_rules(format!("*nat\n-A OUTPUT -d {ip}/32 -p tcp --dport {port} -j ACCEPT\nCOMMIT\n"))?;
    }
    set_up(pod, "istio-cni", &programs.ambient_iptables, &[], log_dir)
}

fn set_up(pod: &mut Pod, name: &str, program: &Installed, arguments: &[&str], log_dir: &Path) -> Result<()> {
    let operation = format!("redirect the traffic of pod {}", pod.name());
    let lock_file = pod.iptables_lock()?;
    let confined = Confined::for_programs(&[program]);
    let setup = pod.start(&ContainerSpec {
        confined: confined.map(|confined| confined.writing(&lock_file)),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: redirect::environment(&lock_file),
        user: ContainerUser::NetworkSetup,
        ..ContainerSpec::new(name, &program.path, log_dir.join(format!("{}-init.log", pod.name())))
    })?;
    let ended = wait_for(&format!("{name} has ended"), REDIRECT_TIMEOUT, || {
        pod.lab().check_not_stopped()?;
        // Waits in the kernel: hundreds of pods are set up in parallel.
        Ok(setup.wait(CHECK_INTERVAL))
    });
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(setup.ended_early(operation, status)),
        Err(error) => {
            setup.stop(Duration::ZERO)?;
            Err(error)
        }
    }
}

/// Rules that lead connections to each Service's address to one of its endpoints, all with the same
/// probability, in the format of `iptables-restore`.
pub fn service_rules(services: &[(SocketAddrV4, Vec<SocketAddrV4>)]) -> String {
    let mut rules =
        String::from("*nat\n:MESHMETER_SERVICES - [0:0]\n-A OUTPUT -p tcp -j MESHMETER_SERVICES\n");
    for (service, endpoints) in services {
        let (ip, port) = (service.ip(), service.port());
        for (index, endpoint) in endpoints.iter().enumerate() {
            // As kube-proxy does it: each rule takes its share of what the rules before it left.
            let chosen = match endpoints.len() - index {
                1 => String::new(),
                left => format!(" -m statistic --mode random --probability {:.10}", 1.0 / left as f64),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                rules,
                "-A MESHMETER_SERVICES -d {ip}/32 -p tcp --dport {port}{chosen} -j DNAT --to-destination {endpoint}"
            );
        }
    }
    rules.push_str("COMMIT\n");
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_address_leads_to_its_pod() {
        let service = SocketAddrV4::new(Ipv4Addr::new(10, 78, 1, 2), 8080);
        let endpoint = |host| SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, host), 8080);
        insta::assert_snapshot!(service_rules(&[(service, vec![endpoint(4)])]), @r"
        *nat
        :MESHMETER_SERVICES - [0:0]
        -A OUTPUT -p tcp -j MESHMETER_SERVICES
        -A MESHMETER_SERVICES -d 10.78.1.2/32 -p tcp --dport 8080 -j DNAT --to-destination 10.77.0.4:8080
        COMMIT
        ");
        let replicated = service_rules(&[(service, [4, 5, 6].map(endpoint).to_vec())]);
        let shares: Vec<&str> =
            replicated.lines().filter_map(|line| line.split("probability ").nth(1)).collect();
        assert_eq!(
            shares,
            [
                "0.3333333333 -j DNAT --to-destination 10.77.0.4:8080",
                "0.5000000000 -j DNAT --to-destination 10.77.0.5:8080"
            ]
        );
    }
}
