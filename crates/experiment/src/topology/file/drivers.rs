//! Reads drivers and the clients that they run in.

use super::dialect::Dialect;
use super::keys;
use super::limits::MAX_DRIVERS;
use super::links::check_endpoint;
use super::names::{Scope, check_name, check_namespace};
use super::reader::{Head, Reader, maps_of, resources, section_field, switch};
use crate::diagnostic::{ExperimentError, Place};
use crate::keys::names;
use crate::protocol::Protocol;
use crate::topology::script::{DEFAULT_ENDPOINT, ScriptedService};
use crate::topology::{DriverPlacement, PAIR_CLIENT, PAIR_DRIVER, Resources, Runs, Workload, WorkloadId};
use crate::yaml::section::{Field, Section};
use results::units::shortened;
use std::collections::{HashMap, HashSet};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const DRIVER_KEYS: [&str; keys::DRIVER.len()] = names(&keys::DRIVER);
const CLIENT_KEYS: [&str; keys::CLIENT.len()] = names(&keys::CLIENT);

impl<'a> Reader<'a> {
    /// Reads drivers and clients. If there are no drivers, adds one per entry point, or one at the first
    /// service that is not called by others. Returns the targets.
    pub(super) fn drivers(&mut self, root: &Section<'a>) -> Result<Vec<WorkloadId>> {
        let clients_field = section_field(root, self.dialect, "clients")?;
        let clients_given = clients_field.is_some();
        let clients = self.heads(clients_field, &CLIENT_KEYS, None)?;
        let drivers = match section_field(root, self.dialect, "drivers")? {
            Some(field) => self.given_drivers(&field)?,
            None => self.entry_drivers(root)?,
        };
        let mut names = HashSet::new();
        for driver in &drivers {
            let client = match driver.client.split_once('/') {
                Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
                None => (self.topology.workloads[driver.target].namespace.clone(), driver.client.clone()),
            };
            let at = self.client(&client, driver, &clients, clients_given)?;
            let qualified = match driver.name.split_once('/') {
                None => (client.0.clone(), driver.name.clone()),
                Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
            };
            if !names.insert(qualified) {
                return Err(driver
                    .place
                    .error(format!("there are two drivers `{}`", driver.name), "expected each name once"));
            }
            self.topology.drivers.push(DriverPlacement {
                name: driver.name.clone(),
                at,
                target: driver.target,
                endpoint: driver.endpoint.clone(),
            });
        }
        self.qualify_drivers();
        // Adds clients even if they have no driver.
        for head in &clients {
            let namespaces = match &head.namespace {
                Some(namespace) => vec![namespace.clone()],
                None if self.names.get("", &head.name).is_some() || self.has_client(&head.name) => Vec::new(),
                None => vec![self.topology.workloads[0].namespace.clone()],
            };
            for namespace in namespaces {
                if !self.is_client(&namespace, &head.name) {
                    self.add_client(head, &namespace, Protocol::default())?;
                }
            }
        }
        Ok(drivers.iter().map(|driver| driver.target).collect())
    }

    /// Drivers need unique names: those with the same name in several namespaces get a namespace prefix, as
    /// in copies.
    fn qualify_drivers(&mut self) {
        let topology = &mut self.topology;
        let mut counts: HashMap<String, usize> = HashMap::new();
        for driver in &topology.drivers {
            *counts.entry(driver.name.clone()).or_default() += 1;
        }
        for driver in topology.drivers.iter_mut().filter(|driver| counts[&driver.name] > 1) {
            driver.name = format!("{}/{}", topology.workloads[driver.at].namespace, driver.name);
        }
    }

    fn has_client(&self, name: &str) -> bool {
        let is_client = |workload: &Workload| workload.name == name && !workload.serves();
        self.topology.workloads.iter().any(is_client)
    }

    fn is_client(&self, namespace: &str, name: &str) -> bool {
        self.names.get(namespace, name).is_some_and(|id| !self.topology.workloads[id].serves())
    }

    /// Client of a driver, added if it does not exist yet.
    fn client(
        &mut self,
        (namespace, name): &(String, String),
        driver: &Driver<'a>,
        clients: &[Head<'a>],
        clients_given: bool,
    ) -> Result<WorkloadId> {
        if let Some(id) = self.names.get(namespace, name) {
            if self.topology.workloads[id].serves() {
                return Err(driver.client_place.error(
                    format!("`{name}` is a service"),
                    "expected a client: drivers do not run in services",
                ));
            }
            return Ok(id);
        }
        let protocol = self.topology.workloads[driver.target].protocol;
        let here = |head: &&Head<'_>| {
            head.name == *name && head.namespace.as_ref().is_none_or(|own| own == namespace)
        };
        if let Some(head) = clients.iter().find(here) {
            return self.add_client(head, namespace, protocol);
        }
        if clients_given {
            return Err(driver.client_place.error(
                format!("`{}` is not a client of this topology", shortened(name)),
                "expected one of `clients`",
            ));
        }
        let id = self.topology.workloads.len();
        check_name(name, driver.client_place)?;
        check_client_namespace(namespace, driver.client_place)?;
        self.names.add(namespace, name, id);
        self.topology.workloads.push(client(name, namespace, protocol));
        Ok(id)
    }

    fn add_client(&mut self, head: &Head<'a>, namespace: &str, protocol: Protocol) -> Result<WorkloadId> {
        let id = self.topology.workloads.len();
        self.add_name(head, namespace, id)?;
        let mut client = client(&head.name, namespace, protocol);
        client.in_mesh = head.section.field("in-mesh")?.map_or(Ok(true), |field| switch(&field))?;
        if let Some(field) = head.section.field("resources")? {
            client.resources = resources(&field)?;
        }
        self.topology.workloads.push(client);
        Ok(id)
    }

