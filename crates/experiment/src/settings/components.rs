//! Programs of the mesh: a version of Istio, and individually selected programs.

use crate::keys::Kind;
use crate::keys::settings::keys;
use crate::yaml::written::Yaml;
use std::path::{Path, PathBuf};

/// Name that users type for the version of Istio that is built from the pinned source.
pub const PINNED_ISTIO: &str = "pinned";

/// Versions and programs of a deployment's components. The environment chooses those that are absent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ComponentsSettings {
    /// Release of Istio, such as `1.30.1`, or [`PINNED_ISTIO`].
    pub istio: Option<String>,
    /// Envoy. Like the other programs, takes precedence over the one of `istio`.
    pub envoy: Option<PathBuf>,
    /// Node proxy of the ambient modes, ztunnel.
    pub ztunnel: Option<PathBuf>,
    /// Control plane, istiod.
    pub istiod: Option<PathBuf>,
    /// Agent of sidecars, gateways and waypoints, pilot-agent.
    pub pilot_agent: Option<PathBuf>,
}

const PROGRAM: &str = "your own program, a file relative to the experiment file's directory";

keys!(ComponentsSettings {
    own istio: "istio" as "Istio", Kind::Text, "Istio release, such as 1.30.1, or `pinned`; the installed one if absent",
        |version| version.clone().map(Yaml::Text);
    own envoy: "envoy" as "Envoy", Kind::Text, PROGRAM, |path| Yaml::path(path.as_deref());
    own ztunnel: "ztunnel", Kind::Text, PROGRAM, |path| Yaml::path(path.as_deref());
    own istiod: "istiod", Kind::Text, PROGRAM, |path| Yaml::path(path.as_deref());
    own pilot_agent: "pilot-agent", Kind::Text, PROGRAM, |path| Yaml::path(path.as_deref());
});

impl ComponentsSettings {
    /// Key under `components` and path of each selected program.
    pub fn programs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let programs = [
            ("envoy", &self.envoy),
            ("ztunnel", &self.ztunnel),
            ("istiod", &self.istiod),
            ("pilot-agent", &self.pilot_agent),
        ];
        programs.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?)))
    }
}
