//! Pods of the mesh other than those of the workloads: its control plane, ztunnels of the nodes, waypoints of
//! the namespaces. Trials begin only once the proxies among them are ready and have their configuration for
//! the deployment.

use super::pod::{OpenProxy, RunningPod, open_proxy};
use super::written::Written;
use crate::Result;
use crate::cluster::Cluster;
use crate::lists::list_objects;
use crate::plug::{KnownPod, MeshPlug, SharedComponent, SharedProxy};
use crate::pods::PodState;
use crate::retry::{API_TIMEOUT, retry};
use crate::startup::Startup;
use experiment::environment::deploy::ComponentFailure;
use experiment::environment::{DeploymentSpec, EnvironmentError, error_chain};
use mesh::istio::propagation::{Awaited, wait_until_propagated};
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Time until ztunnels and waypoints are ready.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct SharedPods {
    pub pods: Vec<SharedPod>,
    /// Notes on unknown usage.
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub(super) struct SharedPod {
    /// Name of its component.
    pub name: String,
    pub component: SharedComponent,
    pub state: PodState,
    /// Its own containers first, then native sidecars.
    pub containers: Vec<String>,
    /// Absent if no call passes it.
    pub proxy: Option<OpenProxy>,
}

/// Finds these pods, and waits until the proxies among them are ready for the pods of the deployment.
pub(super) fn find_shared(
    cluster: &Cluster,
    spec: &DeploymentSpec,
    plug: &dyn MeshPlug,
    written: &Written,
    pods: &[Vec<RunningPod>],
) -> Result<SharedPods> {
    let all = pods.iter().enumerate();
    let all: Vec<(&PodState, bool)> =
        all.flat_map(|(id, pods)| pods.iter().map(move |pod| (&pod.state, spec.is_member(id)))).collect();
    let members = all.iter().filter(|(_, is_member)| *is_member);
    let nodes: BTreeSet<&str> = members.map(|(pod, _)| pod.node.as_str()).collect();
    let mut shared = wait_until_ready(cluster, plug, written, &nodes)?;
    for pod in &mut shared.pods {
        pod.open(&cluster.connected.api)?;
    }
    wait_until_configured(cluster, spec, plug, &shared, &all)?;
    Ok(shared)
}

fn wait_until_ready(
    cluster: &Cluster,
    plug: &dyn MeshPlug,
    written: &Written,
    nodes: &BTreeSet<&str>,
) -> Result<SharedPods> {
    let components = plug.shared();
    let startup = Startup::new(&written.api, &written.namespaces, &written.selector);
    let began = Instant::now();
    loop {
        cluster.check_not_stopped("wait for the mesh")?;
        let shared = find(&components, written, nodes)?;
        let Some(lacking) = lacking(&components, &shared, written, nodes)? else { return Ok(shared) };
        cluster.progress.report(&lacking);
        let pods: Vec<PodState> = retry(API_TIMEOUT, || written.pods())?.iter().map(PodState::read).collect();
        startup.check(&pods)?;
        if began.elapsed() > READY_TIMEOUT {
            return Err(EnvironmentError::new("wait for the mesh", lacking));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Finds the existing pods. If the user may not list those of a control plane, its usage is missing, and a
/// note says so.
fn find(components: &[SharedComponent], written: &Written, nodes: &BTreeSet<&str>) -> Result<SharedPods> {
    let mut found = SharedPods::default();
    for component in components {
        let pods = match list(component, written) {
            Ok(pods) => pods,
            Err(error) if component.proxy.is_none() => {
                let note = format!("usage of {} is not known: {}", component.name, error_chain(&error));
                found.notes.push(note);
                continue;
            }
            Err(error) => {
                return Err(
                    error.with_hint("`meshmeter cluster rbac --ambient` prints the rights that it takes")
                );
            }
        };
        let mut own: Vec<SharedPod> =
            pods.iter().filter_map(|pod| SharedPod::read(component, pod, nodes)).collect();
        found.notes.extend(note_on_none(component, &own));
        own.sort_by(|a, b| (&a.state.namespace, &a.state.node).cmp(&(&b.state.namespace, &b.state.node)));
        if own.len() > 1 {
            for (number, pod) in (1..).zip(&mut own) {
                pod.name = format!("{}-{number}", component.name);
            }
        }
        found.pods.extend(own);
    }
    Ok(found)
}

/// Note on a component without pods. Proxies get none, since the run waits for them.
fn note_on_none(component: &SharedComponent, own: &[SharedPod]) -> Option<String> {
    let SharedComponent { name, namespace, selector, is_per_node, proxy, .. } = component;
    let place = namespace.unwrap_or("the namespaces of the run");
    let nodes = if *is_per_node { ", on the nodes of the run's pods" } else { "" };
    (own.is_empty() && proxy.is_none())
        .then(|| format!("usage of {name} is not known: there are no pods with {selector} in {place}{nodes}"))
}

fn list(component: &SharedComponent, written: &Written) -> Result<Vec<Value>> {
    let list =
        |namespace: &str| list_objects(&written.api, ("v1", "Pod"), Some(namespace), &component.selector);
    match component.namespace {
        Some(namespace) => list(namespace),
        None => {
            let pods: Result<Vec<_>> = written.namespaces.iter().map(|namespace| list(namespace)).collect();
            Ok(pods?.into_iter().flatten().collect())
        }
    }
}

/// A description of the first component that is not ready; absent if all are.
fn lacking(
    components: &[SharedComponent],
    shared: &SharedPods,
    written: &Written,
    nodes: &BTreeSet<&str>,
) -> Result<Option<String>> {
    let is_ready = |proxy: SharedProxy, is_at: &dyn Fn(&PodState) -> bool| {
        let mut own = shared
            .pods
            .iter()
            .filter(|pod| pod.component.proxy == Some(proxy) && is_at(&pod.state))
            .peekable();
        own.peek().is_some() && own.all(|pod| pod.state.is_ready)
    };
    for component in components {
        match component.proxy {
            Some(proxy @ SharedProxy::Ztunnel) => {
                let without = nodes.iter().find(|node| !is_ready(proxy, &|pod| pod.node == **node));
                if let Some(node) = without {
                    return Ok(Some(format!("no ztunnel is ready on node {node}")));
                }
            }
            Some(proxy @ SharedProxy::Waypoint) => {
                for gateway in written.objects.iter().filter(|object| object.kind == "Gateway") {
                    if let Some(reason) = unprogrammed(&written.api, gateway)? {
                        return Ok(Some(format!("{gateway} is not programmed: {reason}")));
                    }
                    if !is_ready(proxy, &|pod| Some(&pod.namespace) == gateway.namespace.as_ref()) {
                        return Ok(Some(format!("the waypoint of {gateway} is not ready")));
                    }
                }
            }
            None => {}
        }
    }
    Ok(None)
}

/// Why a Gateway is not programmed; absent if it is.
fn unprogrammed(api: &ApiClient, gateway: &ObjectRef) -> Result<Option<String>> {
    let Some(object) = retry(API_TIMEOUT, || api.get(gateway))? else {
        return Ok(Some("it is gone".to_owned()));
    };
    Ok(unprogrammed_by(&object))
}

fn unprogrammed_by(gateway: &Value) -> Option<String> {
    let conditions = gateway["status"]["conditions"].as_array().into_iter().flatten();
    let Some(programmed) = conditions.into_iter().find(|condition| condition["type"] == "Programmed") else {
        return Some("no controller has taken it".to_owned());
    };
    let message = programmed["message"].as_str().unwrap_or("no message");
    (programmed["status"] != "True").then(|| message.to_owned())
}

/// Waits until ztunnels know the pods and Services of the deployment, and waypoints have their routes.
fn wait_until_configured(
    cluster: &Cluster,
    spec: &DeploymentSpec,
    plug: &dyn MeshPlug,
    shared: &SharedPods,
    pods: &[(&PodState, bool)],
) -> Result<()> {
    let context = cluster.context(spec);
    let pods = pods.iter().map(|(pod, is_member)| KnownPod {
        namespace: &pod.namespace,
        name: &pod.name,
        is_member: *is_member,
    });
    let pods: Vec<KnownPod<'_>> = pods.collect();
    let proxies = shared
        .pods
        .iter()
        .filter_map(|pod| Some((pod, pod.component.proxy?, pod.proxy.as_ref()?.source.admin()?)));
    let awaited = proxies.map(|(pod, proxy, admin)| {
        let expected = plug.expected(&context, proxy, &pod.state.namespace, &pods);
        Awaited::new(&pod.name, admin, expected)
    });
    let awaited: Vec<Awaited<'_>> = awaited.collect();
    if awaited.is_empty() {
        return Ok(());
    }
    cluster.progress.report("waiting until the proxies have their configuration");
    let check = || cluster.check_not_stopped("wait until the proxies have their configuration");
    wait_until_propagated(awaited, Instant::now(), check).map(drop)
}

/// Names of the containers that run as long as the pod does.
fn running_containers(spec: &Value) -> Vec<String> {
    let listed = |key: &str| spec[key].as_array().into_iter().flatten();
    let sidecars = listed("initContainers").filter(|container| container["restartPolicy"] == "Always");
    let names = listed("containers").chain(sidecars).filter_map(|container| container["name"].as_str());
    names.map(str::to_owned).collect()
}

impl SharedPod {
    /// Absent for a pod that is being deleted, and for one that serves a node without members.
    fn read(component: &SharedComponent, pod: &Value, nodes: &BTreeSet<&str>) -> Option<Self> {
        let state = PodState::read(pod);
        let is_elsewhere = component.is_per_node && !nodes.contains(state.node.as_str());
        if is_elsewhere || !pod["metadata"]["deletionTimestamp"].is_null() {
            return None;
        }
        Some(Self {
            name: component.name.to_owned(),
            component: component.clone(),
            state,
            containers: running_containers(&pod["spec"]),
            proxy: None,
        })
    }

    fn open(&mut self, api: &Arc<ApiClient>) -> Result<()> {
        let open = |proxy: SharedProxy| open_proxy(api, &self.name, &self.state, proxy.kind());
        self.proxy = self.component.proxy.map(open).transpose()?;
        Ok(())
    }

    pub fn is_ztunnel(&self) -> bool {
        self.component.proxy == Some(SharedProxy::Ztunnel)
    }

    pub fn is_proxy(&self) -> bool {
        self.component.proxy.is_some()
    }

    /// Failure of its pod since the deployment began; absent if the API does not respond.
    pub fn failure(&self, api: &ApiClient) -> Option<ComponentFailure> {
        let PodState { namespace, name, .. } = &self.state;
        let now = api.get(&ObjectRef::new("v1", "Pod", Some(namespace), name)).ok()?;
        let how = self.state.failure(now.as_ref())?;
        Some(ComponentFailure { component: self.name.clone(), how })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Role;
    use serde_json::json;

    fn component(proxy: Option<SharedProxy>) -> SharedComponent {
        SharedComponent {
            name: "ztunnel",
            role: Role::Proxy,
            namespace: None,
            selector: String::new(),
            is_per_node: proxy == Some(SharedProxy::Ztunnel),
            proxy,
        }
    }

    #[test]
    fn ztunnels_count_only_on_nodes_with_members() {
        let containers = json!([{"name": "istio-proxy"}]);
        let pod =
            json!({"metadata": {"name": "ztunnel-x"}, "spec": {"nodeName": "b", "containers": containers}});
        let read = |proxy, pod: &Value, node| {
            SharedPod::read(&component(proxy), pod, &[node].into()).map(|pod| pod.containers)
        };
        let ztunnel = Some(SharedProxy::Ztunnel);
        assert_eq!(read(ztunnel, &pod, "b").unwrap(), ["istio-proxy"]);
        assert_eq!(read(ztunnel, &pod, "a"), None);
        assert!(read(None, &pod, "a").is_some(), "a control plane may be anywhere");
        let mut going = pod;
        going["metadata"]["deletionTimestamp"] = json!("2026-11-23T08:00:00Z");
        assert_eq!(read(ztunnel, &going, "b"), None);
    }

    #[test]
    fn component_without_pods_has_note() {
        let istiod = SharedComponent {
            name: "istiod",
            namespace: Some("istio-system"),
            selector: "app=istiod,istio.io/rev=prod".to_owned(),
            ..component(None)
        };
        let note = "usage of istiod is not known: there are no pods with app=istiod,istio.io/rev=prod in istio-system";
        assert_eq!(note_on_none(&istiod, &[]).as_deref(), Some(note));
        let pod = SharedPod::read(&istiod, &json!({"metadata": {"name": "istiod-x"}}), &BTreeSet::new());
        assert_eq!(note_on_none(&istiod, &[pod.unwrap()]), None);
        assert_eq!(note_on_none(&component(Some(SharedProxy::Ztunnel)), &[]), None, "it is waited for");
    }

    #[test]
    fn native_sidecars_run_as_long_as_their_pod() {
        let spec = json!({
            "containers": [{"name": "destination"}, {"name": "policy"}],
            "initContainers": [{"name": "linkerd-init"}, {"name": "linkerd-proxy", "restartPolicy": "Always"}],
        });
        assert_eq!(running_containers(&spec), ["destination", "policy", "linkerd-proxy"]);
    }

    #[test]
    fn unprogrammed_gateway_reports_reason() {
        let status = |status: &str| {
            json!({"status": {"conditions": [{"type": "Accepted", "status": "True"},
                {"type": "Programmed", "status": status, "message": "no address yet"}]}})
        };
        assert_eq!(unprogrammed_by(&status("False")).as_deref(), Some("no address yet"));
        assert_eq!(unprogrammed_by(&status("True")), None);
        assert_eq!(unprogrammed_by(&json!({})).as_deref(), Some("no controller has taken it"));
    }
}
