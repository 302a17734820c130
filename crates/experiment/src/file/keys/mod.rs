//! Keys of an experiment file, section by section.

pub(super) mod fleet;
pub(super) mod istio;
pub(super) mod load;
pub(super) mod published;

use crate::keys::{Key, Kind, names};
use crate::mesh_kind::MeshKind;
use crate::settings::ingress::Scenario;
use crate::topology::shapes::{ParameterKind, SHAPES};
use results::Mode;

/// Maximum number of copies of a topology.
pub(super) const MAX_NAMESPACES: usize = 1000;
pub(super) const MAX_REPLICAS: usize = 1000;
pub(super) const MAX_DOMAINS: usize = 10_000;
pub(super) const MAX_PATHS: usize = 1_000;
pub(super) const MAX_WORKERS: usize = 128;

/// Keys of a built-in topology in addition to its parameters.
pub(crate) const SHAPE_KEYS: [&str; SHAPE.len()] = names(&SHAPE);

/// Keys of a section.
pub(crate) struct SectionKeys {
    /// Dotted key of the section; empty for the top level.
    pub(crate) path: &'static str,
    pub(crate) keys: &'static [Key],
    pub(crate) names: &'static [&'static str],
    /// True if the section may be empty (`proxy:`), as if it was left out.
    pub(crate) may_be_empty: bool,
}

/// Section with a table of keys.
macro_rules! section {
    ($path:literal, $keys:expr) => {
        SectionKeys { path: $path, keys: &$keys, names: const { &names(&$keys) }, may_be_empty: true }
    };
    ($path:literal, $keys:expr, required) => {
        SectionKeys { may_be_empty: false, ..section!($path, $keys) }
    };
}

/// Every section except `topology`, whose keys depend on its kind ([`super::section`]).
pub(crate) static SECTION_KEYS: [SectionKeys; 18] = [
    section!("", ROOT, required),
    section!("load", load::LOAD, required),
    section!("fleet", fleet::FLEET, required),
    section!("objective", load::OBJECTIVE),
    section!("resolve", load::RESOLVE),
    section!("proxy", PROXY),
    section!("components", istio::COMPONENTS),
    section!("istio", istio::ISTIO),
    section!("istio.authorization", istio::AUTHORIZATION),
    section!("istio.surroundings", istio::SURROUNDINGS),
    section!("istio.ingress", istio::INGRESS),
    section!("istio.istiod", istio::ISTIOD),
    section!("ingress", INGRESS),
    section!("gateway", GATEWAY),
    section!("server", SERVER),
    section!("client", CLIENT),
    section!("published", published::SOURCE, required),
    section!("published.figures", published::FIGURE, required),
];

/// Names of all modes.
pub(super) fn modes() -> Vec<&'static str> {
    Mode::ALL.map(Mode::name).to_vec()
}

pub(super) fn shapes() -> Vec<&'static str> {
    SHAPES.map(|shape| shape.name).to_vec()
}

const fn cpu(summary: &'static str) -> Key {
    Key::new("cpu", Kind::Cores, summary)
}

const ROOT: [Key; 21] = [
    Key::new(
        "name",
        Kind::Matching(|| "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$".to_owned()),
        "names the run's directory",
    )
    .required(),
    Key::new("question", Kind::Text, "the question; heads the report"),
    Key::new("topology", Kind::Named("topology"), "which services call which").default("pair"),
    Key::new(
        "mesh",
        Kind::OneOf(|| MeshKind::ALL.map(MeshKind::name).to_vec()),
        "who configures the proxies. `envoy`: static files, no control plane; `istio`: istiod; `linkerd`, `cilium`: on clusters",
    )
    .default("envoy"),
    Key::new("modes", Kind::OneOrDistinct(&Kind::OneOf(modes)), "the modes to compare, each once").required(),
    Key::new("load", Kind::Named("load"), "requests: protocol, sizes, rates or clients, times"),
    Key::new("fleet", Kind::Named("fleet"), "simulated proxies instead of a load, with mode `control-plane`"),
    Key::new("repeats", Kind::Whole(1, 1000), "how often each mode is measured under each load").default("5"),
    Key::new("retakes", Kind::Whole(0, 10), "maximum reruns of a trial that the machine disturbed")
        .default("0"),
    Key::new("seed", Kind::Whole(0, u64::MAX), "determines the order of the trials; drawn per run if absent"),
    Key::new("objective", Kind::Named("objective"), "bounds that every cell must meet"),
    Key::new(
        "resolve",
        Kind::Named("resolve"),
        "smallest differences between modes that the run should show",
    ),
    Key::new("proxy", Kind::Named("proxy"), "settings of every proxy"),
    Key::new("components", Kind::Named("components"), "versions and programs of the mesh components"),
    Key::new("istio", Kind::Named("istio"), "settings of Istio, with `mesh: istio`"),
    Key::new(
        "ingress",
        Kind::Named("ingress"),
        "domains behind a gateway, with modes `ingress` and `gateway`",
    ),
    Key::new("gateway", Kind::Named("gateway"), "resources of the gateway of modes `ingress` and `gateway`"),
    Key::new("server", Kind::Named("server"), "settings of the synthetic service"),
    Key::new("client", Kind::Named("client"), "settings of the generator's pod"),
    Key::new(
        "fresh",
        Kind::OneOf(|| vec!["trial", "mode"]),
        "lifetime of a deployment: one trial, or all loads of a mode within a repeat; by start-up cost if absent",
    ),
    Key::new(
        "published",
        Kind::OneOrSeveral(&Kind::Named("published")),
        "published figures, shown beside this run's own",
    ),
];

