//! Meshes as plugs: the labels that put pods into the mesh, its prerequisites, which containers are its cost,
//! and what proves the path. A mesh is a file here and a line in [`of`].

mod cilium;
mod istio;
mod istio_ambient;
mod istio_sidecar;
mod linkerd;
mod none;

pub(crate) use self::istio::{ENVOY, proxy_config};

use crate::Result;
use crate::settings::ClusterSettings;
use experiment::MeshKind;
use experiment::dataplane::{DataPlane, Entry, Exit};
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::topology::{Call, WorkloadId};
use mesh::admin::Admin;
use mesh::dataplane::MeshView;
use mesh::istio::propagation::Expected;
use mesh::kubernetes::client::{ApiClient, RESPONSE_TIMEOUT};
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::request::ApiError;
use mesh::proof::Evidence;
use mesh::proxy::CounterSource;
use results::{Mode, Role};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

pub type Labels = BTreeMap<String, String>;

/// Part of a deployment that a mesh adds.
pub trait MeshPlug: fmt::Debug + Send + Sync {
    /// Labels of namespaces that the run creates.
    fn namespace_labels(&self) -> Labels {
        Labels::new()
    }

    /// Labels of the pods in the mesh. They also work in namespaces that the run may not label.
    fn pod_labels(&self) -> Labels {
        Labels::new()
    }

    /// Labels of the Services of workloads in the mesh, or outside it. They also apply in namespaces that the run may not label.
    fn service_labels(&self, _is_member: bool) -> Labels {
        Labels::new()
    }

    /// Annotations of the pods of a workload in the mesh.
    fn pod_annotations(&self, _context: &PlugContext<'_>, _workload: WorkloadId) -> Labels {
        Labels::new()
    }

    /// Objects for the settings.
    fn objects(&self, _context: &PlugContext<'_>) -> Vec<Value> {
        Vec::new()
    }

    /// Rejects settings that need more than labels and objects and are missing in a cluster's mesh. The error
    /// names one.
    fn check_settings(&self, _context: &PlugContext<'_>) -> Result<()> {
        Ok(())
    }

    /// The proxy in each pod of the mesh, which is its cost.
    fn pod_proxy(&self) -> Option<ProxyKind> {
        None
    }

    /// Pods elsewhere that are part of its cost.
    fn shared(&self) -> Vec<SharedComponent> {
        Vec::new()
    }

    /// URL on the pod's loopback whose POST ends the proxy next to a worker, if it is not a native sidecar.
    fn end_of_proxy(&self) -> Option<&'static str> {
        None
    }

    /// Objects that must be installed.
    fn needs(&self) -> Vec<Need>;

    /// Counters of the proxies of a call, from caller to callee.
    fn evidence(&self, _context: &PlugContext<'_>, _call: Call) -> Vec<(Stands, Evidence)> {
        Vec::new()
    }

    /// Notes of every trial with this mesh.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Configuration that a shared proxy must show before a trial begins, in the namespace of its pod.
    fn expected(
        &self,
        _context: &PlugContext<'_>,
        _proxy: SharedProxy,
        _namespace: &str,
        _pods: &[KnownPod<'_>],
    ) -> Vec<Expected> {
        Vec::new()
    }
}

/// A kind of proxy.
#[derive(Clone, Copy, Debug)]
pub struct ProxyKind {
    pub container: &'static str,
    /// Ports that are read, that of the counters last.
    pub ports: &'static [u16],
    /// Sources of counters behind these ports, given in the same order.
    pub source: fn(&[Admin]) -> Box<dyn CounterSource>,
}

/// Location of a proxy of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stands {
    /// In each pod of a workload.
    InPodsOf(WorkloadId),
    /// On the nodes of a workload's pods, at this end of the call: "client" or "server".
    OnNodesOf(WorkloadId, &'static str),
    /// In the pods of a namespace's waypoint.
    WaypointOf(String),
}

/// A pod of the run, in the mesh or outside it.
#[derive(Clone, Copy, Debug)]
pub struct KnownPod<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub is_member: bool,
}

/// A deployment as plugs see it.
#[derive(Clone, Copy, Debug)]
pub struct PlugContext<'a> {
    pub spec: &'a DeploymentSpec,
    pub settings: &'a ClusterSettings,
}

/// Pods of a mesh that may also serve others than the experiment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SharedComponent {
    /// The component's name, followed by a number if there are several pods.
    pub name: &'static str,
    pub role: Role,
    /// If absent: the namespaces of the run.
    pub namespace: Option<&'static str>,
    pub selector: String,
    /// True if each pod serves the pods of its node: pods on nodes without members of the mesh do not count.
    pub is_per_node: bool,
    /// Absent if no call passes it.
    pub proxy: Option<SharedProxy>,
}

