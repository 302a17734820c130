//! The proxies of a trial under a control plane: whose build they are, and whether they keep Istio's telemetry.

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
    /// Of every proxy of the trial: sidecars, gateways, waypoints.
    pub build: ProxyBuild,
    /// Whether they keep Istio's metrics and exchange the metadata that labels them.
    pub telemetry: bool,
}

impl ProxySetup {
    /// What a setting means for proxies of this build; absent where they cannot have it.
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
    fn telemetry_needs_istios_build_and_is_on_by_default_with_it() {
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
