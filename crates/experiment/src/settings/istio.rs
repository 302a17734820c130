//! Settings of `mesh: istio` that need a control plane.
//!
//! Every setting is off unless the experiment turns it on, so that a study without settings measures a mesh
//! as installed. `docs/experiment-file.md` describes each setting and the modes that support it.

use results::{ProxyBuild, ProxySetup};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The section `istio` of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshSettings {
    /// Istio telemetry in the proxies.
    pub telemetry: TelemetrySetting,
    /// Traced share of requests, 0 to 1, in ten-thousandths; absent: proxies send no spans at all.
    pub tracing_fraction: Option<f64>,
    /// Authorization for calls to the service.
    pub authorization: AuthorizationSettings,
    /// Lua script that each HTTP proxy in front of the service runs on every request; absent: none.
    pub lua: Option<LuaScript>,
    /// Wasm module that each HTTP proxy in front of the service runs on every request; absent: none. An
    /// absolute path, unless the experiment was read without access to files.
    pub wasm: Option<PathBuf>,
    /// Retries per route; absent: Istio's default.
    pub retries: Option<usize>,
    /// Timeout of a route; absent: none.
    pub timeout: Option<Duration>,
    /// True if proxies that read requests use HTTP/2 between each other although the load is HTTP/1.1.
    pub http2_upgrade: bool,
    /// True if proxies are scoped to their own namespace (`Sidecar` resource).
    pub sidecar_scope: bool,
    /// True if proxy agents run a DNS server with the names that istiod sends them.
    pub dns_capture: bool,
    /// True if istiod allocates addresses for services without one.
    pub dns_auto_allocate: bool,
    /// Background services of the mesh.
    pub surroundings: Surroundings,
    /// The ingress gateway.
    pub ingress: IngressSettings,
    /// Number of ztunnels in the ambient modes.
    pub ztunnel: ZtunnelPlacement,
    /// Keys of the certificates that pilot-agents request.
    pub workload_keys: WorkloadKeys,
    /// Settings of istiod itself, in mode `control-plane`.
    pub istiod: IstiodSettings,
    /// Additional objects of the experiment.
    pub extra: Option<ExtraObjects>,
}

/// Metrics that proxies record for every request and connection (`istio_stats`), and the exchange of peer
/// metadata for their labels. Upstream builds of Envoy lack these filters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TelemetrySetting {
    /// Istio's default: on if the proxy has the filters.
    #[default]
    Auto,
    /// On; unavailable with a proxy that lacks the filters.
    On,
    /// Off.
    Off,
}

impl TelemetrySetting {
    /// Setup of proxies of this build; absent if the build does not support the setting.
    #[must_use]
    pub fn setup(self, build: ProxyBuild) -> Option<ProxySetup> {
        let telemetry = match (self, build) {
            (Self::On, ProxyBuild::Upstream) => return None,
            (Self::Off, _) | (Self::Auto, ProxyBuild::Upstream) => false,
            (Self::On | Self::Auto, ProxyBuild::Istio) => true,
        };
        Some(ProxySetup { build, telemetry })
    }
}

/// Authorization rules. The generator's requests are always allowed: the cost is in checking the rules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AuthorizationSettings {
    /// Number of rules that each allow a path. The last one allows the generator's path.
    pub paths: usize,
    /// Number of rules that each allow an identity. The last one allows the generator's identity.
    pub identities: usize,
    /// True if requests need a JWT, which the generator then sends and the proxy verifies.
    pub jwt: bool,
}

impl AuthorizationSettings {
    /// True if the rules depend on the request, and not only on its connection.
    #[must_use]
    pub fn reads_requests(self) -> bool {
        self.paths > 0 || self.jwt
    }
}

/// Script for Envoy's Lua filter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LuaScript {
    /// Built-in script, which reads a request header and sets a response header.
    BuiltIn,
    /// Script of the experiment.
    Inline(String),
}

/// Background services: other services of the mesh, which nobody calls but every proxy is configured with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Surroundings {
    /// Number of services.
    pub services: usize,
    /// Endpoints per service.
    pub endpoints: usize,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { services: 0, endpoints: 1 }
    }
}

/// The ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct IngressSettings {
    /// TLS between clients and the gateway.
    pub tls: IngressTls,
    /// API of its configuration objects.
    pub api: IngressApi,
}

/// TLS between a client outside the mesh and the ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IngressTls {
    /// Plain HTTP.
    Off,
    /// The gateway presents a certificate.
    #[default]
    Simple,
    /// The client presents one too.
    Mutual,
}

/// API of the objects that configure an ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IngressApi {
    /// Istio API: `Gateway` and `VirtualService`.
    #[default]
    Istio,
    /// Kubernetes Gateway API: `Gateway` and `HTTPRoute`.
    Kubernetes,
}

/// Placement of ztunnels.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZtunnelPlacement {
    /// One for all pods of the node, as in a cluster: client and server share it.
    #[default]
    Shared,
    /// One in each pod.
    PerPod,
}

/// Keys of sidecars, waypoints and gateways, with which they prove their identity in handshakes. A ztunnel's
/// keys are always ECDSA.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKeys {
    /// RSA of 2048 bits, Istio's default.
    #[default]
    Rsa,
    /// ECDSA with the curve P-256.
    Ecdsa,
}

/// Settings of istiod: replicas, limits and debounce times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IstiodSettings {
    /// Number of replicas, which share the proxies.
    pub replicas: usize,
    /// CPU limit per replica, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
    /// Memory limit per replica, bytes; absent: none.
    pub memory_limit_bytes: Option<u64>,
    /// Delay of a push after the last change (`PILOT_DEBOUNCE_AFTER`); absent: Istio's default of 100 ms.
    pub debounce_after: Option<Duration>,
    /// Maximum delay of a push after the first change (`PILOT_DEBOUNCE_MAX`); absent: Istio's default of 10
    /// s.
    pub debounce_max: Option<Duration>,
}

impl Default for IstiodSettings {
    fn default() -> Self {
        Self {
            replicas: 1,
            cpu_limit_cores: None,
            memory_limit_bytes: None,
            debounce_after: None,
            debounce_max: None,
        }
    }
}

/// Objects of the experiment in addition to those from its other keys.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraObjects {
    /// Original text: one or several YAML documents.
    pub text: String,
    /// Parsed objects. Each is a map with `apiVersion`, `kind` and `metadata.name`.
    pub objects: Vec<serde_json::Value>,
}

impl MeshSettings {
    /// Keys under `istio` of the settings in use that need a proxy which reads HTTP requests.
    #[must_use]
    pub fn that_read_requests(&self) -> Vec<&'static str> {
        let switches = [
            ("tracing", self.tracing_fraction.is_some()),
            ("authorization.paths", self.authorization.paths > 0),
            ("authorization.jwt", self.authorization.jwt),
            ("lua", self.lua.is_some()),
            ("wasm", self.wasm.is_some()),
            ("retries", self.retries.is_some()),
            ("timeout", self.timeout.is_some()),
            ("http2-upgrade", self.http2_upgrade),
        ];
        switches.into_iter().filter_map(|(key, used)| used.then_some(key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_needs_istio_build_and_is_on_by_default() {
        let telemetry =
            |build, setting: TelemetrySetting| setting.setup(build).map(|proxies| proxies.telemetry);
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