/// A proxy of a mesh that is outside the pods that it serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SharedProxy {
    /// Serves all pods of its node. Only those on nodes with members of the mesh count.
    Ztunnel,
    /// Serves a namespace of the run.
    Waypoint,
}

impl SharedProxy {
    pub fn kind(self) -> ProxyKind {
        match self {
            Self::Ztunnel => istio_ambient::ZTUNNEL,
            Self::Waypoint => ENVOY,
        }
    }
}

/// An object without which a mesh does not work.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Need {
    pub object: ObjectRef,
    /// Meaning of its absence.
    pub otherwise: &'static str,
    pub hint: &'static str,
}

impl MeshView for PlugContext<'_> {
    fn spec(&self) -> &DeploymentSpec {
        self.spec
    }

    fn namespace(&self, in_topology: &str) -> String {
        self.settings.namespace(in_topology)
    }
}

impl Need {
    /// True if the object is known to exist. False if the user may not read it: then only the pods' start
    /// shows it. The error says what is missing.
    pub fn check(&self, api: &ApiClient) -> Result<bool> {
        match api.send(RESPONSE_TIMEOUT, api.get_request(&self.object)?) {
            Ok(found) if !found.is_empty() => Ok(true),
            Err(ApiError { code: Some(403), .. }) => Ok(false),
            Err(error) => Err(error.into()),
            Ok(_) => Err(EnvironmentError::new(
                "look for the mesh",
                format!("{}: there is no {}", self.otherwise, self.object),
            )
            .with_hint(self.hint)),
        }
    }
}

/// Looks up Istio's webhook, if there is one and this user may read it.
pub fn look_up(settings: &mut ClusterSettings, api: &ApiClient) {
    settings.injector = istio::find_injector(api, settings.revision.as_deref());
}

/// The plug of a mode.
pub fn for_mode(mesh: MeshKind, mode: Mode, settings: &ClusterSettings) -> Result<Box<dyn MeshPlug>> {
    let refused = |reason: &str, hint: &str| {
        Err(EnvironmentError::new(format!("run mode {mode}"), reason).with_hint(hint))
    };
    if !mesh.makes(mode) {
        let made = Mode::ALL.into_iter().filter(|mode| mesh.makes(*mode)).map(Mode::name);
        let hint = format!("its modes: {}", made.collect::<Vec<_>>().join(", "));
        return refused(&format!("mesh {mesh} has no such mode"), &hint);
    }
    let parts = mesh.parts(mode);
    let in_lab = "the lab runs it: leave out `--on cluster`";
    if !mode.has_requests() {
        return refused("its trials have no requests: fleets and changes run only in the lab", in_lab);
    }
    if parts.entry == Entry::Gateway {
        return refused("its gateway uses static files, which only the lab supports", in_lab);
    }
    if parts.exit != Exit::None {
        return refused("paths out of the mesh are not deployed on clusters yet", in_lab);
    }
    let settings = settings.clone();
    match parts.data_plane {
        DataPlane::None => Ok(Box::new(none::NoMesh)),
        DataPlane::StaticEnvoy => refused(
            "`mesh: envoy` uses static files, which only the lab supports",
            "`mesh: istio` runs the mesh that is installed in the cluster",
        ),
        DataPlane::Sidecar => Ok(Box::new(istio_sidecar::Sidecars { settings })),
        data_plane @ (DataPlane::Ztunnel | DataPlane::ZtunnelWaypoint) => {
            Ok(Box::new(istio_ambient::Ambient { settings, data_plane }))
        }
        DataPlane::Linkerd => Ok(Box::new(linkerd::Linkerd)),
        DataPlane::Cilium => Ok(Box::new(cilium::Cilium)),
    }
}

fn labels<const N: usize>(entries: [(&str, &str); N]) -> Labels {
    crate::manifests::map(entries)
}

/// Excludes Istio's sidecar from a pod, even in a namespace with injection.
const WITHOUT_SIDECAR: (&str, &str) = ("sidecar.istio.io/inject", "false");

/// Labels that keep a pod out of every mesh.
pub(crate) fn outside_of_meshes() -> Labels {
    labels([WITHOUT_SIDECAR, ("istio.io/dataplane-mode", "none")])
}

/// Annotations that keep a pod out of every mesh.
pub(crate) fn annotated_outside_of_meshes() -> Labels {
    labels([("linkerd.io/inject", "disabled")])
}
