//! Settings of a fleet from the command line, and contradictions between options.

use crate::cli::FleetArgs;
use crate::commands::topology;
use crate::failure::Failure;
use experiment::settings::fleet::{
    ChangeKind, FleetContradiction, FleetSettings, HeldTopology, ProxyKind, RepeatedChange, SettingNames,
};
use results::units::Churn;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PODS_PER_SERVICE: usize = 2;
const DEFAULT_NAMESPACES: usize = 10;
const DEFAULT_CHURN_DURATION: Duration = Duration::from_secs(60);

/// Where the control plane runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ControlPlane {
    /// In a lab that is created for the run; with these istiods, or the installed one if empty.
    Lab(Vec<PathBuf>),
    /// At these addresses, `host:port`.
    Elsewhere(Vec<String>),
}

/// Settings from a file, or from the other options.
pub fn settings(args: &FleetArgs) -> Result<FleetSettings, Failure> {
    let settings = args.spec.as_deref().map_or_else(|| from_options(args), from_file)?;
    check(&settings, args)?;
    Ok(settings)
}

fn from_file(path: &Path) -> Result<FleetSettings, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::from_usage(&error).about(&format!("read {name}")))?;
    let settings = FleetSettings::from_yaml(&text, &name).map_err(|error| Failure::from_usage(&error))?;
    // If nothing but the changes is observed, they take as long as they take.
    let is_observed = settings.churn != Churn::None || !settings.duration.is_zero();
    let duration = if is_observed { settings.window() } else { Duration::ZERO };
    Ok(FleetSettings { duration, ..settings })
}

fn from_options(args: &FleetArgs) -> Result<FleetSettings, Failure> {
    let (mesh, changes) = (&args.mesh, &args.changes);
    let (services, proxies) = (mesh.services as usize, args.proxies.proxies as usize);
    let topology = mesh.topology.as_deref().map(held_topology).transpose()?;
    // `check` says what is wrong with them.
    let kinds = args.proxies.kind.of(proxies).unwrap_or_default();
    let sidecars = kinds.iter().find_map(|(kind, count)| (*kind == ProxyKind::Sidecar).then_some(*count));
    let sidecars = sidecars.unwrap_or(0);
    let churn = changes.churn != Churn::None;
    let settings = FleetSettings {
        proxies,
        kinds: args.proxies.kind.clone(),
        xds: args.proxies.xds,
        security: args.proxies.security,
        topology: None,
        services,
        pods: mesh.pods.map_or((PODS_PER_SERVICE * services).max(sidecars), |pods| pods as usize),
        namespaces: mesh
            .namespaces
            .map_or(DEFAULT_NAMESPACES.min(services), |namespaces| namespaces as usize),
        virtual_services: mesh.virtual_services as usize,
        destination_rules: mesh.destination_rules as usize,
        gateways: mesh.gateways as usize,
        policies: mesh.policies as usize,
        scope: mesh.scope,
        on_demand: args.proxies.on_demand,
        witnesses: args.proxies.witnesses as usize,
        churn: changes.churn,
        changes: match (changes.change.as_slice(), changes.no_change || churn) {
            ([], true) => Vec::new(),
            // On-demand ztunnels are only sent policies.
            ([], false)
                if args.proxies.on_demand && kinds.iter().all(|(kind, _)| *kind == ProxyKind::Ztunnel) =>
            {
                vec![RepeatedChange { kind: ChangeKind::RootPolicy, count: 3 }]
            }
            ([], false) => FleetSettings::default().changes,
            (given, _) => given.to_vec(),
        },
        between: changes.between,
        duration: match changes.duration {
            Some(duration) => duration,
            None if churn => DEFAULT_CHURN_DURATION,
            None => Duration::ZERO,
        },
        settle: changes.settle,
        connect_rate: args.proxies.connect_rate,
        threads: args.proxies.threads.map(|threads| threads as usize),
    };
    Ok(match topology {
        Some(topology) => settings.with_topology(topology),
        None => settings,
    })
}