    fn given_drivers(&self, field: &Field<'a>) -> Result<Vec<Driver<'a>>> {
        let mut drivers = Vec::new();
        for node in maps_of(field)? {
            let section = Section::new(node, &field.path, &DRIVER_KEYS, node.place.clone())?;
            let name = section.field("name")?;
            let target = section.required("target", "target: web")?;
            let endpoint = section.field("endpoint")?;
            let client = section.field("in")?;
            let expected = "expected the service that the driver offers load to";
            let id = self.names.find(target.text()?, Scope::Anywhere(""), target.place(), expected)?;
            let driver = Driver {
                name: name.as_ref().map_or(Ok(PAIR_DRIVER.to_owned()), |field| driver_name(field))?,
                place: name.map_or(&node.place, |field| field.place()),
                client: client.as_ref().map_or(Ok(PAIR_CLIENT), Field::text)?.to_owned(),
                client_place: client.map_or(&node.place, |field| field.place()),
                target: id,
                endpoint: endpoint.as_ref().map_or(Ok(DEFAULT_ENDPOINT), Field::text)?.to_owned(),
            };
            let endpoint_place = endpoint.map_or(target.place(), |field| field.place());
            check_endpoint(&self.topology.workloads[id], &driver.endpoint, target.place(), endpoint_place)?;
            drivers.push(driver);
        }
        if drivers.is_empty() || drivers.len() > MAX_DRIVERS {
            return Err(field.place().error(
                format!("there are {} drivers", drivers.len()),
                format!("expected 1 to {MAX_DRIVERS}, such as `- {{name: generator, target: web}}`"),
            ));
        }
        Ok(drivers)
    }

    /// One driver per entry point, or one at the first service that is not called by others.
    fn entry_drivers(&self, root: &Section<'a>) -> Result<Vec<Driver<'a>>> {
        let services = root.required("services", "services: [{name: web}]")?;
        let mut entries = Vec::new();
        for (id, node) in maps_of(&services)?.iter().enumerate() {
            let entry = node.entries().iter().find(|entry| entry.key == "isEntrypoint");
            if let Some(entry) = entry.filter(|_| self.dialect == Dialect::Isotope)
                && switch(&Field::new("isEntrypoint", &entry.key_place, &entry.node))?
            {
                entries.push(id);
            }
        }
        if entries.is_empty() {
            let called: HashSet<WorkloadId> = self.links.calls.iter().map(|call| call.to).collect();
            let is_root =
                |id: &WorkloadId| !called.contains(id) && self.topology.workloads[*id].script().is_some();
            entries.extend((0..self.topology.workloads.len()).find(is_root));
        }
        let many = entries.len() > 1;
        let driver = |target: WorkloadId| {
            let workload = &self.topology.workloads[target];
            let endpoint = workload.script().and_then(|service| service.endpoints.first());
            Driver {
                name: if many { format!("{PAIR_DRIVER}-{}", workload.name) } else { PAIR_DRIVER.to_owned() },
                place: services.place(),
                client: PAIR_CLIENT.to_owned(),
                client_place: services.place(),
                target,
                endpoint: endpoint.map_or_else(|| DEFAULT_ENDPOINT.to_owned(), |one| one.path.clone()),
            }
        };
        if entries.is_empty() {
            return Err(services.key_place.error(
                "every service is called by another",
                "expected `drivers`, which say where load begins",
            ));
        }
        Ok(entries.into_iter().map(driver).collect())
    }

    /// Notes services that do not receive requests from any driver.
    pub(super) fn note_unreached(&mut self, targets: &[WorkloadId]) {
        const MAX_SHOWN: usize = 5;
        let mut reached: HashSet<WorkloadId> = targets.iter().copied().collect();
        let mut next: Vec<WorkloadId> = targets.to_vec();
        while let Some(id) = next.pop() {
            let callees = self.topology.workloads[id].script().map(ScriptedService::callees);
            next.extend(callees.into_iter().flatten().filter(|callee| reached.insert(*callee)));
        }
        let workloads = self.topology.workloads.iter().enumerate();
        let unreached: Vec<String> = workloads
            .filter(|(id, workload)| workload.serves() && !reached.contains(id))
            .map(|(_, workload)| workload.qualified_name())
            .collect();
        if !unreached.is_empty() {
            let more = unreached.len().saturating_sub(MAX_SHOWN);
            let mut shown = unreached[..unreached.len().min(MAX_SHOWN)].join(", ");
            if more > 0 {
                shown.push_str(&format!(" and {more} more"));
            }
            self.notes.insert(format!("no driver reaches {shown}"));
        }
    }
}

/// Driver as written in the file.
struct Driver<'a> {
    name: String,
    place: &'a Place,
    client: String,
    client_place: &'a Place,
    target: WorkloadId,
    endpoint: String,
}

fn client(name: &str, namespace: &str, protocol: Protocol) -> Workload {
    Workload {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        replicas: 1,
        protocol,
        resources: Resources::default(),
        runs: Runs::Drivers,
        in_mesh: true,
    }
}

fn check_client_namespace(namespace: &str, place: &Place) -> Result<()> {
    if namespace.is_empty() { Ok(()) } else { check_namespace(namespace, place).map(drop) }
}

/// Driver name: a label, with a namespace prefix if there are several namespaces.
fn driver_name(field: &Field<'_>) -> Result<String> {
    let text = field.text()?;
    match text.split_once('/') {
        Some((namespace, name)) => {
            check_namespace(namespace, field.place())?;
            check_name(name, field.place())?;
        }
        None => drop(check_name(text, field.place())?),
    }
    Ok(text.to_owned())
}
