//! From the tree to a topology: services, databases, drivers and clients.

use super::dialect::Dialect;
use super::links::{Links, check_endpoint};
use super::names::{DEFAULT_NAMESPACE, Names, Scope, check_name, check_namespace};
use super::steps::{Scripts, size};
use super::{MAX_PODS, MAX_REPLICAS, MAX_WORKLOADS, TopologyFile};
use crate::diagnostic::{ExperimentError, Place};
use crate::file::document::{Node, Value};
use crate::file::section::{Field, Section};
use crate::protocol::Protocol;
use crate::topology::distribution::Distribution;
use crate::topology::script::{DEFAULT_ENDPOINT, Endpoint, ScriptedService};
use crate::topology::{
    DriverPlacement, PAIR_CLIENT, PAIR_DRIVER, Resources, Runs, Topology, Workload, WorkloadId,
};
use crate::units::{parse_cores, parse_fraction, parse_size, shortened};
use std::collections::{BTreeSet, HashSet};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const DATABASE_KEYS: [&str; 3] = ["name", "namespace", "resources"];
const DRIVER_KEYS: [&str; 4] = ["name", "in", "target", "endpoint"];
const CLIENT_KEYS: [&str; 4] = ["name", "namespace", "in-mesh", "resources"];
const ENDPOINT_KEYS: [&str; 3] = ["script", "response", "error-rate"];
const MAX_PATH_LENGTH: usize = 200;
/// Endpoints of a service.
const MAX_ENDPOINTS: usize = 1_000;
/// Drivers of a file.
const MAX_DRIVERS: usize = 1_000;

/// Reads and checks a tree. `default_name` names a topology that has no name of its own.
pub(super) fn read(root: &Node, default_name: &str) -> Result<TopologyFile> {
    let dialect = Dialect::of(root);
    read_as(dialect, root, default_name).map_err(|error| {
        if dialect == Dialect::Isotope && error.hint.is_none() {
            error.with_hint(
                "keys such as `isEntrypoint` make this a file in isotope's format, which has isotope's keys alone",
            )
        } else {
            error
        }
    })
}

fn read_as(dialect: Dialect, root: &Node, default_name: &str) -> Result<TopologyFile> {
    let section = Section::of(root, "topology", dialect.root_keys(), root.place.clone())?;
    let name = match (dialect, section_field(&section, dialect, "name")?) {
        (Dialect::Native, Some(field)) => check_namespace(field.text()?, field.place())?,
        _ => default_name.to_owned(),
    };
    let mut reader = Reader {
        dialect,
        names: Names::default(),
        topology: Topology { name, ..Topology::default() },
        links: Links::default(),
        notes: BTreeSet::new(),
    };
    let defaults = reader.defaults(&section)?;
    reader.services(&section, &defaults)?;
    let entries = reader.drivers(&section)?;
    reader.links.check_expected(&reader.topology, &root.place)?;
    reader.note_unreached(&entries);
    let pods = reader.topology.pods();
    if pods > MAX_PODS {
        return Err(root
            .place
            .error(format!("the topology has {pods} pods"), format!("expected at most {MAX_PODS}")));
    }
    Ok(TopologyFile { topology: reader.topology.arranged(), notes: reader.notes.into_iter().collect() })
}

/// A key that only Meshmeter's own files have.
fn section_field<'a>(
    section: &Section<'a>,
    dialect: Dialect,
    key: &'static str,
) -> Result<Option<Field<'a>>> {
    if dialect == Dialect::Native { section.field(key) } else { Ok(None) }
}

/// What a service has where it does not say.
struct Defaults<'a> {
    namespace: Option<String>,
    protocol: Protocol,
    replicas: usize,
    in_mesh: bool,
    resources: Resources,
    request_bytes: Distribution,
    response_bytes: Distribution,
    error_fraction: f64,
    script: Option<Field<'a>>,
}

/// A workload's name and namespace, read before everything else of it.
struct Head<'a> {
    section: Section<'a>,
    name: String,
    namespace: Option<String>,
    name_place: &'a Place,
}

