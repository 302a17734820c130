//! Switches that a control plane makes: what an experiment asks of `mesh: istio` beyond the proxies themselves.
//!
//! Every switch is off unless the experiment turns it on, so that a study which names none measures a mesh as it is
//! installed. `docs/experiment-file.md` says what each does and with which modes it goes.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The whole section `istio` of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshSettings {
    /// Istio's own telemetry in the proxies.
    pub telemetry: TelemetrySetting,
    /// Share of requests that are traced, 0 to 1 in ten-thousandths; absent: no proxy sends spans at all.
    pub tracing_fraction: Option<f64>,
    /// Who may call the service.
    pub authorization: AuthorizationSettings,
    /// A script that each HTTP proxy before the service runs for every request; absent: none.
    pub lua: Option<LuaScript>,
    /// A module that each HTTP proxy before the service runs for every request; absent: none. An absolute path, unless
    /// the experiment was read where files are not looked at.
    pub wasm: Option<PathBuf>,
    /// Attempts after the first that a route makes; absent: what Istio does of its own accord.
    pub retries: Option<usize>,
    /// After this a route gives up; absent: never.
    pub timeout: Option<Duration>,
    /// Proxies that read the requests speak HTTP/2 with each other, though the load is HTTP/1.1.
    pub http2_upgrade: bool,
    /// Proxies are told only of what their own namespace needs (the `Sidecar` resource).
    pub sidecar_scope: bool,
    /// Agents of proxies run a DNS server with the names that istiod sends them.
    pub dns_capture: bool,
    /// istiod gives services without an address one of its own.
    pub dns_auto_allocate: bool,
    /// Other services of the mesh.
    pub surroundings: Surroundings,
    /// The ingress gateway.
    pub ingress: IngressSettings,
    /// How many ztunnels the ambient modes have.
    pub ztunnel: ZtunnelPlacement,
    /// The control plane itself, in mode `control-plane`.
    pub istiod: IstiodSettings,
    /// Objects that the experiment brings along.
    pub extra: Option<ExtraObjects>,
}

/// Metrics that proxies keep of every request and connection (`istio_stats`), with the exchange of peers' metadata that
/// labels them. Upstream's build of Envoy lacks the filters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TelemetrySetting {
    /// As Istio installs it: on where the proxy has the filters.
    #[default]
    Auto,
    /// On; unavailable with a proxy that lacks the filters.
    On,
    /// Off.
    Off,
}

/// Who may call the service. What the generator sends is always allowed: the cost of rules is in checking them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AuthorizationSettings {
    /// Rules that allow a path each; the last allows the generator's.
    pub paths: usize,
    /// Rules that allow a caller's identity each; the last allows the generator's.
    pub identities: usize,
    /// Requests must show a token, which the generator then sends and the proxy verifies.
    pub jwt: bool,
}

impl AuthorizationSettings {
    /// Whether anything is asked of a request beyond the connection that it comes on.
    #[must_use]
    pub fn reads_requests(self) -> bool {
        self.paths > 0 || self.jwt
    }
}

/// A script for Envoy's Lua filter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LuaScript {
    /// Meshmeter's own: reads a header of the request and sets one on the response.
    BuiltIn,
    /// The experiment's own.
    Inline(String),
}

/// Other services of the mesh: nobody calls them, and every proxy is told of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Surroundings {
    /// How many.
    pub services: usize,
    /// Addresses of each.
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
    /// What clients outside speak with it.
    pub tls: IngressTls,
    /// Which objects describe it.
    pub api: IngressApi,
}

/// TLS between a client outside the mesh and the ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IngressTls {
    /// None: plain HTTP.
    Off,
    /// The gateway shows a certificate.
    #[default]
    Simple,
    /// The client shows one too.
    Mutual,
}

/// The objects that describe an ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IngressApi {
    /// Istio's `Gateway` and `VirtualService`.
    #[default]
    Istio,
    /// The `Gateway` and `HTTPRoute` of the Kubernetes Gateway API.
    Kubernetes,
}

/// How many ztunnels the pods of a node have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZtunnelPlacement {
    /// One for all pods of the node, as in a cluster: the client's and the server's are the same.
    #[default]
    Shared,
    /// One in each pod.
    PerPod,
}

/// istiod: how many there are, what they may use, and how long they collect changes before they push.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IstiodSettings {
    /// Replicas, which share the proxies.
    pub replicas: usize,
    /// CPU limit of each, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
    /// Memory limit of each, bytes; absent: none.
    pub memory_limit_bytes: Option<u64>,
    /// A push follows the last change after this (`PILOT_DEBOUNCE_AFTER`); absent: Istio's own 100 ms.
    pub debounce_after: Option<Duration>,
    /// A push follows the first change after this at the latest (`PILOT_DEBOUNCE_MAX`); absent: Istio's own 10 s.
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

/// Objects that an experiment brings along, beside those that its other keys ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraObjects {
    /// As written: one or several YAML documents.
    pub text: String,
    /// The same, read. Each is a map that has `apiVersion`, `kind` and `metadata.name`.
    pub objects: Vec<serde_json::Value>,
}

impl MeshSettings {
    /// The switches in use that only a proxy which reads HTTP requests can make, each as its key under `istio`.
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
