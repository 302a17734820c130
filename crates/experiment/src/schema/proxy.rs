//! Proxies of a trial under a control plane: their build, and their telemetry.

use crate::settings::istio::TelemetrySetting;
use serde::{Deserialize, Serialize};

/// Build of Envoy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyBuild {
    /// Without the filters that only Istio's proxy has.
    Upstream,
    /// With Istio's filters: `istio_stats`, peer metadata, ALPN.
    Istio,
}

/// Build and telemetry of the proxies that a control plane configured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct ProxySetup {
    /// Build of every sidecar, gateway and waypoint of the trial.
    pub build: ProxyBuild,
    /// True if they generate Istio's metrics and exchange peer metadata for their labels.
    pub telemetry: bool,
}

impl ProxySetup {
    /// Effect of a setting on proxies of this build; absent if the build does not support it.
    #[must_use]
    pub fn new(build: ProxyBuild, telemetry: TelemetrySetting) -> Option<Self> {
        let telemetry = match (telemetry, build) {
            (TelemetrySetting::On, ProxyBuild::Upstream) => return None,
            (TelemetrySetting::Off, _) | (TelemetrySetting::Auto, ProxyBuild::Upstream) => false,
            (TelemetrySetting::On | TelemetrySetting::Auto, ProxyBuild::Istio) => true,
        };
        Some(Self { build, telemetry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_needs_istio_build_and_is_on_by_default() {
        let telemetry = |build, setting| ProxySetup::new(build, setting).map(|proxies| proxies.telemetry);
        use ProxyBuild::{Istio, Upstream};
        use TelemetrySetting::{Auto, Off, On};
        assert_eq!(
            [Auto, On, Off].map(|setting| telemetry(Istio, setting)),
            [Some(true), Some(true), Some(false)]
        );
        assert_eq!(
            [Auto, On, Off].map(|setting| telemetry(Upstream, setting)),
            [Some(false), None, Some(false)]
        );
    }
}