const PROXY: [Key; 5] = [
    Key::new("workers", Kind::Whole(1, 128), "worker threads of each proxy").default("2"),
    Key::new(
        "mtls",
        Kind::OneOf(|| vec!["strict", "permissive", "off", "on", "true", "false"]),
        "mutual TLS between proxies: only that (`strict`), also plaintext (`permissive`), or none (`off`)",
    )
    .default("strict"),
    Key::new(
        "access-log",
        Kind::OneOf(|| vec!["off", "text", "json"]),
        "access log of a proxy per request; per connection if it does not read requests",
    )
    .default("off"),
    cpu("CPU limit of each proxy"),
    Key::new(
        "cpu-time",
        Kind::Duration,
        "additional CPU of each proxy per request, with `mesh: envoy`: a known effect to detect",
    )
    .default("0s"),
];

const INGRESS: [Key; 6] = [
    Key::new("domains", Kind::Whole(1, MAX_DOMAINS as u64), "domains, each with its own virtual host")
        .default("1"),
    Key::new(
        "paths",
        Kind::Whole(1, MAX_PATHS as u64),
        "exact paths of each domain; one route for all if absent",
    ),
    Key::new(
        "credentials",
        Kind::Whole(1, MAX_DOMAINS as u64),
        "certificates, shared evenly by the domains; 10, or the domains if fewer",
    ),
    Key::new(
        "requested-paths",
        Kind::Whole(1, MAX_PATHS as u64),
        "each request takes a random one of the first paths of its domain; 50, or all if fewer",
    ),
    Key::new(
        "requested-domains",
        Kind::Whole(1, MAX_DOMAINS as u64),
        "the first domains are requested; all if absent",
    ),
    Key::new(
        "scenario",
        Kind::OneOf(|| Scenario::ALL.map(Scenario::name).to_vec()),
        "processing of each request or connection in the gateway",
    )
    .default("no-filters"),
];

const GATEWAY: [Key; 3] = [
    cpu("CPU limit of that gateway; `proxy.cpu` if absent"),
    Key::new("memory", Kind::Size, "memory limit of that gateway, 32MiB or more"),
    Key::new(
        "workers",
        Kind::Whole(1, MAX_WORKERS as u64),
        "worker threads; `gateway.cpu` rounded up, or `proxy.workers`, if absent",
    ),
];

const SERVER: [Key; 4] = [
    Key::new("delay", Kind::Duration, "time before each response").default("0s"),
    Key::new("cpu-time", Kind::Duration, "additional CPU per response, after the delay").default("0s"),
    Key::new("error-rate", Kind::Fraction, "fraction of requests answered with status 500").default("0%"),
    cpu("CPU limit of the service"),
];

const CLIENT: [Key; 1] = [cpu("CPU limit of the generator")];

/// Keys of a built-in topology in addition to its parameters.
pub(crate) const SHAPE: [Key; 3] = [
    Key::new("shape", Kind::OneOf(shapes), "built-in topology").default("pair"),
    NAMESPACES,
    Key::new("replicas", Kind::Whole(1, MAX_REPLICAS as u64), "pods of each service").default("1"),
];

/// Keys of a topology from a file.
pub(crate) const FILE: [Key; 2] = [
    Key::new("file", Kind::Text, "topology file, relative to the experiment file's directory").required(),
    NAMESPACES,
];

/// Number of copies of any topology.
pub(crate) const NAMESPACES: Key =
    Key::new("namespaces", Kind::Whole(1, MAX_NAMESPACES as u64), "copies, each in its own namespace")
        .default("1");

/// Parameters of all shapes, each once.
pub(crate) fn shape_parameters() -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for parameter in SHAPES.iter().flat_map(|shape| shape.parameters) {
        if keys.iter().all(|key| key.name != parameter.name) {
            let value = match &parameter.kind {
                ParameterKind::Whole(range) => Kind::Whole((*range.start()).into(), (*range.end()).into()),
                ParameterKind::Fraction => Kind::Fraction,
                ParameterKind::Switch => Kind::Switch,
            };
            keys.push(Key::new(parameter.name, value, parameter.summary));
        }
    }
    keys
}

#[cfg(test)]
mod tests;
