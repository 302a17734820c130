//! Keys of an experiment file, section by section.

pub(super) mod load;
pub(super) mod published;

use crate::definition::{Fresh, HeadlineFigure, Resolve};
use crate::keys::settings::tables;
use crate::keys::words::words_of;
use crate::keys::{DescribedKey, Key, Kind, names};
use crate::mesh_kind::MeshKind;
use crate::objective::Objective;
use crate::settings::components::ComponentsSettings;
use crate::settings::fleet::FleetSettings;
use crate::settings::ingress::{Estate, GatewaySettings};
use crate::settings::istio::MeshSettings;
use crate::settings::proxy::ProxySettings;
use crate::settings::service::ServerSettings;
use crate::topology::shapes::{ParameterKind, SHAPES};
use results::Mode;
use std::sync::LazyLock;

/// Maximum number of copies of a topology.
pub(super) const MAX_NAMESPACES: usize = 1000;
pub(super) const MAX_REPLICAS: usize = 1000;

/// Keys of a built-in topology in addition to its parameters.
pub(crate) const SHAPE_KEYS: [&str; SHAPE.len()] = names(&SHAPE);

/// Keys of a section.
pub(crate) struct SectionKeys {
    /// Dotted key of the section; empty for the top level.
    pub(crate) path: &'static str,
    pub(crate) keys: Vec<DescribedKey>,
    pub(crate) names: Vec<&'static str>,
}

impl SectionKeys {
    fn new((path, keys): (&'static str, Vec<DescribedKey>)) -> Self {
        Self { path, names: keys.iter().map(|described| described.key.name).collect(), keys }
    }

    /// True if the section may be empty (`proxy:`), as if it was left out.
    pub(crate) fn may_be_empty(&self) -> bool {
        !["", "load", "fleet", "published", "published.figures"].contains(&self.path)
    }
}

/// Every section except `topology`, whose keys depend on its kind ([`super::section`]).
pub(crate) static SECTION_KEYS: LazyLock<Vec<SectionKeys>> = LazyLock::new(|| {
    let table = |path, keys: &[Key]| vec![(path, keys.iter().map(DescribedKey::from).collect())];
    let sections = [
        table("", &ROOT),
        tables::<load::LoadSection>("load"),
        tables::<FleetSettings>("fleet"),
        tables::<Objective>("objective"),
        tables::<Resolve>("resolve"),
        tables::<ProxySettings>("proxy"),
        tables::<ComponentsSettings>("components"),
        tables::<MeshSettings>("istio"),
        tables::<Estate>("ingress"),
        tables::<GatewaySettings>("gateway"),
        tables::<ServerSettings>("server"),
        table("client", &CLIENT),
        table("published", &published::SOURCE),
        table("published.figures", &published::FIGURE),
    ];
    sections.into_iter().flatten().map(SectionKeys::new).collect()
});

/// Names of all modes.
pub(super) fn modes() -> Vec<&'static str> {
    Mode::ALL.map(Mode::name).to_vec()
}

pub(super) fn shapes() -> Vec<&'static str> {
    SHAPES.map(|shape| shape.name).to_vec()
}

const ROOT: [Key; 22] = [
    Key::new(
        "name",
        Kind::Matching(|| "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$".to_owned()),
        "names the run's directory",
    )
    .required(),
    Key::new("question", Kind::Text, "the question; heads the report"),
    Key::new(
        "headline",
        Kind::OneOf(words_of::<HeadlineFigure>),
        "the figure that the headline states; by the kind of run if absent",
    ),
    Key::new("topology", Kind::Named("topology"), "which services call which").default("pair"),
    Key::new(
        "mesh",
        Kind::OneOf(words_of::<MeshKind>),
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
        Kind::OneOf(words_of::<Fresh>),
        "lifetime of a deployment: one trial, or all loads of a mode within a repeat; by start-up cost if absent",
    ),
    Key::new(
        "published",
        Kind::OneOrSeveral(&Kind::Named("published")),
        "published figures, shown beside this run's own",
    ),
];

const CLIENT: [Key; 1] = [Key::new("cpu", Kind::Cores, "CPU limit of the generator").label("generator CPU")];

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
