//! Settings of `mesh: istio` that need a control plane.
//!
//! Every setting is off unless the experiment turns it on, so that a study without settings measures a mesh
//! as installed. `docs/experiment-file.md` describes each setting and the modes that support it.

use crate::keys::Kind;
use crate::keys::settings::keys;
use crate::keys::words::{words, words_of};
use crate::yaml::written::Yaml;
use results::{ProxyBuild, ProxySetup};
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
    pub background_services: BackgroundSettings,
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

/// Maximum number of rules that allow a path each, or an identity each.
const MAX_RULES: u64 = 10_000;
/// Maximum number of services: they take minutes to write on two busy cores, and nearly a gigabyte in each
/// proxy.
const MAX_SERVICES: u64 = 10_000;
/// Maximum number of istiods in one mesh.
const MAX_ISTIODS: u64 = 16;
/// Minimum memory limit: istiod does not start with less.
const MIN_ISTIOD_BYTES: u64 = 128 << 20;

keys!(MeshSettings {
    rare telemetry: "telemetry", Kind::OneOf(words_of::<TelemetrySetting>),
        "Istio's own metrics of each request and connection; `auto`: if the proxy has the filters";
    key tracing_fraction: "tracing", Kind::Fraction, "share of requests that are traced, in steps of 0.01%";
    section authorization: "authorization", Kind::Named("istio.authorization"), "authorization rules before the service";
    own lua: "lua" as "Lua", Kind::Either(&[Kind::Switch, Kind::Matching(|| r"\n".to_owned())]),
        "script that each HTTP proxy before the service runs per request: `on`, or the text of a script",
        |lua| lua.as_ref().map(|script| Yaml::Text(script.written().to_owned()));
    own wasm: "wasm" as "Wasm", Kind::Text, "WebAssembly module that each HTTP proxy before the service runs per request",
        |wasm| Yaml::path(wasm.as_deref());
    key retries: "retries", Kind::Whole(0, 100), "retries of a route; Istio's own if absent";
    key timeout: "timeout", Kind::Milliseconds, "timeout of a route, whole milliseconds; never if absent";
    rare http2_upgrade: "http2-upgrade" as "HTTP/2 upgrade", Kind::Switch,
        "proxies use HTTP/2 between each other although the load is HTTP/1.1";
    key sidecar_scope: "sidecar-scope", Kind::Switch, "sidecars see only their own namespace";
    rare dns_capture: "dns-capture" as "DNS capture", Kind::Switch,
        "agents of sidecars and waypoints run a DNS server, and istiod sends them the names";
    rare dns_auto_allocate: "dns-auto-allocate" as "DNS allocation", Kind::Switch,
        "istiod allocates an address for services without one";
    section background_services: "background-services", Kind::Named("istio.background-services"), "background services";
    section ingress: "ingress", Kind::Named("istio.ingress"), "the gateway of mode `ingress`";
    key ztunnel: "ztunnel", Kind::OneOf(words_of::<ZtunnelPlacement>),
        "number of ztunnels in the ambient modes: one for all pods of the node, or one in each pod";
    rare workload_keys: "workload-keys", Kind::OneOf(words_of::<WorkloadKeys>),
        "keys of the certificates of sidecars, waypoints and gateways";
    section istiod: "istiod", Kind::Named("istio.istiod"), "replicas, limits and debouncing of istiod";
    own extra: "extra", Kind::Text, "further objects: a file of YAML documents, or the documents as text",
        |extra| extra.as_ref().map(|extra| Yaml::Text(extra.text.clone()));
});

/// Metrics that proxies record for every request and connection (`istio_stats`), and the exchange of peer
/// metadata for their labels. Upstream builds of Envoy lack these filters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TelemetrySetting {
    /// Istio's default: on if the proxy has the filters.
    #[default]
    Auto,
    /// On; unavailable with a proxy that lacks the filters.
    On,
    /// Off.
    Off,
}

