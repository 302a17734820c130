//! Objects generated from an experiment's settings, as in Istio's documentation. Pure: settings and names in,
//! objects out.
//! Every deployment of a mesh gets [`for_namespace`] and [`for_service`]; [`extra`] has the experiment's own
//! objects. Elsewhere: pods, their accounts and Services ([`crate::kubernetes::workloads`]), and the
//! configuration of the mesh itself, except for its [`telemetry::extension_providers`].

pub mod background;
pub mod egress;
pub mod estate;
mod extension;
pub mod extra;
pub mod filters;
pub mod ingress;
pub mod policy;
pub mod subject;
pub mod telemetry;
pub mod traffic;
pub mod waypoint;

use self::subject::Subject;
use experiment::environment::DeploymentSpec;
use results::Mode;
use serde_json::Value;
use std::path::Path;

/// Objects of a namespace in the mesh, in any order. Its proxies find their module at `wasm_module`. Mode
/// `none` gets no objects, since it has no proxy that could use them.
pub fn for_namespace(spec: &DeploymentSpec, namespace: &str, wasm_module: Option<&Path>) -> Vec<Value> {
    if spec.mode == Mode::None {
        return Vec::new();
    }
    let mut objects = vec![policy::peer_authentication(namespace, spec.proxy.mtls)];
    objects.extend(telemetry::telemetry(spec, namespace));
    objects.extend(extension::extensions(spec, namespace, wasm_module));
    objects.extend(traffic::sidecar_scope(spec.istio.sidecar_scope, namespace));
    objects
}

/// Objects of a Service in the mesh, in any order. `token_keys` is the JWKS that verifies tokens; it is
/// needed exactly if the settings require tokens. Mode `none` gets no objects.
pub fn for_service(spec: &DeploymentSpec, subject: &Subject<'_>, token_keys: Option<&str>) -> Vec<Value> {
    if spec.mode == Mode::None {
        return Vec::new();
    }
    let mut objects = policy::authorization(spec, subject, token_keys);
    objects.extend(traffic::http2_upgrade(spec.istio.http2_upgrade, subject));
    let is_behind_gateway = subject.callers.iter().all(|caller| caller.name == ingress::NAME);
    if spec.mode != Mode::Ingress || !is_behind_gateway {
        // The gateway's own route sets timeout and retries.
        objects.extend(traffic::virtual_service(&spec.istio, subject));
    }
    objects
}
