//! A cluster as a place to run trials: `experiment`'s `Environment`. Namespaces are created by the first
//! deployment that needs them and are removed with the environment; everything else is removed with its
//! deployment.

use crate::Result;
use crate::check::{Needs, check, check_namespace};
use crate::cluster::{version, version_of_image};
use crate::connection::Connected;
use crate::deployment::{ClusterDeployment, RolledOut, roll_out};
use crate::finding::{CheckOutcome, Finding};
use crate::lists::list_objects;
use crate::objects;
use crate::plug::{self, MeshPlug};
use crate::quota::quantity;
use crate::settings::ClusterSettings;
use experiment::MeshKind;
use experiment::environment::deploy::{Deployment, Environment};
use experiment::environment::{ComponentsSettings, DeploymentSpec, EnvironmentError};
use mesh::kubernetes::object_ref::ObjectRef;
use results::{ClusterPlace, ComponentVersion, Host, Mode};
use serde_json::Value;
use std::collections::BTreeSet;

pub use crate::cluster::{Cluster, StopCheck};

impl Cluster {
    /// Findings on what these deployments lack: rights, quota, namespaces of their own. Writes nothing.
    pub fn check_before(&self, specs: &[&DeploymentSpec]) -> Result<Vec<Finding>> {
        let mut plugs: Vec<Box<dyn MeshPlug>> = Vec::new();
        let mut needs = Needs::default();
        let mut modes = BTreeSet::new();
        for spec in specs {
            let plug = plug::for_mode(spec.mesh, spec.mode, &self.settings)?;
            needs.add(spec, &objects::objects(spec, &self.settings, &*plug)?);
            if modes.insert(spec.mode.to_string()) {
                plugs.push(plug);
            }
        }
        let namespaces: BTreeSet<String> = specs
            .iter()
            .flat_map(|spec| spec.topology.namespaces())
            .map(|name| self.settings.namespace(name))
            .collect();
        let namespaces: Vec<String> = namespaces.into_iter().collect();
        Ok(check(&self.connected, &self.settings, &namespaces, &plugs, &needs))
    }

    /// Returns an error if a namespace belongs to someone else.
    fn claim_namespaces(&mut self, spec: &DeploymentSpec) -> Result<()> {
        for namespace in spec.topology.namespaces() {
            let name = self.settings.namespace(namespace);
            if self.namespaces.contains(&name) {
                continue;
            }
            let finding = check_namespace(&self.connected, &self.settings, &name);
            if finding.standing == CheckOutcome::Missing {
                return Err(finding.into_error(format!("use namespace {name}")));
            }
            if !self.settings.existing_namespaces {
                self.namespaces.insert(name);
            }
        }
        Ok(())
    }

    /// Writes the objects of a deployment and waits until every pod is ready, without connecting to
    /// generators.
    pub fn roll_out(&mut self, spec: &DeploymentSpec) -> Result<RolledOut> {
        let plug = plug::for_mode(spec.mesh, spec.mode, &self.settings)?;
        self.claim_namespaces(spec)?;
        roll_out(self, spec, &*plug)
    }

    /// The cluster, and what the run uses of it.
    fn place(&self) -> ClusterPlace {
        let ClusterSettings { image, revision, generator_nodes, reads_nodes, prometheus, .. } =
            &self.settings;
        // A user without the right to read it has no UID.
        let system = self.connected.api.get(&ObjectRef::new("v1", "Namespace", None, "kube-system"));
        let uid = system.ok().flatten().map(|namespace| text(&namespace["metadata"]["uid"]));
        ClusterPlace {
            uid: uid.filter(|uid| !uid.is_empty()),
            image: image.clone(),
            // Of the experiment, which an environment does not know.
            mesh: String::new(),
            revision: revision.clone(),
            generator_nodes: generator_nodes.as_ref().map(|(label, value)| format!("{label}={value}")),
            usage_source: match prometheus {
                Some(address) => address.to_string(),
                None if *reads_nodes => "kubelets".to_owned(),
                None => "none".to_owned(),
            },
        }
    }

