//! Identity of a proxy on the wire: `envoy.config.core.v3.Node`, filled in like pilot-agent's and ztunnel's.

use super::proxy::{ProxyKind, ProxySpec, XdsVariant};
use super::wire::{put_bytes, put_double, put_message, put_number, put_text};
use std::sync::LazyLock;

/// Envoy version that a proxy claims.
const ENVOY_VERSION: [u64; 3] = [1, 40, 0];

/// Extensions listed by an Envoy of that version (`/server_info`): a line per category, followed by indented
/// lines of a name and type URLs. istiod keeps them while the proxy is connected, so they count in its memory.
const EXTENSIONS: &str = include_str!("envoy_extensions.txt");

/// The extensions, encoded as fields of a node.
static ENCODED_EXTENSIONS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut out = Vec::new();
    let mut category = "";
    for line in EXTENSIONS.lines() {
        let Some(extension) = line.strip_prefix("  ") else {
            category = line;
            continue;
        };
        put_message(&mut out, 9, |out| {
            let mut words = extension.split(' ');
            put_text(out, 1, words.next().unwrap_or_default());
            put_text(out, 2, category);
            words.for_each(|url| put_text(out, 6, url));
        });
    }
    out
});

/// Client features of an Envoy.
const CLIENT_FEATURES: [&str; 2] =
    ["envoy.lb.does_not_support_overprovisioning", "envoy.lrs.supports_send_all_clusters"];

/// Encodes the node of a proxy.
pub(super) fn encode(spec: &ProxySpec, variant: XdsVariant) -> Vec<u8> {
    let mut node = Vec::with_capacity(2048);
    put_text(&mut node, 1, &id(spec));
    if spec.kind == ProxyKind::Ztunnel {
        put_message(&mut node, 3, |metadata| put_fields(metadata, &ztunnel_metadata(spec)));
        return node;
    }
    put_text(&mut node, 2, &format!("{}.{}", application(spec), spec.namespace));
    put_message(&mut node, 3, |metadata| put_fields(metadata, &envoy_metadata(spec, variant)));
    put_bytes(&mut node, 4, b"");
    put_text(&mut node, 6, "envoy");
    put_message(&mut node, 8, put_build_version);
    node.extend_from_slice(&ENCODED_EXTENSIONS);
    for feature in CLIENT_FEATURES {
        put_text(&mut node, 10, feature);
    }
    node
}

/// The node id, such as `sidecar~10.0.0.1~web-0.shop~shop.svc.cluster.local`.
fn id(spec: &ProxySpec) -> String {
    let node_type = match spec.kind {
        ProxyKind::Sidecar => "sidecar",
        ProxyKind::Gateway => "router",
        ProxyKind::Waypoint => "waypoint",
        ProxyKind::Ztunnel => "ztunnel",
    };
    let ProxySpec { address, name, namespace, .. } = spec;
    format!("{node_type}~{address}~{name}.{namespace}~{namespace}.svc.cluster.local")
}

/// Name of the application or, without that label, of the service account.
fn application(spec: &ProxySpec) -> &str {
    let labels = ["app", "service.istio.io/canonical-name"];
    labels.iter().find_map(|label| spec.labels.get(*label)).unwrap_or(&spec.service_account)
}

/// A value of `google.protobuf.Struct`.
enum Value {
    Text(String),
    Number(f64),
    Map(Vec<(String, Value)>),
    List(Vec<Value>),
}

type Fields = Vec<(String, Value)>;

fn text(name: &str, value: impl Into<String>) -> (String, Value) {
    (name.to_owned(), Value::Text(value.into()))
}

fn number(name: &str, value: f64) -> (String, Value) {
    (name.to_owned(), Value::Number(value))
}

