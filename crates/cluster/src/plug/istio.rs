//! Common to both data planes of Istio: istiod, and the objects for settings.

use super::{Need, PlugContext, ProxyKind, SharedComponent};
use crate::Result;
use crate::settings::{ClusterSettings, Injector};
use experiment::environment::{AccessLog, DeploymentSpec, EnvironmentError};
use experiment::mesh_settings::MeshSettings;
use mesh::dataplane::with_subject;
use mesh::istio::agent::AgentProxy;
use mesh::istio::objects;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::{ADMIN_PORT, SYSTEM_NAMESPACE, setting_for_keys};
use results::Role;
use serde_json::{Value, json};

/// A sidecar, or the proxy of a gateway.
pub(crate) const ENVOY: ProxyKind = ProxyKind {
    container: "istio-proxy",
    ports: &[ADMIN_PORT],
    source: |ports| Box::new(AgentProxy { envoy: ports[0].clone(), agent: None }),
};

const INJECTOR: &str = "istio-sidecar-injector";
/// Prefix of the webhook of a tag, which stands for a revision.
const TAG_INJECTOR: &str = "istio-revision-tag";
const DEFAULT_TAG: &str = "default";
const REVISION_LABEL: &str = "istio.io/rev";

/// Possible names of the webhook of a tag or a revision. If there is a default tag, its webhook injects:
/// Istio then disables the webhook of the default revision.
fn webhooks(revision: Option<&str>) -> [String; 2] {
    let tag = revision.unwrap_or(DEFAULT_TAG);
    let of_revision =
        revision.map_or_else(|| INJECTOR.to_owned(), |revision| format!("{INJECTOR}-{revision}"));
    [format!("{TAG_INJECTOR}-{tag}"), of_revision]
}

fn webhook(name: &str) -> ObjectRef {
    ObjectRef::new("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", None, name)
}

/// Webhook that injects sidecars of this revision or tag; absent if there is none or this user may not read
/// it.
pub(super) fn find_injector(api: &ApiClient, revision: Option<&str>) -> Option<Injector> {
    webhooks(revision).into_iter().find_map(|name| {
        let object = api.get(&webhook(&name)).ok()??;
        let own = object["metadata"]["labels"][REVISION_LABEL].as_str().or(revision)?;
        Some(Injector { revision: own.to_owned(), webhook: name })
    })
}

/// The webhook that injection needs.
pub(super) fn need(settings: &ClusterSettings) -> Need {
    let [_, usual] = webhooks(settings.revision.as_deref());
    let found = settings.injector.as_ref().map(|injector| injector.webhook.as_str());
    Need {
        object: webhook(found.unwrap_or(&usual)),
        otherwise: "Istio injects no sidecars into this cluster",
        hint: "install Istio, or name its revision, or a tag, with --istio-revision",
    }
}

pub(super) fn control_plane(settings: &ClusterSettings) -> SharedComponent {
    let found = settings.injector.as_ref().map(|injector| &injector.revision);
    let selector = match found.or(settings.revision.as_ref()) {
        Some(revision) => format!("app=istiod,{REVISION_LABEL}={revision}"),
        None => "app=istiod".to_owned(),
    };
    SharedComponent {
        name: "istiod",
        role: Role::ControlPlane,
        namespace: Some(SYSTEM_NAMESPACE),
        selector,
        is_per_node: false,
        proxy: None,
    }
}

/// Objects for the namespaces and for the Services in the mesh.
pub(super) fn objects(context: &PlugContext<'_>) -> Vec<Value> {
    let topology = &context.spec.topology;
    let mut all = Vec::new();
    for namespace in topology.namespaces() {
        all.extend(objects::for_namespace(context.spec, &context.settings.namespace(namespace), None));
    }
    for (id, workload) in topology.workloads.iter().enumerate() {
        if workload.serves() && workload.in_mesh {
            all.extend(with_subject(context, id, |subject| {
                objects::for_service(context.spec, subject, None)
            }));
        }
    }
    all
}

/// Configuration of a proxy in an annotation of its pod, with the counters that prove the path: Istio's proxies have few by
/// default.
pub(crate) fn proxy_config(
    spec: &DeploymentSpec,
    workers: usize,
    statistics: impl IntoIterator<Item = String>,
) -> Value {
    let statistics: Vec<String> = statistics.into_iter().collect();
    let mut config = json!({"concurrency": workers, "proxyStatsMatcher": {"inclusionPrefixes": statistics}});
    if let Some((name, value)) = setting_for_keys(spec.istio.workload_keys) {
        config["proxyMetadata"] = json!({name: value});
    }
    config
}

/// Rejects settings that belong to the configuration of the mesh itself, which a run never changes.
pub(super) fn check_settings(spec: &DeploymentSpec) -> Result<()> {
    let refused = |key: &str, what: &str| {
        Err(EnvironmentError::new(
            format!("set `{key}`"),
            format!("{what}, and a run on a cluster changes nothing that is not its own"),
        )
        .with_hint("the lab has a mesh of its own: leave out `--on cluster`"))
    };
    if spec.proxy.access_log != AccessLog::Off {
        return refused("proxy.access-log", "access logs need a provider in the configuration of the mesh");
    }
    if spec.istio.authorization.jwt {
        return refused("istio.authorization.jwt", "the keys of tokens are those of a lab");
    }
    let (asked, usual) = (&*spec.istio, MeshSettings::default());
    let of_the_lab = [
        ("istio.background-services", asked.background_services != usual.background_services),
        ("istio.telemetry", asked.telemetry != usual.telemetry),
        ("istio.tracing", asked.tracing_fraction.is_some()),
        ("istio.dns-capture", asked.dns_capture),
        ("istio.dns-auto-allocate", asked.dns_auto_allocate),
        ("istio.wasm", asked.wasm.is_some()),
        ("istio.extra", asked.extra.is_some()),
    ];
    match of_the_lab.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((key, _)) => refused(key, "runs on clusters do not write it yet"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::MeshKind;
    use results::Mode;
    use std::sync::Arc;

    #[test]
    fn injector_identifies_istiod_behind_tag() {
        let mut settings = ClusterSettings::new("meshmeter", "run-1");
        assert_eq!(control_plane(&settings).selector, "app=istiod");
        settings.revision = Some("prod".to_owned());
        assert_eq!(control_plane(&settings).selector, "app=istiod,istio.io/rev=prod");
        assert_eq!(need(&settings).object.name, "istio-sidecar-injector-prod");
        let injector =
            Injector { webhook: "istio-revision-tag-prod".to_owned(), revision: "1-30-1".to_owned() };
        settings.injector = Some(injector);
        assert_eq!(control_plane(&settings).selector, "app=istiod,istio.io/rev=1-30-1");
        assert_eq!(need(&settings).object.name, "istio-revision-tag-prod");
    }

    #[test]
    fn settings_without_effect_are_rejected() {
        let spec = |istio: MeshSettings| DeploymentSpec {
            istio: Arc::new(istio),
            ..DeploymentSpec::new(MeshKind::Istio, Mode::Sidecar)
        };
        check_settings(&spec(MeshSettings::default())).expect("nothing is asked for");
        let refused = |istio: MeshSettings| check_settings(&spec(istio)).unwrap_err().to_string();
        assert!(
            refused(MeshSettings { dns_capture: true, ..Default::default() }).contains("istio.dns-capture")
        );
        let traced = MeshSettings { tracing_fraction: Some(0.1), ..Default::default() };
        assert!(refused(traced).contains("istio.tracing"));
        let mut large = MeshSettings::default();
        large.background_services.services = 200;
        assert!(refused(large).contains("istio.background-services"));
    }
}
