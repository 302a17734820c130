//! Programs of the mesh: a version of Istio, and programs named one by one.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of Istio that is built from the pinned source, as users name it.
pub const PINNED_ISTIO: &str = "pinned";

/// Versions and programs of a deployment's components. What is absent is chosen by the environment.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ComponentsSettings {
    /// Release of Istio, such as `1.30.1`, or [`PINNED_ISTIO`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istio: Option<String>,
    /// Envoy. Takes precedence over that of `istio`, as do the other programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envoy: Option<PathBuf>,
    /// Node proxy of the ambient modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ztunnel: Option<PathBuf>,
    /// Control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiod: Option<PathBuf>,
    /// Agent of sidecars, gateways and waypoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pilot_agent: Option<PathBuf>,
}

impl ComponentsSettings {
    /// Key under `components` and path of each program that is named.
    pub fn programs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let programs = [
            ("envoy", &self.envoy),
            ("ztunnel", &self.ztunnel),
            ("istiod", &self.istiod),
            ("pilot-agent", &self.pilot_agent),
        ];
        programs.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?)))
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
