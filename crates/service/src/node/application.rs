//! The topology's definition of this service and of those that it calls, checked and resolved before anything
//! starts.

use super::query::tls;
use super::settings::NodeSettings;
use crate::server::ServeError;
use crate::settings::MAX_THREADS;
use experiment::protocol::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::{
    DEFAULT_ENDPOINT, Endpoint, QueryStep, ScriptedService, Step, grpc_method,
};
use experiment::topology::{Runs, Workload, WorkloadId};
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use rustls::ClientConfig;
use std::sync::Arc;

/// Default port of services, if `connect` does not name one.
const SERVICE_PORT: u16 = 8080;
/// Default port of databases, if `connect` does not name one.
const DATABASE_PORT: u16 = 27017;

/// This service.
#[derive(Debug)]
pub(crate) struct Application {
    /// Over TCP, request sizes are fixed by the topology, and a connection has no path.
    pub protocol: Protocol,
    pub endpoints: Vec<Offered>,
    pub callees: Vec<CalleeSpec>,
    pub databases: Vec<DatabaseSpec>,
    /// `None` without databases.
    pub database_tls: Option<Arc<ClientConfig>>,
    pub seed: Option<u64>,
}

/// An endpoint of this service.
#[derive(Debug)]
pub(crate) struct Offered {
    pub endpoint: Endpoint,
    /// Path of gRPC requests to it.
    pub grpc_method: String,
}

/// A service that this one calls.
#[derive(Debug)]
pub(crate) struct CalleeSpec {
    pub id: WorkloadId,
    /// Qualified name.
    pub name: String,
    pub protocol: Protocol,
    pub place: Place,
    /// Each endpoint that scripts name, with its request target.
    pub targets: Vec<(String, Uri)>,
    /// Size of its replies over TCP, where the protocol does not announce it.
    pub tcp_reply_bytes: u64,
}

/// A database that this service queries.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseSpec {
    pub id: WorkloadId,
    /// Qualified name.
    pub name: String,
    pub place: Place,
    /// All queries of the scripts.
    pub queries: Vec<QueryStep>,
}

/// Host and port of a callee or database.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub host: String,
    pub port: u16,
    /// As given; used as the host name in requests.
    pub authority: Authority,
}

impl Application {
    pub(crate) fn new(settings: &NodeSettings) -> Result<Self, ServeError> {
        if !(1..=MAX_THREADS).contains(&settings.threads) {
            return Err(problem(format!("expected 1 to {MAX_THREADS} threads, not {}", settings.threads)));
        }
        let workload = workload(settings, settings.service)?;
        let name = workload.qualified_name();
        let Runs::Scripted(service) = &workload.runs else {
            return Err(problem(format!("{name} is not a service with a script")));
        };
        if workload.protocol == Protocol::Tcp {
            check_tcp(&name, service)?;
        }
        let (mut callees, mut databases) = (Vec::new(), Vec::new());
        for id in service.callees() {
            let callee = self::workload(settings, id)?;
            if matches!(callee.runs, Runs::Database) {
                databases.push(database(settings, id, callee, service)?);
            } else {
                callees.push(called(settings, id, callee, service)?);
            }
        }
        let database_tls = (!databases.is_empty())
            .then(|| tls::client_config(settings.database_authority.as_deref()).map_err(problem))
            .transpose()?;
        let offered = |endpoint: &Endpoint| Offered {
            grpc_method: grpc_method(&endpoint.path),
            endpoint: endpoint.clone(),
        };
        Ok(Self {
            protocol: workload.protocol,
            endpoints: service.endpoints.iter().map(offered).collect(),
            callees,
            databases,
            database_tls,
            seed: settings.seed,
        })
    }
}

fn problem(text: String) -> ServeError {
    ServeError::Settings(text)
}

fn workload(settings: &NodeSettings, id: WorkloadId) -> Result<&Workload, ServeError> {
    let found = settings.topology.workloads.get(id);
    found.ok_or_else(|| problem(format!("{} has no workload {id}", settings.topology.name)))
}

/// Over TCP the length of a reply is not announced: both sides take it from the topology.
fn check_tcp(name: &str, service: &ScriptedService) -> Result<(), ServeError> {
    let [Endpoint { path, response_bytes: Distribution::Fixed(_), .. }] = &service.endpoints[..] else {
        return Err(problem(format!(
            "{name} speaks tcp: it can have one endpoint, with a response of a fixed size"
        )));
    };
    if path != DEFAULT_ENDPOINT {
        return Err(problem(format!("{name} speaks tcp, which has no paths: {path} cannot be reached")));
    }
    Ok(())
}

