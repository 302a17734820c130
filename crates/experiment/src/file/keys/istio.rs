//! Keys of the sections `istio` and `components`.

use crate::keys::{Key, Kind, SWITCH};
use crate::settings::istio::TelemetrySetting;

pub(in crate::file) const TELEMETRY: [(&str, TelemetrySetting); 5] = [
    ("auto", TelemetrySetting::Auto),
    ("on", TelemetrySetting::On),
    ("off", TelemetrySetting::Off),
    ("true", TelemetrySetting::On),
    ("false", TelemetrySetting::Off),
];
pub(in crate::file) const MAX_RULES: usize = 10_000;
pub(in crate::file) const MAX_RETRIES: usize = 100;
/// Maximum number of services: they take minutes to write on two busy cores, and nearly a gigabyte in each
/// proxy.
pub(in crate::file) const MAX_SERVICES: usize = 10_000;
pub(in crate::file) const MAX_ENDPOINTS: usize = 1_000;
/// Maximum number of istiods in one mesh.
pub(in crate::file) const MAX_ISTIODS: usize = 16;

pub(super) const COMPONENTS: [Key; 5] = [
    Key::new("istio", Kind::Text, "Istio release, such as 1.30.1, or `pinned`; the installed one if absent"),
    program("envoy"),
    program("ztunnel"),
    program("istiod"),
    program("pilot-agent"),
];

const fn program(name: &'static str) -> Key {
    Key::new(name, Kind::Text, "your own program, a file relative to the experiment file's directory")
}

const fn switch(name: &'static str, summary: &'static str) -> Key {
    Key::new(name, Kind::Switch, summary).default("off")
}

pub(super) const ISTIO: [Key; 17] = [
    Key::new(
        "telemetry",
        Kind::OneOf(|| TELEMETRY.map(|(word, _)| word).to_vec()),
        "Istio's own metrics of each request and connection; `auto`: if the proxy has the filters",
    )
    .default("auto"),
    Key::new("tracing", Kind::Fraction, "share of requests that are traced, in steps of 0.01%"),
    Key::new("authorization", Kind::Named("istio.authorization"), "authorization rules before the service"),
    Key::new(
        "lua",
        Kind::Either(&[
            Kind::OneOf(|| SWITCH.map(|(word, _)| word).to_vec()),
            Kind::Matching(|| r"\n".to_owned()),
        ]),
        "script that each HTTP proxy before the service runs per request: `on`, or the text of a script",
    ),
    Key::new(
        "wasm",
        Kind::Text,
        "WebAssembly module that each HTTP proxy before the service runs per request",
    ),
    Key::new("retries", Kind::Whole(0, MAX_RETRIES as u64), "retries of a route; Istio's own if absent"),
    Key::new("timeout", Kind::Duration, "timeout of a route, whole milliseconds; never if absent"),
    switch("http2-upgrade", "proxies use HTTP/2 between each other although the load is HTTP/1.1"),
    switch("sidecar-scope", "sidecars see only their own namespace"),
    switch(
        "dns-capture",
        "agents of sidecars and waypoints run a DNS server, and istiod sends them the names",
    ),
    switch("dns-auto-allocate", "istiod allocates an address for services without one"),
    Key::new("surroundings", Kind::Named("istio.surroundings"), "background services"),
    Key::new("ingress", Kind::Named("istio.ingress"), "the gateway of mode `ingress`"),
    Key::new(
        "ztunnel",
        Kind::OneOf(|| vec!["shared", "per-pod"]),
        "number of ztunnels in the ambient modes: one for all pods of the node, or one in each pod",
    )
    .default("shared"),
    Key::new(
        "workload-keys",
        Kind::OneOf(|| vec!["rsa", "ecdsa"]),
        "keys of the certificates of sidecars, waypoints and gateways",
    )
    .default("rsa"),
    Key::new("istiod", Kind::Named("istio.istiod"), "replicas, limits and debouncing of istiod"),
    Key::new("extra", Kind::Text, "further objects: a file of YAML documents, or the documents as text"),
];

pub(super) const AUTHORIZATION: [Key; 3] = [
    Key::new("paths", Kind::Whole(0, MAX_RULES as u64), "rules that allow one path each").default("0"),
    Key::new("identities", Kind::Whole(0, MAX_RULES as u64), "rules that allow one caller each").default("0"),
    switch("jwt", "requests carry a token, which is verified"),
];

pub(super) const SURROUNDINGS: [Key; 2] = [
    Key::new(
        "services",
        Kind::Whole(0, MAX_SERVICES as u64),
        "other services of the mesh, which every proxy is configured with",
    )
    .default("0"),
    Key::new("endpoints", Kind::Whole(1, MAX_ENDPOINTS as u64), "addresses of each").default("1"),
];

pub(super) const INGRESS: [Key; 2] = [
    Key::new(
        "tls",
        Kind::OneOf(|| vec!["off", "simple", "mutual"]),
        "TLS between clients outside and the gateway: the gateway presents a certificate, or the client too",
    )
    .default("simple"),
    Key::new(
        "api",
        Kind::OneOf(|| vec!["istio", "kubernetes"]),
        "the objects that describe it: Gateway and VirtualService, or Gateway and HTTPRoute",
    )
    .default("istio"),
];

pub(super) const ISTIOD: [Key; 5] = [
    Key::new("replicas", Kind::Whole(1, MAX_ISTIODS as u64), "istiods, which share the proxies").default("1"),
    Key::new("cpu", Kind::Cores, "CPU limit of each istiod"),
    Key::new("memory", Kind::Size, "memory limit of each istiod, 128MiB or more"),
    Key::new(
        "debounce-after",
        Kind::Duration,
        "a push follows the last change after this; Istio's own: 100ms",
    ),
    Key::new("debounce-max", Kind::Duration, "a push follows the first change after this at the latest; 10s"),
];