fn held_topology(source: &str) -> Result<HeldTopology, Failure> {
    let topology = topology::named("--topology", source)?;
    HeldTopology::new(&topology).map_err(|reason| Failure::usage(format!("--topology: {reason}")))
}

/// Checks the options as an experiment checks its section `fleet`, and against the place of the control plane.
fn check(settings: &FleetSettings, args: &FleetArgs) -> Result<(), Failure> {
    let istiods = args.control_plane.istiod.len().max(1);
    settings.check(istiods, SettingNames::Options).map_err(refused)?;
    let is_elsewhere = matches!(control_plane(args)?, ControlPlane::Elsewhere(_));
    let made_in_lab =
        |change: &&RepeatedChange| change.kind.is_of_environment() && change.kind != ChangeKind::LinkDown;
    let change = settings.changes.iter().find(made_in_lab);
    match change.filter(|_| is_elsewhere && !args.environment_answers) {
        Some(change) => {
            let kind = change.kind.name();
            let message = format!("--change {kind} is made in a lab, and --istiod names an istiod elsewhere");
            Err(Failure::usage(message).with_hint("leave --istiod out, or leave the change out"))
        }
        None => Ok(()),
    }
}

fn refused(contradiction: FleetContradiction) -> Failure {
    let FleetContradiction { key, message, expected, hint, .. } = contradiction;
    let hint = hint.map_or_else(|| expected.clone(), |hint| format!("{expected}: {hint}"));
    Failure::usage(format!("{}: {message}", SettingNames::Options.name(key))).with_hint(hint)
}

/// The istiods named on the command line, checked without connecting to them.
pub fn control_plane(args: &FleetArgs) -> Result<ControlPlane, Failure> {
    let given = &args.control_plane;
    let (paths, addresses): (Vec<&String>, Vec<&String>) =
        given.istiod.iter().partition(|istiod| is_path(istiod));
    if addresses.is_empty() {
        let lab_has_its_own = [
            ("--kubeconfig", given.kubeconfig.is_some()),
            ("--istiod-metrics", !given.istiod_metrics.is_empty()),
            ("--etcd-metrics", given.etcd_metrics.is_some()),
            ("--istiod-ca", given.istiod_ca.is_some()),
            ("--istiod-name", given.istiod_name.is_some()),
            ("--keep-mesh", args.mesh.keep_mesh),
            ("--simulate-pods", args.mesh.simulate_pods),
            ("--witness", !args.proxies.witness.is_empty()),
            ("--spread shared", given.spread == fleet::Spread::Shared),
        ];
        if let Some((option, _)) = lab_has_its_own.into_iter().find(|(_, given)| *given) {
            let message =
                format!("{option} is for an istiod elsewhere, and without its address there is a lab");
            return Err(Failure::usage(message).with_hint("add --istiod HOST:PORT"));
        }
        let program = |path: &&String| {
            let path = PathBuf::from(path);
            if path.is_file() { Ok(path) } else { Err(no_program(&path)) }
        };
        return Ok(ControlPlane::Lab(paths.iter().map(program).collect::<Result<_, _>>()?));
    }
    if args.proxies.witnesses > 0 {
        let message = "--witnesses is for a lab, and --istiod names an istiod elsewhere".to_owned();
        return Err(Failure::usage(message).with_hint("--witness HOST:15090 names a real sidecar there"));
    }
    if let Some(path) = paths.first() {
        let message = format!("--istiod names a program, {path}, and an address, {}", addresses[0]);
        return Err(Failure::usage(message).with_hint("compare programs in a lab, or istiods elsewhere"));
    }
    for address in &addresses {
        check_address(address)?;
    }
    let hosts: BTreeSet<&str> = addresses.iter().map(|address| host(address)).collect();
    if given.istiod_metrics.is_empty() && hosts.len() < addresses.len() {
        let message =
            "two --istiod have one host, and their figures would be read from one page of metrics".to_owned();
        return Err(
            Failure::usage(message).with_hint("name the page of each with --istiod-metrics, in their order")
        );
    }
    let pages = given.istiod_metrics.len();
    if pages > 0 && pages != addresses.len() {
        let message = format!("{pages} --istiod-metrics for {} --istiod", addresses.len());
        return Err(Failure::usage(message).with_hint("give one per istiod, in their order"));
    }
    Ok(ControlPlane::Elsewhere(addresses.into_iter().cloned().collect()))
}

fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

fn is_path(istiod: &str) -> bool {
    istiod.contains('/') || Path::new(istiod).is_file()
}

fn no_program(path: &Path) -> Failure {
    Failure::usage(format!("--istiod: there is no program {}", path.display()))
        .with_hint("an istiod elsewhere is HOST:PORT, without http://")
}

fn check_address(address: &str) -> Result<(), Failure> {
    match address.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(()),
        _ => Err(Failure::usage(format!("--istiod: `{address}` has no port"))
            .with_hint("expected HOST:PORT, such as istiod.example:15012, or the path of a program")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn args(options: &[&str]) -> FleetArgs {
        match Cli::try_parse_from(["meshmeter", "fleet"].iter().chain(options)).unwrap().command {
            Command::Fleet(args) => *args,
            _ => unreachable!("it is this command"),
        }
    }

    #[test]
    fn pods_default_to_two_per_service_and_one_per_sidecar() {
        let pods = |options: &[&str]| settings(&args(options)).unwrap().pods;
        assert_eq!(pods(&[]), 200);
        assert_eq!(pods(&["--proxies", "500"]), 500);
        assert_eq!(pods(&["--proxies", "500", "--kind", "ztunnel"]), 200);
        assert_eq!(pods(&["--pods", "120"]), 120);
    }

    #[test]
    fn topology_sets_services_pods_and_namespaces() {
        let of = settings(&args(&["--topology", "tiered", "--proxies", "2"])).unwrap();
        let topology = of.topology.as_deref().expect("it was named");
        assert_eq!((of.services, of.pods, of.namespaces), (topology.workloads.len(), topology.pods(), 1));
        for refused in [["--topology", "-"], ["--topology", "/no/such.yaml"], ["--topology", "pair"]] {
            assert!(settings(&args(&refused)).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn churn_has_no_other_changes_by_default() {
        let changes = |options: &[&str]| {
            let settings = settings(&args(options)).unwrap();
            (settings.changes.len(), settings.duration.as_secs())
        };
        assert_eq!(changes(&[]), (3, 0));
        assert_eq!(changes(&["--no-change"]), (0, 0));
        assert_eq!(changes(&["--kind", "ztunnel", "--on-demand"]), (1, 0));
        assert_eq!(changes(&["--churn", "25%/m"]), (0, 60));
        assert_eq!(changes(&["--no-change", "--duration", "5s"]), (0, 5));
        assert_eq!(changes(&["--churn", "2/s", "--duration", "5s", "--change", "service-entry"]), (1, 5));
    }

    #[test]
    fn fleet_of_a_run_is_observed_for_its_window() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.yaml");
        let observed = |section: &str| {
            fs::write(&path, format!("fleet: {section}")).unwrap();
            settings(&args(&["--spec", path.to_str().unwrap()])).unwrap().duration.as_secs()
        };
        assert_eq!(observed("{changes: [endpoint-added=9]}"), 0, "the changes take as long as they take");
        assert_eq!(observed("{changes: [endpoint-added=9], duration: 5s}"), 9);
        assert_eq!(observed("{changes: [endpoint-added=9], churn: 25%/m}"), 9);
    }

    #[test]
    fn changes_not_sent_to_on_demand_ztunnels_are_usage_errors() {
        let refused = |options: &[&str]| settings(&args(options)).err().map(|failure| format!("{failure:?}"));
        let on_demand = ["--kind", "ztunnel", "--on-demand", "--change"];
        let failure = refused(&[&on_demand[..], &["endpoint-added"]].concat()).expect("it reaches nobody");
        assert!(failure.contains("reaches no proxy of `--kind ztunnel` on demand"), "{failure}");
        assert_eq!(refused(&[&on_demand[..], &["root-policy"]].concat()), None);
        assert_eq!(
            refused(&["--kind", "ztunnel=2,sidecar", "--on-demand", "--change", "endpoint-added"]),
            None
        );
    }

    #[test]
    fn options_and_section_have_the_same_rules() {
        let cases: &[(&[&str], &str)] = &[
            (&["--kind", "ztunnel", "--xds", "state-of-the-world"], "kind: ztunnel, xds: state-of-the-world"),
            (
                &["--security", "token", "--change", "certificate-rotation"],
                "security: token, changes: [certificate-rotation]",
            ),
            (
                &[
                    "--security",
                    "plaintext",
                    "--change",
                    "endpoint-added",
                    "--change",
                    "certificate-rotation",
                ],
                "security: plaintext, changes: [endpoint-added, certificate-rotation]",
            ),
            (&["--kind", "gateway=7"], "kind: 'gateway=7'"),
            (&["--pods", "50"], "pods: 50"),
            (&["--services", "5", "--namespaces", "6"], "services: 5, namespaces: 6"),
            (&["--virtual-services", "101"], "virtual-services: 101"),
            (&["--destination-rules", "101"], "destination-rules: 101"),
            (&["--on-demand"], "on-demand: on"),
            (&["--kind", "gateway", "--scope"], "kind: gateway, scope: on"),
            (
                &["--kind", "ztunnel", "--change", "virtual-service"],
                "kind: ztunnel, changes: [virtual-service]",
            ),
            (
                &["--kind", "ztunnel", "--on-demand", "--change", "endpoint-added"],
                "kind: ztunnel, on-demand: on, changes: [endpoint-added]",
            ),
            (&["--change", "istiod-removed"], "changes: [istiod-removed]"),
            (
                &["--change", "endpoint-added=900", "--change", "service-added=900"],
                "changes: [endpoint-added=900, service-added=900]",
            ),
            (&["--churn", "9000/s", "--duration", "9s"], "churn: 9000/s, duration: 9s"),
            (&["--churn", "1/s", "--duration", "500ms"], "churn: 1/s, duration: 500ms, changes: []"),
        ];
        // As options and keys are named: `--kind ztunnel`, `fleet.kind: ztunnel`.
        let plain = |text: &str| {
            text.replace("--change", "changes").replace("--", "").replace("fleet.", "").replace(": ", " ")
        };
        for (options, section) in cases {
            let failure = format!("{:?}", settings(&args(options)).expect_err(section));
            let text = format!("{{name: f, mesh: istio, modes: [control-plane], fleet: {{{section}}}}}");
            let error = experiment::Experiment::parse(&text, "f.yaml").expect_err(section);
            assert!(plain(&failure).contains(&plain(&error.message)), "{failure}: {}", error.message);
        }
    }

    #[test]
    fn istiods_are_addresses_or_programs() {
        let which = |options: &[&str]| control_plane(&args(options)).unwrap();
        assert_eq!(which(&[]), ControlPlane::Lab(Vec::new()));
        let both = ["--istiod", "a:15012", "--istiod", "[::1]:15012"];
        assert_eq!(
            which(&both),
            ControlPlane::Elsewhere(vec!["a:15012".to_owned(), "[::1]:15012".to_owned()])
        );
        assert_eq!(which(&["--istiod", "/bin/sh"]), ControlPlane::Lab(vec!["/bin/sh".into()]));
    }
}