/// Reply size of a service over TCP: at least one byte.
pub(crate) fn tcp_reply_bytes(endpoint: &Endpoint) -> u64 {
    endpoint.response_bytes.mean().max(1.0) as u64
}

fn called(
    settings: &NodeSettings,
    id: WorkloadId,
    callee: &Workload,
    service: &ScriptedService,
) -> Result<CalleeSpec, ServeError> {
    let name = callee.qualified_name();
    let tcp = callee.protocol == Protocol::Tcp;
    let tcp_reply_bytes = match &callee.runs {
        Runs::Scripted(script) if tcp => {
            check_tcp(&name, script)?;
            script.endpoint(DEFAULT_ENDPOINT).map_or(1, tcp_reply_bytes)
        }
        Runs::Scripted(_) => 0,
        Runs::Service(server) => server.payload_bytes.max(1),
        Runs::Drivers | Runs::ExternalService(_) | Runs::Database => {
            return Err(problem(format!("{name} is not a service that scripts can call")));
        }
    };
    let place = place(settings, id, callee, SERVICE_PORT)?;
    let mut targets: Vec<(String, Uri)> = Vec::new();
    for step in service.endpoints.iter().flat_map(|endpoint| &endpoint.steps) {
        each_leaf(step, &mut |leaf| {
            if let Step::Call(call) = leaf
                && call.to == id
                && !targets.iter().any(|(endpoint, _)| *endpoint == call.endpoint)
            {
                let missing = callee.script().is_some_and(|script| script.endpoint(&call.endpoint).is_none());
                if missing {
                    return Err(problem(format!("{name} has no endpoint {}", call.endpoint)));
                }
                targets.push((
                    call.endpoint.clone(),
                    target(&name, callee.protocol, &place.authority, &call.endpoint)?,
                ));
            }
            Ok(())
        })?;
    }
    Ok(CalleeSpec { id, name, protocol: callee.protocol, place, targets, tcp_reply_bytes })
}

fn database(
    settings: &NodeSettings,
    id: WorkloadId,
    database: &Workload,
    service: &ScriptedService,
) -> Result<DatabaseSpec, ServeError> {
    let mut queries = Vec::new();
    for step in service.endpoints.iter().flat_map(|endpoint| &endpoint.steps) {
        each_leaf(step, &mut |leaf| {
            if let Step::Query(query) = leaf
                && query.to == id
            {
                queries.push(query.clone());
            }
            Ok(())
        })?;
    }
    let place = place(settings, id, database, DATABASE_PORT)?;
    Ok(DatabaseSpec { id, name: database.qualified_name(), place, queries })
}

fn each_leaf(step: &Step, visit: &mut dyn FnMut(&Step) -> Result<(), ServeError>) -> Result<(), ServeError> {
    match step {
        Step::Parallel(steps) | Step::Sequence(steps) => {
            steps.iter().try_for_each(|step| each_leaf(step, visit))
        }
        leaf => visit(leaf),
    }
}

/// Over HTTP/1.1 a request names its host in a header field, over HTTP/2 in its target.
fn target(name: &str, protocol: Protocol, authority: &Authority, endpoint: &str) -> Result<Uri, ServeError> {
    let path = if protocol == Protocol::Grpc { grpc_method(endpoint) } else { endpoint.to_owned() };
    let failed = |error: http::Error| problem(format!("endpoint {endpoint} of {name}: {error}"));
    let path = PathAndQuery::try_from(path).map_err(|error| failed(error.into()))?;
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(path);
    if protocol.multiplexes() {
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(authority.clone());
    }
    Uri::from_parts(parts).map_err(|error| failed(error.into()))
}

fn place(
    settings: &NodeSettings,
    id: WorkloadId,
    workload: &Workload,
    port: u16,
) -> Result<Place, ServeError> {
    let text = settings.connect.get(&id).cloned().unwrap_or_else(|| match &workload.namespace[..] {
        "" => format!("{}:{port}", workload.name),
        namespace => format!("{}.{namespace}.svc.cluster.local:{port}", workload.name),
    });
    let authority: Option<Authority> = text.parse().ok();
    let place = authority.and_then(|authority| {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16()?;
        (!host.is_empty() && !text.contains('@')).then_some(Place { host, port, authority })
    });
    place.ok_or_else(|| {
        let name = workload.qualified_name();
        problem(format!("expected a host and a port where {name} is, such as {name}:{port}, not {text}"))
    })
}
