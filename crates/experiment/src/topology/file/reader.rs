//! Reads a topology from the tree: services, databases, drivers and clients.

use super::TopologyFile;
use super::dialect::Dialect;
use super::keys;
use super::limits::{MAX_PATH_LENGTH, MAX_PODS, MAX_REPLICAS, MAX_WORKLOADS};
use super::links::Links;
use super::names::{DEFAULT_NAMESPACE, Names, check_name, check_namespace, fits_path};
use super::steps::{Scripts, size};
use crate::diagnostic::{ExperimentError, Place};
use crate::keys::{SWITCH, names};
use crate::protocol::Protocol;
use crate::topology::distribution::Distribution;
use crate::topology::script::{DEFAULT_ENDPOINT, Endpoint, ScriptedService};
use crate::topology::{Resources, Runs, Topology, Workload, WorkloadId};
use crate::yaml::document::{Node, Value};
use crate::yaml::section::{Field, Section};
use results::units::{parse_cores, parse_fraction, parse_size, shortened};
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const DATABASE_KEYS: [&str; keys::DATABASE.len()] = names(&keys::DATABASE);
/// Maximum number of endpoints per service.
const MAX_ENDPOINTS: usize = 1_000;

/// Reads and validates a tree. `default_name` is the name of a topology without one.
pub(super) fn read(root: &Node, default_name: &str) -> Result<TopologyFile> {
    let dialect = Dialect::for_root(root);
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
    let section = Section::new(root, "topology", dialect.root_keys(), root.place.clone())?;
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

/// Field of a key that only Meshmeter's own files have.
pub(super) fn section_field<'a>(
    section: &Section<'a>,
    dialect: Dialect,
    key: &'static str,
) -> Result<Option<Field<'a>>> {
    if dialect == Dialect::Native { section.field(key) } else { Ok(None) }
}

/// Defaults of services.
pub(super) struct Defaults<'a> {
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

/// Name and namespace of a workload, read before everything else.
pub(super) struct Head<'a> {
    pub(super) section: Section<'a>,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    name_place: &'a Place,
}

pub(super) struct Reader<'a> {
    pub(super) dialect: Dialect,
    pub(super) names: Names,
    /// Topology in file order.
    pub(super) topology: Topology,
    pub(super) links: Links<'a>,
    pub(super) notes: BTreeSet<String>,
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
                Section::new(field.node, &field.path, dialect.default_keys(), field.key_place.clone())
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

    /// Reads the heads of a list of workloads.
    pub(super) fn heads(
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
            let section = Section::new(node, &path, keys, node.place.clone())?;
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

    pub(super) fn add_name(&mut self, head: &Head<'_>, namespace: &str, id: WorkloadId) -> Result<()> {
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

    /// Endpoints of a service, or the service itself as a single endpoint.
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
        for key in keys::ENDPOINT_NAMES {
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
            let section = Section::new(&entry.node, &path, &keys::ENDPOINT_NAMES, entry.key_place.clone())?;
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
                Some(field) => field
                    .place()
                    .error("this response cannot be distinguished from the next over TCP", expected),
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
}

/// Maps in a list.
pub(super) fn maps_of<'a>(field: &Field<'a>) -> Result<&'a [Node]> {
    field.nodes("expected a list of maps, such as `- name: web`")
}

fn check_path(path: &str, protocol: Protocol, place: &Place) -> Result<()> {
    if !path.starts_with('/') || path.len() > MAX_PATH_LENGTH || !path.chars().all(fits_path) {
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

pub(super) fn switch(field: &Field<'_>) -> Result<bool> {
    field.choice(&SWITCH)
}

pub(super) fn resources(field: &Field<'_>) -> Result<Resources> {
    let section = Section::new(field.node, &field.path, &names(&keys::LIMITS), field.key_place.clone())?;
    let pair = |key: &'static str| -> Result<(Option<f64>, Option<u64>)> {
        let Some(field) = section.field(key)? else { return Ok((None, None)) };
        let section = Section::new(field.node, &field.path, &names(&keys::AMOUNTS), field.key_place.clone())?;
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
