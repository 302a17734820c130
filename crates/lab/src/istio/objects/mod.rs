//! The objects that an experiment's settings become: what is written to the API beside pods and their Services.
//!
//! Pure: settings and names in, objects out. [`of_settings`] is what every trial of a mesh gets; [`marks`] tell when they are in force; [`ingress`], [`egress`]
//! and [`waypoint`] are the objects of gateways; [`surroundings`] those of the other services, which are the same for
//! all trials. Objects are as Istio's own documentation shows them: a reader should recognise each.
//!
//! What this leaves out: pods, their accounts and Services, which whoever starts them describes, and the configuration
//! of the mesh itself, but for its [`telemetry::extension_providers`].

pub mod egress;
mod extension;
mod extra;
pub mod ingress;
pub mod marks;
mod policy;
pub mod surroundings;
pub mod telemetry;
pub mod traffic;
pub mod waypoint;

pub use extra::policies_of_ztunnels;
pub use policy::{IDENTITY_RULES, PATH_RULES, policy_names};

use experiment::Mode;
use experiment::environment::DeploymentSpec;
use serde_json::{Value, json};
use std::path::Path;

/// What the objects of a trial are about: its names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject<'a> {
    /// The namespace of the trial.
    pub namespace: &'a str,
    /// The Service that the generator requests. Its pods have the label `app` of the same name.
    pub service: &'a str,
    /// Its port.
    pub port: u16,
    /// The service account of whoever calls the service: of the client's pod, or of the gateway before the service.
    pub caller: &'a str,
    /// The path that the generator requests.
    pub path: &'a str,
    /// Where proxies find the WebAssembly module that they are to run; absent: they run none.
    pub wasm_module: Option<&'a Path>,
}

impl Subject<'_> {
    /// The whole name of the Service.
    #[must_use]
    pub fn host(&self) -> String {
        host(self.service, self.namespace)
    }
}

/// The whole name of a Service.
#[must_use]
pub fn host(service: &str, namespace: &str) -> String {
    format!("{service}.{namespace}.svc.cluster.local")
}

/// Everything that the settings of a trial ask for, in no order. `token_keys` are the keys (JWKS) that tokens are signed
/// with: needed exactly where the settings ask for tokens.
///
/// Mode `none` has no proxy that any of it could reach, and gets nothing but the experiment's own objects.
#[must_use]
pub fn of_settings(spec: &DeploymentSpec, subject: &Subject<'_>, token_keys: Option<&str>) -> Vec<Value> {
    let settings = &*spec.istio;
    let mut objects = Vec::new();
    if spec.mode != Mode::None {
        objects.push(policy::peer_authentication(subject.namespace, spec.proxy.mtls));
        objects.extend(policy::authorization(settings.authorization, spec.mode, subject, token_keys));
        objects.extend(telemetry::telemetry(
            subject.namespace,
            spec.proxy.access_log,
            settings.tracing_fraction,
            spec.mode,
        ));
        objects.extend(extension::extensions(settings, spec.mode, subject));
        objects.extend(traffic::http2_upgrade(settings.http2_upgrade, subject));
        objects.extend(traffic::sidecar_scope(settings.sidecar_scope, subject.namespace));
        if spec.mode != Mode::Ingress {
            // The gateway's own route has them there.
            objects.extend(traffic::virtual_service(settings, subject));
        }
    }
    objects.extend(extra::objects(settings.extra.as_ref(), subject.namespace));
    objects
}

/// An object with a name in a namespace.
fn object(api_version: &str, kind: &str, (namespace, name): (&str, &str), spec: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

/// Makes an object speak of the proxy that reads a mode's requests before the service: the waypoint, or those beside
/// the pods of the service.
fn attach_to_service(spec: &mut Value, mode: Mode, service: &str) {
    if mode == Mode::AmbientWaypoint {
        spec["targetRefs"] = waypoint::target();
    } else {
        spec["selector"] = json!({"matchLabels": {"app": service}});
    }
}