fn envoy_metadata(spec: &ProxySpec, variant: XdsVariant) -> Fields {
    let ProxySpec { namespace, .. } = spec;
    let application = application(spec);
    let labels = spec.labels.iter().map(|(label, value)| text(label, value));
    // Workload discovery, which a waypoint always has, needs the delta variant.
    let discovers_workloads = spec.kind == ProxyKind::Waypoint && variant == XdsVariant::Delta;
    let mut fields = vec![
        text("APP_CONTAINERS", application),
        text("CLUSTER_ID", &spec.cluster_id),
        number("ENVOY_PROMETHEUS_PORT", 15090.0),
        number("ENVOY_STATUS_PORT", 15021.0),
        text("INSTANCE_IPS", spec.address.to_string()),
        text("INTERCEPTION_MODE", "REDIRECT"),
        text("ISTIO_VERSION", &spec.istio_version),
        ("LABELS".to_owned(), Value::Map(labels.collect())),
        text("MESH_ID", "cluster.local"),
        text("METADATA_DISCOVERY", if discovers_workloads { "true" } else { "false" }),
        text("NAME", &spec.name),
        text("NAMESPACE", namespace),
        text("NODE_NAME", &spec.node),
        text("OWNER", format!("kubernetes://apis/apps/v1/namespaces/{namespace}/deployments/{application}")),
        ("PILOT_SAN".to_owned(), Value::List(vec![Value::Text("istiod.istio-system.svc".to_owned())])),
        ("PROXY_CONFIG".to_owned(), Value::Map(proxy_config())),
        text("SERVICE_ACCOUNT", &spec.service_account),
        text("WORKLOAD_NAME", application),
    ];
    if spec.dns_capture {
        fields.push(text("DNS_CAPTURE", "true"));
    }
    if spec.kind == ProxyKind::Gateway {
        fields.push(text("UNPRIVILEGED_POD", "true"));
    }
    fields
}

/// The default `meshConfig.defaultConfig`.
fn proxy_config() -> Fields {
    vec![
        text("binaryPath", "/usr/local/bin/envoy"),
        text("configPath", "./etc/istio/proxy"),
        text("controlPlaneAuthPolicy", "MUTUAL_TLS"),
        text("discoveryAddress", "istiod.istio-system.svc:15012"),
        text("drainDuration", "45s"),
        number("proxyAdminPort", 15000.0),
        text("serviceCluster", "istio-proxy"),
        number("statNameLength", 189.0),
        number("statusPort", 15020.0),
        text("terminationDrainDuration", "5s"),
    ]
}

fn ztunnel_metadata(spec: &ProxySpec) -> Fields {
    vec![
        text("CLUSTER_ID", &spec.cluster_id),
        text("INSTANCE_IPS", spec.address.to_string()),
        text("ISTIO_VERSION", &spec.istio_version),
        text("NAME", &spec.name),
        text("NAMESPACE", &spec.namespace),
        text("NODE_NAME", &spec.node),
    ]
}

/// `google.protobuf.Struct`.
fn put_fields(out: &mut Vec<u8>, fields: &[(String, Value)]) {
    for (name, value) in fields {
        put_message(out, 1, |entry| {
            put_text(entry, 1, name);
            put_message(entry, 2, |encoded| put_value(encoded, value));
        });
    }
}

/// `google.protobuf.Value`.
fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(number) => put_double(out, 2, *number),
        Value::Text(text) => put_bytes(out, 3, text.as_bytes()),
        Value::Map(fields) => put_message(out, 5, |map| put_fields(map, fields)),
        Value::List(values) => put_message(out, 6, |list| {
            for value in values {
                put_message(list, 1, |encoded| put_value(encoded, value));
            }
        }),
    }
}

/// `envoy.config.core.v3.BuildVersion`.
fn put_build_version(out: &mut Vec<u8>) {
    put_message(out, 1, |version| {
        for (field, number) in (1..).zip(ENVOY_VERSION) {
            put_number(version, field, number);
        }
    });
    let metadata =
        [text("build.type", "RELEASE"), text("revision.status", "Clean"), text("ssl.version", "BoringSSL")];
    put_message(out, 2, |fields| put_fields(fields, &metadata));
}
