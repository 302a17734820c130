//! Options of `meshmeter fleet`.

use super::load::{parse_positive_rate, parse_run_duration, parse_run_duration_or_zero};
use super::words::{one_of, word};
use super::{ExportArgs, ProgressStyle, ReleaseArgs};
use clap::builder::TypedValueParser;
use clap::{Args, ValueHint};
use components::IstioVersion;
use experiment::settings::fleet::{
    FleetSecurity, MAX_NAMESPACES, MAX_OBJECTS, MAX_PROXIES, MAX_THREADS, MAX_WITNESSES, ProxyKinds,
    RepeatedChange, XdsVariant,
};
use fleet::Spread;
use results::units::Churn;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum length of a run's name, which is the value of a label.
const MAX_RUN_ID_CHARACTERS: usize = 40;

/// Connect simulated proxies to an istiod and time the arrival of every change at each of them
///
/// Writes a mesh through the Kubernetes API, connects N simulated proxies, which subscribe as real ones do,
/// waits until each has its whole configuration, and makes changes one after the other. The convergence time
/// of a change runs from the API's acknowledgement of its write until its content has arrived at a proxy;
/// every proxy is timed. The result includes istiod's own figures: CPU, memory, and its histograms from
/// debounce to push.
///
/// Without --istiod the control plane runs in a lab on this machine, created for the run. With it the fleet
/// connects to an istiod elsewhere: --kubeconfig names the API that this istiod watches. Everything that is
/// written has the label meshmeter.io/fleet=RUN-ID and is removed at the end; other objects are never
/// changed. Ctrl-C keeps the results so far and removes what was written; a second Ctrl-C exits immediately.
///
/// Exit status: 0 every proxy got its configuration and every change, 1 some did not, 2 usage error, 3 the
/// API or istiod failed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter fleet --proxies 200
  meshmeter fleet --proxies 2000 --services 1000 --pods 2000 --change endpoint-added=20 --change service-entry=5
  meshmeter fleet --proxies 500 --churn 25%/m --duration 5m --json churn.json
  meshmeter fleet --kind ztunnel --proxies 1000 --change connect-storm
  meshmeter fleet --topology shop.yaml --proxies 60 --virtual-services 10
  meshmeter fleet --istiod istiod.example:15012 --kubeconfig ~/.kube/config --proxies 100
  meshmeter fleet --istio 1.30.4 --proxies 500
  meshmeter fleet --istiod ~/istiod-1.30 --istiod ~/istiod-1.31 --proxies 500
  meshmeter fleet --remove 3f9k2a --kubeconfig ~/.kube/config")]
pub struct FleetArgs {
    #[command(flatten)]
    pub control_plane: ControlPlaneArgs,

    #[command(flatten)]
    pub proxies: ProxyArgs,

    #[command(flatten)]
    pub mesh: MeshArgs,

    #[command(flatten)]
    pub changes: ChangeArgs,

    /// Write the result as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub json: Option<PathBuf>,

    /// How to show progress on standard error
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub progress: ProgressStyle,

    #[command(flatten)]
    pub export: ExportArgs,

    #[command(flatten)]
    pub releases: ReleaseArgs,

    /// Read the settings of the fleet from FILE, sections of an experiment file, instead of from options (used
    /// by `meshmeter run`)
    #[arg(long, hide = true, value_name = "FILE")]
    pub spec: Option<PathBuf>,

    /// Request actions of the environment on standard error (as --progress json does), and read its responses
    /// from standard input (used by `meshmeter run`)
    #[arg(long, hide = true, requires = "progress")]
    pub environment_answers: bool,
}

/// Location of the control plane.
#[derive(Debug, Args)]
#[command(next_help_heading = "Control plane")]
pub struct ControlPlaneArgs {
    /// istiod's port for proxies, such as istiod.example:15012, or an istiod program to run in a lab. If
    /// given twice, each gets the whole fleet, and both are compared [default: the installed istiod, in a
    /// lab]
    #[arg(long, value_name = "HOST:PORT|PATH", value_hint = ValueHint::AnyPath)]
    pub istiod: Vec<String>,

    /// Run istiod of this Istio release in the lab, or the one built from source with `pinned`. A release
    /// that is not installed is fetched first
    #[arg(long, value_name = "VERSION", conflicts_with = "istiod")]
    pub istio: Option<IstioVersion>,

    /// Kubeconfig of the API that istiod watches [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,

    /// With several istiods: `each` has the whole fleet, `shared` are replicas of one control plane
    #[arg(long, default_value = "each", value_parser = spread_parser())]
    pub spread: Spread,

    /// istiod's own metrics, once per --istiod [default: http://HOST:15014/metrics]
    #[arg(long, value_name = "URL", value_parser = parse_metrics_url)]
    pub istiod_metrics: Vec<MetricsUrl>,