    fn deploy_on(&mut self, spec: &DeploymentSpec, label: &str) -> Result<ClusterDeployment<'_>> {
        let plug = plug::for_mode(spec.mesh, spec.mode, &self.settings)?;
        self.claim_namespaces(spec)?;
        ClusterDeployment::bring_up(self, spec, plug, label)
    }
}

impl Environment for Cluster {
    /// The nodes, if they may be read. The first one represents all; every distinct kernel and kubelet is
    /// listed as a version.
    fn host(&self) -> Host {
        let nodes = list_objects(&self.connected.api, ("v1", "Node"), None, "").unwrap_or_default();
        let mut versions = vec![
            version("meshmeter", env!("CARGO_PKG_VERSION")),
            version("kubernetes", self.connected.version.trim_start_matches('v')),
        ];
        for node in &nodes {
            let info = &node["status"]["nodeInfo"];
            let parts = [
                ("kubelet", "kubeletVersion"),
                ("container-runtime", "containerRuntimeVersion"),
                ("linux", "kernelVersion"),
            ];
            for (name, field) in parts {
                let own = version(name, text(&info[field]).trim_start_matches('v'));
                if !versions.contains(&own) {
                    versions.push(own);
                }
            }
        }
        let first = nodes.first().cloned().unwrap_or_default();
        let info = &first["status"]["nodeInfo"];
        let cpus =
            nodes.iter().filter_map(|node| node["status"]["capacity"]["cpu"].as_str()?.parse::<usize>().ok());
        let memory =
            nodes.iter().filter_map(|node| Some(quantity(&node["status"]["capacity"]["memory"])? as u64));
        Host {
            cpu_model: match nodes.len() {
                0 => "nodes that this user may not read".to_owned(),
                1 => "1 Kubernetes node".to_owned(),
                several => format!("{several} Kubernetes nodes"),
            },
            cpus: cpus.sum(),
            threads_per_core: 1,
            memory_bytes: memory.sum(),
            kernel: text(&info["kernelVersion"]),
            distribution: text(&info["osImage"]),
            architecture: text(&info["architecture"]),
            cgroups: "kubelet".to_owned(),
            privileges: "cluster".to_owned(),
            versions,
            cluster: Some(self.place()),
            ..Host::default()
        }
    }

    fn versions_for(&self, spec: &DeploymentSpec) -> Vec<ComponentVersion> {
        let Ok(plug) = plug::for_mode(spec.mesh, spec.mode, &self.settings) else { return Vec::new() };
        let shared = plug.shared().into_iter().filter(|shared| shared.namespace.is_some());
        shared
            .filter_map(|shared| {
                let pods =
                    list_objects(&self.connected.api, ("v1", "Pod"), shared.namespace, &shared.selector)
                        .ok()?;
                let image = &pods.first()?["spec"]["containers"][0]["image"];
                Some(version_of_image(shared.name, image.as_str()?))
            })
            .collect()
    }

    fn check_mode(&self, mesh: MeshKind, mode: Mode, components: &ComponentsSettings) -> Result<()> {
        check_mode(&self.connected, &self.settings, (mesh, mode), components)
    }

    fn deploy(&mut self, spec: &DeploymentSpec, label: &str) -> Result<Box<dyn Deployment + '_>> {
        Ok(Box::new(self.deploy_on(spec, label)?))
    }
}

/// Returns an error if this cluster cannot run a mode, which says what is missing.
pub fn check_mode(
    cluster: &Connected,
    settings: &ClusterSettings,
    (mesh, mode): (MeshKind, Mode),
    components: &ComponentsSettings,
) -> Result<()> {
    if *components != ComponentsSettings::default() {
        let reason = "a cluster has the versions that are installed there";
        return Err(EnvironmentError::new("choose components", reason)
            .with_hint("leave `components` out, or run in the lab"));
    }
    let plug: Box<dyn MeshPlug> = plug::for_mode(mesh, mode, settings)?;
    plug.needs().iter().try_for_each(|need| need.check(&cluster.api).map(drop))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