words!(TelemetrySetting { Auto = "auto", On = "on", Off = "off"; "true" = On, "false" = Off });

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

const RULES: Kind = Kind::Whole(0, MAX_RULES);

keys!(AuthorizationSettings {
    key paths: "paths" as "allowed paths", RULES, "rules that allow one path each";
    key identities: "identities" as "allowed callers", RULES, "rules that allow one caller each";
    key jwt: "jwt" as "JWT", Kind::Switch, "requests carry a token, which is verified";
});

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

impl LuaScript {
    /// Value of the key.
    fn written(&self) -> &str {
        match self {
            Self::BuiltIn => "on",
            Self::Inline(text) => text,
        }
    }
}

/// Background services: other services of the mesh, which nobody calls but every proxy is configured with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BackgroundSettings {
    /// Number of services.
    pub services: usize,
    /// Endpoints per service.
    pub endpoints: usize,
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self { services: 0, endpoints: 1 }
    }
}

keys!(BackgroundSettings {
    key services: "services" as "background services", Kind::Whole(0, MAX_SERVICES),
        "number of background services, which nobody calls but every proxy is configured with";
    key endpoints: "endpoints" as "endpoints per service", Kind::Whole(1, 1_000), "addresses of each";
});

/// The ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct IngressSettings {
    /// TLS between clients and the gateway.
    pub tls: IngressTls,
    /// API of its configuration objects.
    pub api: IngressApi,
}

keys!(IngressSettings {
    key tls: "tls" as "TLS", Kind::OneOf(words_of::<IngressTls>),
        "TLS between clients outside and the gateway: the gateway presents a certificate, or the client too";
    key api: "api" as "API", Kind::OneOf(words_of::<IngressApi>),
        "the objects that describe it: Gateway and VirtualService, or Gateway and HTTPRoute";
});

/// TLS between a client outside the mesh and the ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IngressTls {
    /// Plain HTTP.
    Off,
    /// The gateway presents a certificate.
    #[default]
    Simple,
    /// The client presents one too.
    Mutual,
}

words!(IngressTls { Off = "off", Simple = "simple", Mutual = "mutual" });

/// API of the objects that configure an ingress gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IngressApi {
    /// Istio API: `Gateway` and `VirtualService`.
    #[default]
    Istio,
    /// Kubernetes Gateway API: `Gateway` and `HTTPRoute`.
    Kubernetes,
}

words!(IngressApi { Istio = "istio", Kubernetes = "kubernetes" });

/// Placement of ztunnels.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ZtunnelPlacement {
    /// One for all pods of the node, as in a cluster: client and server share it.
    #[default]
    Shared,
    /// One in each pod.
    PerPod,
}

words!(ZtunnelPlacement { Shared = "shared", PerPod = "per-pod" });

/// Keys of sidecars, waypoints and gateways, with which they prove their identity in handshakes. A ztunnel's
/// keys are always ECDSA.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WorkloadKeys {
    /// RSA of 2048 bits, Istio's default.
    #[default]
    Rsa,
    /// ECDSA with the curve P-256.
    Ecdsa,
}

words!(WorkloadKeys { Rsa = "rsa", Ecdsa = "ecdsa" });

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

keys!(IstiodSettings {
    key replicas: "replicas" as "istiods", Kind::Whole(1, MAX_ISTIODS), "istiods, which share the proxies";
    key cpu_limit_cores: "cpu" as "istiod CPU", Kind::Cores, "CPU limit of each istiod";
    key memory_limit_bytes: "memory" as "istiod memory", Kind::SizeFor("istiod", MIN_ISTIOD_BYTES),
        "memory limit of each istiod, 128MiB or more";
    key debounce_after: "debounce-after", Kind::Milliseconds,
        "a push follows the last change after this; Istio's own: 100ms";
    key debounce_max: "debounce-max", Kind::Milliseconds,
        "a push follows the first change after this at the latest; 10s";
});

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