    /// etcd's metrics, such as http://127.0.0.1:2381/metrics
    #[arg(long, value_name = "URL", value_parser = parse_metrics_url)]
    pub etcd_metrics: Option<MetricsUrl>,

    /// Trust the CAs in FILE (PEM) [default: ConfigMap istio-ca-root-cert of the system namespace]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub istiod_ca: Option<PathBuf>,

    /// Name expected in istiod's certificate [default: istiod.<system namespace>.svc]
    #[arg(long, value_name = "NAME")]
    pub istiod_name: Option<String>,

    /// Istio's system namespace, which is its root namespace too
    #[arg(long, value_name = "NAMESPACE", default_value = mesh::names::SYSTEM_NAMESPACE)]
    pub istio_namespace: String,

    /// Name of the cluster in Istio, its CLUSTER_ID
    #[arg(long, value_name = "ID", default_value = "Kubernetes")]
    pub cluster_id: String,
}

/// Options of the proxies.
#[derive(Debug, Args)]
#[command(next_help_heading = "Proxies")]
pub struct ProxyArgs {
    /// Number of simulated proxies; with several istiods that are compared, per istiod
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=MAX_PROXIES as u64))]
    pub proxies: u64,

    /// Kinds of proxies: sidecar, gateway, waypoint, ztunnel; several with numbers, such as gateway=2,sidecar
    #[arg(long, value_name = "KIND[=N],…", default_value = "sidecar", value_parser = str::parse::<ProxyKinds>)]
    pub kind: ProxyKinds,

    /// Protocol variant: only what changed (delta), or all resources of a type at once (state of the world)
    #[arg(long, value_name = "VARIANT", default_value = "delta", value_parser = one_of(XdsVariant::ALL.map(|xds| (xds.name().into(), xds))))]
    pub xds: XdsVariant,

    /// How proxies authenticate: with certificates from istiod's CA, with their tokens alone, or not at all
    /// on istiod's plaintext port
    #[arg(long, value_name = "HOW", default_value = "mutual-tls", value_parser = one_of(FleetSecurity::ALL.map(|how| (how.name().into(), how))))]
    pub security: FleetSecurity,

    /// Ztunnels request addresses only when they need them
    #[arg(long)]
    pub on_demand: bool,

    /// Connections opened per second at the start [default: as fast as istiod accepts them]
    #[arg(long, value_name = "R", value_parser = parse_positive_rate)]
    pub connect_rate: Option<f64>,

    /// Real sidecars that a lab adds, whose own update times are compared with the fleet's
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=MAX_WITNESSES))]
    pub witnesses: u64,

    /// Statistics port of a real sidecar (15090) or ztunnel (15020) of the mesh whose own update times are
    /// compared with the fleet's; a sidecar's proxyStatsMatcher must include the suffix update_time
    #[arg(long, value_name = "HOST:PORT")]
    pub witness: Vec<String>,

    /// Source addresses of some proxies, so that their links can be cut (set by labs)
    #[arg(long, hide = true, value_name = "ADDRESS")]
    pub source_address: Vec<Ipv4Addr>,

    /// Threads of the fleet [default: half of the CPUs]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..=MAX_THREADS))]
    pub threads: Option<u64>,
}

/// The mesh that proxies are configured with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Mesh")]
pub struct MeshArgs {
    /// Take services, namespaces and pods from a topology: a file, or a built-in shape by name. Its
    /// namespaces get the prefix fleet-; everything else follows the other options
    #[arg(long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, conflicts_with_all = ["services", "pods", "namespaces"])]
    pub topology: Option<String>,

    /// Number of services
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count_parser(1))]
    pub services: u64,

    /// Number of pods, spread over the services; sidecars belong to these pods [default: two per service, and
    /// at least one per proxy]
    #[arg(long, value_name = "N", value_parser = count_parser(1))]
    pub pods: Option<u64>,

    /// Number of namespaces, which share services and pods evenly [default: 10, at most one per service]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_NAMESPACES as u64))]
    pub namespaces: Option<u64>,

    /// Number of VirtualServices, each for a different service. Gateways have as many of their own, each with a
    /// name in one of their domains
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_parser(0))]
    pub virtual_services: u64,

    /// Number of DestinationRules, each for a different service
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_parser(0))]
    pub destination_rules: u64,

    /// Number of Gateways
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_parser(0))]
    pub gateways: u64,

    /// Number of AuthorizationPolicies
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count_parser(0))]
    pub policies: u64,

    /// Limit sidecars to their own namespace (one Sidecar object per namespace)
    #[arg(long)]
    pub scope: bool,

    /// Write pods and EndpointSlices that nothing runs, even if the cluster has kubelets and controllers
    #[arg(long)]
    pub simulate_pods: bool,

    /// Name of the run, the value of the label on everything that is written [default: random]. An
    /// interrupted run of the same name is taken over
    #[arg(long, value_name = "ID", value_parser = parse_run_id)]
    pub run_id: Option<String>,

    /// Leave the mesh in place at the end
    #[arg(long)]
    pub keep_mesh: bool,

    /// Remove what the run of this name has left behind, and do nothing else
    #[arg(long, value_name = "RUN-ID", value_parser = parse_run_id, conflicts_with_all = ["istiod", "json", "keep_mesh", "run_id"])]
    pub remove: Option<String>,
}