struct Reader<'a> {
    dialect: Dialect,
    names: Names,
    /// In the order of the file.
    topology: Topology,
    links: Links<'a>,
    notes: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    fn defaults(&mut self, root: &Section<'a>) -> Result<Defaults<'a>> {
        let dialect = self.dialect;
        let mut field = root.field("defaults")?;
        if field.is_none() && dialect == Dialect::Isotope {
            field = root.field("default")?;
        }
        let section = field
            .map(|field| {
                Section::of(field.node, &field.path, dialect.default_keys(), field.key_place.clone())
            })
            .transpose()?;
        let given = |key: &'static str| match &section {
            Some(section) => section.field(dialect.key(key)),
            None => Ok(None),
        };
        if dialect == Dialect::Isotope && given("numRbacPolicies")?.is_some() {
            self.notes.insert("`numRbacPolicies` of services has no effect".to_owned());
        }
        let native = |key| if dialect == Dialect::Native { given(key) } else { Ok(None) };
        let endpoint = Endpoint::default();
        Ok(Defaults {
            namespace: native("namespace")?
                .map(|field| check_namespace(field.text()?, field.place()))
                .transpose()?,
            protocol: given("protocol")?
                .map_or(Ok(Protocol::default()), |field| protocol(&field, dialect))?,
            replicas: given("replicas")?.map_or(Ok(1), |field| field.whole(1..=MAX_REPLICAS))?,
            in_mesh: native("in-mesh")?.map_or(Ok(true), |field| switch(&field))?,
            resources: native("resources")?.map_or(Ok(Resources::default()), |field| resources(&field))?,
            request_bytes: given("request")?
                .map_or(Ok(Distribution::Fixed(0.0)), |field| size(&field, dialect))?,
            response_bytes: given("response")?
                .map_or(Ok(endpoint.response_bytes), |field| size(&field, dialect))?,
            error_fraction: given("error-rate")?
                .map_or(Ok(endpoint.error_fraction), |field| field.quantity(parse_fraction))?,
            script: given("script")?,
        })
    }

    /// The heads of a list of workloads.
    fn heads(
        &self,
        field: Option<Field<'a>>,
        keys: &[&'static str],
        defaults: Option<&Defaults<'a>>,
    ) -> Result<Vec<Head<'a>>> {
        let Some(field) = field else { return Ok(Vec::new()) };
        let mut heads = Vec::new();
        for node in maps_of(&field)? {
            let named = node.entries().iter().find(|entry| entry.key == "name");
            let path = match named.map(|entry| &entry.node.value) {
                Some(Value::Scalar(name)) => format!("{}.{}", field.path, shortened(name)),
                _ => field.path.clone(),
            };
            let section = Section::of(node, &path, keys, node.place.clone())?;
            let name = section.required("name", "name: web")?;
            let namespace = match section.field("namespace")? {
                Some(field) => Some(check_namespace(field.text()?, field.place())?),
                None => defaults.and_then(|defaults| defaults.namespace.clone()),
            };
            let name_place = name.place();
            heads.push(Head { name: check_name(name.text()?, name_place)?, namespace, name_place, section });
        }
        Ok(heads)
    }

    fn services(&mut self, root: &Section<'a>, defaults: &Defaults<'a>) -> Result<()> {
        let field = root.required("services", "services: [{name: web}]")?;
        let services_place = field.place();
        let mut services = self.heads(Some(field), self.dialect.service_keys(), Some(defaults))?;
        let databases = section_field(root, self.dialect, "databases")?;
        let mut databases = self.heads(databases, &DATABASE_KEYS, Some(defaults))?;
        if services.is_empty() || services.len() + databases.len() > MAX_WORKLOADS {
            return Err(services_place.error(
                format!("there are {} services and databases", services.len() + databases.len()),
                format!("expected 1 to {MAX_WORKLOADS}"),
            ));
        }
        let heads = || services.iter().chain(&databases);
        if heads().any(|head| head.namespace.is_some()) {
            for head in services.iter_mut().chain(&mut databases) {
                head.namespace.get_or_insert_with(|| DEFAULT_NAMESPACE.to_owned());
            }
        }
        for (id, head) in services.iter().chain(&databases).enumerate() {
            self.add_name(head, head.namespace.as_deref().unwrap_or_default(), id)?;
        }
        for head in &services {
            let workload = self.service(head, defaults)?;
            self.topology.workloads.push(workload);
        }
        for head in &databases {
            self.topology.workloads.push(Workload {
                name: head.name.clone(),
                namespace: head.namespace.clone().unwrap_or_default(),
                replicas: 1,
                protocol: Protocol::Tcp,
                resources: head
                    .section
                    .field("resources")?
                    .map_or(Ok(Resources::default()), |field| resources(&field))?,
                runs: Runs::Database,
                in_mesh: false,
            });
        }
        self.links.check(&self.topology.workloads)
    }

    fn add_name(&mut self, head: &Head<'_>, namespace: &str, id: WorkloadId) -> Result<()> {
        if self.names.add(namespace, &head.name, id) {
            return Ok(());
        }
        let where_ =
            if namespace.is_empty() { String::new() } else { format!(" in namespace `{namespace}`") };
        Err(head.name_place.error(
            format!("there are two `{}`{where_}", head.name),
            "expected each name of a service, a database or a client once in its namespace",
        ))
    }

    fn service(&mut self, head: &Head<'a>, defaults: &Defaults<'a>) -> Result<Workload> {
        let (section, dialect) = (&head.section, self.dialect);
        let given = |key: &'static str| section.field(dialect.key(key));
        let namespace = head.namespace.clone().unwrap_or_default();
        let protocol = given("protocol")?.map_or(Ok(defaults.protocol), |field| protocol(&field, dialect))?;
        let endpoints = self.endpoints(section, protocol, &namespace, defaults)?;
        if dialect == Dialect::Isotope {
            for key in ["cluster", "labels", "numRbacPolicies", "computeUsage", "memoryUsage"] {
                if section.field(key)?.is_some() {
                    self.notes.insert(format!("`{key}` of services has no effect"));
                }
            }
        }
        Ok(Workload {
            name: head.name.clone(),
            namespace,
            replicas: given("replicas")?
                .map_or(Ok(defaults.replicas), |field| field.whole(1..=MAX_REPLICAS))?,
            protocol,
            resources: section_field(section, dialect, "resources")?
                .map_or(Ok(defaults.resources), |field| resources(&field))?,
            runs: Runs::Scripted(ScriptedService { endpoints }),
            in_mesh: section_field(section, dialect, "in-mesh")?
                .map_or(Ok(defaults.in_mesh), |field| switch(&field))?,
        })
    }

    /// The endpoints of a service, or the one that it is itself.
    fn endpoints(
        &mut self,
        service: &Section<'a>,
        protocol: Protocol,
        namespace: &str,
        defaults: &Defaults<'a>,
    ) -> Result<Vec<Endpoint>> {
        let Some(field) = section_field(service, self.dialect, "endpoints")? else {
            return Ok(vec![self.endpoint(service, DEFAULT_ENDPOINT, 0, protocol, namespace, defaults)?]);
        };
        for key in ENDPOINT_KEYS {
            if let Some(other) = service.field(key)? {
                return Err(other.key_place.error(
                    format!("`{}` contradicts `endpoints`", other.path),
                    "expected below an endpoint: it is of the endpoint `/` of a service without `endpoints`",
                ));
            }
        }
        let Value::Map(entries) = &field.node.value else {
            return Err(field.place().error(
                format!("`{}` is not a map", field.path),
                "expected a path such as `/:` with the keys of an endpoint",
            ));
        };
        if entries.is_empty() {
            return Err(field
                .place()
                .error(format!("`{}` is empty", field.path), "expected at least one endpoint"));
        }
        if entries.len() > MAX_ENDPOINTS {
            return Err(field.place().error(
                format!("`{}` has {} endpoints", field.path, entries.len()),
                format!("expected at most {MAX_ENDPOINTS}"),
            ));
        }
        let mut endpoints = Vec::new();
        for (position, entry) in entries.iter().enumerate() {
            check_path(&entry.key, protocol, &entry.key_place)?;
            let path = format!("{}.{}", field.path, entry.key);
            let section = Section::of(&entry.node, &path, &ENDPOINT_KEYS, entry.key_place.clone())?;
            endpoints.push(self.endpoint(&section, &entry.key, position, protocol, namespace, defaults)?);
        }
        Ok(endpoints)
    }

    fn endpoint(
        &mut self,
        section: &Section<'a>,
        path: &str,
        position: usize,
        protocol: Protocol,
        namespace: &str,
        defaults: &Defaults<'a>,
    ) -> Result<Endpoint> {
        let dialect = self.dialect;
        let given = |key: &'static str| section.field(dialect.key(key));
        let response = given("response")?;
        let response_bytes =
            response.as_ref().map_or(Ok(defaults.response_bytes), |field| size(field, dialect))?;
        if protocol == Protocol::Tcp && !response_bytes.fixed().is_some_and(|bytes| bytes >= 1.0) {
            let expected =
                "expected a fixed size of 1 byte or more: without it nothing ends a response over TCP";
            return Err(match response {
                Some(field) => {
                    field.place().error("this response cannot be told from the next over TCP", expected)
                }
                None => section.missing("`response`", "response: 1KiB").with_hint(expected),
            });
        }
        let script = given("script")?;
        let mut scripts = Scripts {
            dialect,
            names: &self.names,
            request_bytes: defaults.request_bytes,
            service: self.topology.workloads.len(),
            namespace,
            endpoint: position,
            links: &mut self.links,
            notes: &mut self.notes,
        };
        Ok(Endpoint {
            path: path.to_owned(),
            steps: match script.as_ref().or(defaults.script.as_ref()) {
                Some(field) => scripts.sequence(field.node, &field.path, 0)?,
                None => Vec::new(),
            },
            response_bytes,
            error_fraction: given("error-rate")?
                .map_or(Ok(defaults.error_fraction), |field| field.quantity(parse_fraction))?,
        })
    }

    /// Reads drivers and clients; without drivers there is one at each entry point, or at the first service that no other
    /// calls. Returns the targets.
    fn drivers(&mut self, root: &Section<'a>) -> Result<Vec<WorkloadId>> {
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
        // Clients without a driver stand there all the same.
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

    fn has_client(&self, name: &str) -> bool {
        let is_client = |workload: &Workload| workload.name == name && !workload.serves();
        self.topology.workloads.iter().any(is_client)
    }

    fn is_client(&self, namespace: &str, name: &str) -> bool {
        self.names.get(namespace, name).is_some_and(|id| !self.topology.workloads[id].serves())
    }

    /// The client of a driver, made where it does not stand yet.
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
            let section = Section::of(node, &field.path, &DRIVER_KEYS, node.place.clone())?;
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

    /// A driver at each entry point, or at the first service that no other calls.
    fn entry_drivers(&self, root: &Section<'a>) -> Result<Vec<Driver<'a>>> {
        let services = root.required("services", "services: [{name: web}]")?;
        let mut entries = Vec::new();
        for (id, node) in maps_of(&services)?.iter().enumerate() {
            let entry = node.entries().iter().find(|entry| entry.key == "isEntrypoint");
            if let Some(entry) = entry.filter(|_| self.dialect == Dialect::Isotope) {
                let field =
                    Field { path: "isEntrypoint".into(), key_place: &entry.key_place, node: &entry.node };
                if switch(&field)? {
                    entries.push(id);
                }
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

    /// Services that get no request from any driver.
    fn note_unreached(&mut self, targets: &[WorkloadId]) {
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

/// A driver as written.
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

/// A label, with a namespace before it where there are several.
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

/// The maps of a list.
fn maps_of<'a>(field: &Field<'a>) -> Result<&'a [Node]> {
    match &field.node.value {
        Value::List(nodes) => Ok(nodes),
        _ => Err(field.place().error(
            format!("`{}` is not a list", field.path),
            "expected a list of maps, such as `- name: web`",
        )),
    }
}

fn check_path(path: &str, protocol: Protocol, place: &Place) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "/-_.~:@!$&'()*+,;=%".contains(c);
    if !path.starts_with('/') || path.len() > MAX_PATH_LENGTH || !path.chars().all(fits) {
        return Err(place.error(
            format!("`{}` is not a path", shortened(path)),
            "expected one from `/` on, without a query, at most 200 characters",
        ));
    }
    if protocol == Protocol::Tcp && path != DEFAULT_ENDPOINT {
        return Err(place.error("a service over TCP has no endpoints", "expected `/` alone"));
    }
    if protocol == Protocol::Grpc && path[1..].contains('/') {
        return Err(place.error(
            format!("`{}` is not a method of gRPC", shortened(path)),
            "expected a single name behind the first `/`, such as `/list`",
        ));
    }
    Ok(())
}

fn protocol(field: &Field<'_>, dialect: Dialect) -> Result<Protocol> {
    match dialect {
        Dialect::Native => field.choice(&Protocol::ALL.map(|protocol| (protocol.name(), protocol))),
        Dialect::Isotope => field.choice(&[("http", Protocol::Http1), ("grpc", Protocol::Grpc)]),
    }
}

fn switch(field: &Field<'_>) -> Result<bool> {
    field.choice(&[("true", true), ("false", false), ("on", true), ("off", false)])
}

fn resources(field: &Field<'_>) -> Result<Resources> {
    let section = Section::of(field.node, &field.path, &["requests", "limits"], field.key_place.clone())?;
    let pair = |key: &'static str| -> Result<(Option<f64>, Option<u64>)> {
        let Some(field) = section.field(key)? else { return Ok((None, None)) };
        let section = Section::of(field.node, &field.path, &["cpu", "memory"], field.key_place.clone())?;
        Ok((
            section.field("cpu")?.map(|field| field.quantity(parse_cores)).transpose()?,
            section.field("memory")?.map(|field| field.quantity(parse_size)).transpose()?,
        ))
    };
    let (cpu_request_cores, memory_request_bytes) = pair("requests")?;
    let (cpu_limit_cores, memory_limit_bytes) = pair("limits")?;
    let above = |one: Option<f64>, other: Option<f64>| matches!((one, other), (Some(one), Some(other)) if one > other);
    let bytes = |value: Option<u64>| value.map(|bytes| bytes as f64);
    if above(cpu_request_cores, cpu_limit_cores)
        || above(bytes(memory_request_bytes), bytes(memory_limit_bytes))
    {
        return Err(field
            .place()
            .error("more is requested than the limit allows", "expected requests up to the limits"));
    }
    Ok(Resources { cpu_request_cores, cpu_limit_cores, memory_request_bytes, memory_limit_bytes })
}
