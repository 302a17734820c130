//! Objects of a deployment in the API: those for settings and those for Services.

use super::Rollout;
use crate::Result;
use experiment::environment::EnvironmentError;
use experiment::topology::WorkloadId;
use mesh::dataplane::{MeshView as _, SERVICE_PORT, with_subject};
use mesh::istio::configz::wait_until_processed;
use mesh::istio::objects::{self, extra, waypoint};
use mesh::istio::token::TokenIssuer;
use mesh::kubernetes::workloads::{self as api, ServicePort};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

impl Rollout<'_> {
    pub fn services(&self) -> Vec<WorkloadId> {
        let workloads = self.topology().workloads.iter().enumerate();
        workloads.filter(|(_, workload)| workload.serves()).map(|(id, _)| id).collect()
    }

    /// Objects for the experiment's switches. Its own objects outside the mesh's namespaces are included
    /// once.
    pub fn settings_objects(&self) -> Vec<Value> {
        let (spec, mesh) = (self.context.spec, self.mesh());
        let keys = self.tokens.as_ref().map(TokenIssuer::public_keys);
        let mut objects = Vec::new();
        for (index, namespace) in mesh.namespaces.names().iter().enumerate() {
            objects.extend(objects::for_namespace(spec, namespace, mesh.wasm_module.as_deref()));
            let own = extra::objects(spec.istio.extra.as_ref(), namespace).into_iter();
            let is_here = |object: &Value| object["metadata"]["namespace"] == namespace.as_str();
            objects.extend(own.filter(|object| index == 0 || is_here(object)));
        }
        for id in self.services() {
            with_subject(self, id, |subject| {
                objects.extend(objects::for_service(spec, subject, keys.as_deref()));
            });
        }
        objects
    }

    pub fn service_objects(&self) -> Vec<Value> {
        let services = self.services().into_iter();
        let described = services.filter_map(|id| Some((id, self.pods.workloads[id].described.as_ref()?)));
        let objects = |(id, described): (WorkloadId, &api::Workload)| {
            let port = ServicePort::for_protocol(self.workload(id).protocol, SERVICE_PORT);
            let mut objects = described.service_objects(&[port]);
            if let Some((key, value)) = waypoint::service_label(self.mode.data_plane, self.is_member(id)) {
                objects[0]["metadata"]["labels"] = json!({key: value});
            }
            objects
        };
        described.flat_map(objects).collect()
    }

    /// Writes the settings' objects before proxies start, as in a cluster, and waits until istiod has
    /// processed them.
    pub fn write_settings(&mut self) -> Result<()> {
        let settings = self.settings_objects();
        let made = self.mesh_mut().namespaces.objects.apply(&settings)?;
        wait_until_processed(&self.mesh().control_plane.istiod(), &made, || self.check_goes_on())
    }

    /// Records the addresses that the API assigned to Services, and makes their names resolve for their
    /// callers.
    pub fn resolve_services(&mut self, made: &[Value]) -> Result<()> {
        let addresses = service_addresses(made);
        for id in self.services() {
            if self.workload(id).is_external() {
                continue;
            }
            let (name, namespace) = (self.workload(id).name.as_str(), self.namespace_index(id));
            let address = addresses.get(&(self.mesh_namespace(id), name)).copied().ok_or_else(|| {
                EnvironmentError::new(format!("find the address of Service {name}"), "it was given none")
            })?;
            self.pods.workloads[id].service_address = Some(address);
            let callers = self.calls_to(id).map(|call| self.namespace_index(call.from));
            let callers: BTreeSet<usize> = callers.chain([namespace]).collect();
            for caller in callers {
                self.mesh().namespaces.add_service_names((name, namespace), address, caller)?;
            }
        }
        Ok(())
    }
}

fn service_addresses(made: &[Value]) -> BTreeMap<(&str, &str), Ipv4Addr> {
    let address = |service: &'_ Value| service["spec"]["clusterIP"].as_str()?.parse().ok();
    let services = made.iter().filter(|object| object["kind"] == "Service");
    let named = services.filter_map(|service| {
        let metadata = &service["metadata"];
        Some(((metadata["namespace"].as_str()?, metadata["name"].as_str()?), address(service)?))
    });
    named.collect()
}