/// Changes of the mesh.
#[derive(Debug, Args)]
#[command(next_help_heading = "Changes")]
pub struct ChangeArgs {
    /// Make a change, N times; may be given several times, in order. endpoint-added, endpoint-removed,
    /// pod-restarted, service-added, virtual-service, destination-rule, rolling-restart; full pushes:
    /// service-entry, root-policy; by the proxies: certificate-rotation, connect-storm; in a lab:
    /// istiod-restart, istiod-added, istiod-removed, link-down [default: endpoint-added=5, service-added=2
    /// and service-entry=2; under --churn none]
    #[arg(long, value_name = "KIND[=N]", value_parser = str::parse::<RepeatedChange>)]
    pub change: Vec<RepeatedChange>,

    /// Make no changes except churn: connect, and end when all proxies have their configuration
    #[arg(long, conflicts_with = "change")]
    pub no_change: bool,

    /// Minimum time between changes
    #[arg(long, value_name = "D", default_value = "1s", value_parser = parse_run_duration_or_zero)]
    pub between: Duration,

    /// Replace pods continuously: a share of them per minute, or pods per second, such as 25%/m or 2/s
    #[arg(long, value_name = "CHURN", default_value = "0", value_parser = str::parse::<Churn>)]
    pub churn: Churn,

    /// Time for which the fleet is observed, including churn and changes [default: 1m with --churn]
    #[arg(long, value_name = "D", value_parser = parse_run_duration)]
    pub duration: Option<Duration>,

    /// Timeout for the first configurations, and then for each change, to reach the last proxy
    #[arg(long, value_name = "D", default_value = "1m", value_parser = parse_run_duration)]
    pub settle: Duration,
}

/// A Prometheus page over plain HTTP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MetricsUrl {
    /// `host:port`.
    pub authority: String,
    /// For example `/metrics`.
    pub path: String,
}

fn spread_parser() -> impl TypedValueParser<Value = Spread> {
    one_of([
        (word("each", "Each has the whole fleet"), Spread::Each),
        (word("shared", "Replicas that share the fleet"), Spread::Shared),
    ])
}

fn count_parser(least: u64) -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(least..=MAX_OBJECTS)
}

fn parse_metrics_url(text: &str) -> Result<MetricsUrl, String> {
    let expected = || "expected http://HOST:PORT/metrics".to_owned();
    let rest = text.strip_prefix("http://").ok_or_else(expected)?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, "metrics"));
    if authority.contains('@') {
        return Err("credentials in a URL are not sent".to_owned());
    }
    let port =
        authority.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(1..)) => Ok(MetricsUrl { authority: authority.to_owned(), path: format!("/{path}") }),
        _ => Err(expected()),
    }
}

fn parse_run_id(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let bytes = text.as_bytes();
    let is_id = bytes.len() <= MAX_RUN_ID_CHARACTERS && bytes.iter().all(|byte| is_part(*byte));
    if is_id && is_end(bytes.first()) && is_end(bytes.last()) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected at most {MAX_RUN_ID_CHARACTERS} lower-case letters, digits and dashes, such as nightly-7"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_url_is_plain_http_with_a_port() {
        let page = |authority: &str, path: &str| MetricsUrl {
            authority: authority.to_owned(),
            path: path.to_owned(),
        };
        assert_eq!(
            parse_metrics_url("http://10.0.0.1:15014/metrics"),
            Ok(page("10.0.0.1:15014", "/metrics"))
        );
        assert_eq!(parse_metrics_url("http://istiod:15014"), Ok(page("istiod:15014", "/metrics")));
        for text in [
            "https://istiod:15014/metrics",
            "istiod:15014",
            "http://istiod/metrics",
            "http://:1/",
            "http://a:0/",
            "http://tom:secret@a:1/",
        ] {
            assert!(parse_metrics_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn run_id_is_the_value_of_a_label() {
        for text in ["a", "nightly-7", "3f9k2a"] {
            assert_eq!(parse_run_id(text).as_deref(), Ok(text));
        }
        for text in ["", "-a", "a-", "A", "a_b", "a b", &"a".repeat(41)] {
            assert!(parse_run_id(text).is_err(), "{text}");
        }
    }
}
