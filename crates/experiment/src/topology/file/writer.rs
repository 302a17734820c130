//! Writes a topology in Meshmeter's own format. Default values are left out.

use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use crate::topology::distribution::Distribution;
use crate::topology::script::{
    CallStep, DEFAULT_CALL_TIMEOUT, DEFAULT_ENDPOINT, Endpoint, QueryStep, ScriptedService, Step,
};
use crate::topology::{Resources, Runs, Topology, Workload, WorkloadId};
use crate::yaml::written::{Map, Yaml};
use results::units::{format_cores, format_duration, format_fraction, format_size};
use std::time::Duration;

/// Quantity; plain numbers are not quoted.
fn quantity(text: String) -> Yaml {
    text.parse().map_or(Yaml::Text(text), Yaml::Number)
}

/// The whole file.
pub(crate) fn view(topology: &Topology) -> Yaml {
    let list = |choose: &dyn Fn(&Workload) -> bool, write: &dyn Fn(&Workload) -> Yaml| {
        let chosen: Vec<Yaml> =
            topology.workloads.iter().filter(|workload| choose(workload)).map(write).collect();
        (!chosen.is_empty()).then_some(Yaml::List(chosen))
    };
    let drivers = topology.drivers.iter().map(|driver| {
        Map::default()
            .text("name", &driver.name)
            .text("in", topology.workloads[driver.at].qualified_name())
            .text("target", topology.workloads[driver.target].qualified_name())
            .text("endpoint", &driver.endpoint)
            .done()
    });
    Map::default()
        .text("name", &topology.name)
        .with_some(
            "services",
            list(&|one| one.serves() && !matches!(one.runs, Runs::Database), &|one| service(topology, one)),
        )
        .with_some("databases", list(&|one| matches!(one.runs, Runs::Database), &|one| head(one).done()))
        .with("drivers", Yaml::List(drivers.collect()))
        .with_some("clients", list(&|one| !one.serves(), &|one| head(one).done()))
        .done()
}

/// Name, namespace, mesh membership and resources.
fn head(workload: &Workload) -> Map {
    let namespace = (!workload.namespace.is_empty()).then(|| Yaml::Text(workload.namespace.clone()));
    let is_database = matches!(workload.runs, Runs::Database);
    Map::default()
        .text("name", &workload.name)
        .with_some("namespace", namespace)
        .with_some("in-mesh", (!workload.in_mesh && !is_database).then_some(Yaml::Switch(false)))
        .with_some("resources", resources_view(workload.resources))
}

fn resources_view(resources: Resources) -> Option<Yaml> {
    let amounts = |cores: Option<f64>, bytes: Option<u64>| {
        Map::default()
            .with_some("cpu", cores.map(|cores| quantity(format_cores(cores))))
            .with_some("memory", bytes.map(|bytes| quantity(format_size(bytes))))
            .some()
    };
    Map::default()
        .with_some("requests", amounts(resources.cpu_request_cores, resources.memory_request_bytes))
        .with_some("limits", amounts(resources.cpu_limit_cores, resources.memory_limit_bytes))
        .some()
}

fn service(topology: &Topology, workload: &Workload) -> Yaml {
    let mut map = head(workload);
    if workload.protocol != Protocol::default() {
        map = map.text("protocol", workload.protocol.name());
    }
    if workload.replicas != 1 {
        map = map.number("replicas", workload.replicas);
    }
    let scripted = match &workload.runs {
        Runs::Scripted(service) => service.clone(),
        Runs::Service(settings) | Runs::ExternalService(settings) => scripted(settings),
        Runs::Drivers | Runs::Database => ScriptedService::default(),
    };
    let caller = Caller { topology, namespace: &workload.namespace };
    match scripted.endpoints.as_slice() {
        [only] if only.path == DEFAULT_ENDPOINT => caller.endpoint(only, map).done(),
        endpoints => {
            let view = |endpoint: &Endpoint| {
                (endpoint.path.clone(), caller.endpoint(endpoint, Map::default()).done())
            };
            map.with("endpoints", Yaml::Map(endpoints.iter().map(view).collect())).done()
        }
    }
}

/// Synthetic service without a script, as a script.
fn scripted(settings: &ServerSettings) -> ScriptedService {
    ScriptedService {
        endpoints: vec![Endpoint {
            steps: settings.steps(),
            response_bytes: Distribution::Fixed(settings.payload_bytes as f64),
            error_fraction: settings.error_fraction,
            ..Endpoint::default()
        }],
    }
}

/// Writes the steps of a service. Callees are named relative to its namespace.
struct Caller<'a> {
    topology: &'a Topology,
    namespace: &'a str,
}

impl Caller<'_> {
    fn endpoint(&self, endpoint: &Endpoint, mut map: Map) -> Map {
        let defaults = Endpoint::default();
        if !endpoint.steps.is_empty() {
            map = map.with("script", Yaml::List(self.sequence(&endpoint.steps)));
        }
        if endpoint.response_bytes != defaults.response_bytes {
            map = map.with("response", amount(&endpoint.response_bytes, bytes));
        }
        if endpoint.error_fraction > 0.0 {
            map = map.text("error-rate", format_fraction(endpoint.error_fraction));
        }
        map
    }

    /// Sequential steps. A nested list would be read as parallel.
    fn sequence(&self, steps: &[Step]) -> Vec<Yaml> {
        let write = |step: &Step| match step {
            Step::Sequence(steps) => self.sequence(steps),
            step => vec![self.step(step)],
        };
        steps.iter().flat_map(write).collect()
    }

    fn step(&self, step: &Step) -> Yaml {
        let (key, value) = match step {
            Step::Sequence(steps) => return Yaml::List(self.sequence(steps)),
            Step::Parallel(steps) => {
                ("parallel", Yaml::List(steps.iter().map(|step| self.step(step)).collect()))
            }
            Step::Call(call) => ("call", self.call(call)),
            Step::Query(query) => ("query", self.query(query)),
            Step::Sleep(time) => ("sleep", amount(time, seconds)),
            Step::Compute(time) => ("cpu", amount(time, seconds)),
            Step::Hold(size) => ("memory", amount(size, bytes)),
        };
        Map::default().with(key, value).done()
    }

    fn call(&self, call: &CallStep) -> Yaml {
        let name = self.name(call.to);
        let plain = CallStep::new(call.to);
        if *call == plain {
            return Yaml::Text(name);
        }
        let mut map = Map::default().text("service", name);
        if call.endpoint != plain.endpoint {
            map = map.text("endpoint", &call.endpoint);
        }
        if call.request_bytes != plain.request_bytes {
            map = map.with("size", amount(&call.request_bytes, bytes));
        }
        map = with_probability(map, call.probability);
        if call.retries > 0 {
            map = map.with("retries", Yaml::Number(call.retries.into()));
        }
        with_timeout(map, call.timeout).done()
    }

    fn query(&self, query: &QueryStep) -> Yaml {
        let map = Map::default()
            .text("database", self.name(query.to))
            .text(query.operation.name(), &query.collection)
            .with("documents", Yaml::Number(query.documents.into()))
            .with("size", quantity(format_size(query.document_bytes.into())));
        with_timeout(with_probability(map, query.probability), query.timeout).done()
    }

    fn name(&self, callee: WorkloadId) -> String {
        let callee = &self.topology.workloads[callee];
        if callee.namespace == self.namespace { callee.name.clone() } else { callee.qualified_name() }
    }
}

fn with_probability(map: Map, probability: f64) -> Map {
    if probability < 1.0 { map.text("probability", format_fraction(probability)) } else { map }
}

fn with_timeout(map: Map, timeout: Duration) -> Map {
    if timeout == DEFAULT_CALL_TIMEOUT { map } else { map.text("timeout", format_duration(timeout)) }
}

fn amount(amount: &Distribution, format: fn(f64) -> String) -> Yaml {
    let text = |value: f64| quantity(format(value));
    match *amount {
        Distribution::Fixed(value) => text(value),
        Distribution::Uniform { low, high } => {
            Map::default().with("uniform", Yaml::List(vec![text(low), text(high)])).done()
        }
        Distribution::Exponential { mean } => Map::default().with("exponential", text(mean)).done(),
        Distribution::LogNormal { median, p99 } => {
            let parameters = Map::default().with("median", text(median)).with("p99", text(p99)).done();
            Map::default().with("log-normal", parameters).done()
        }
    }
}

fn bytes(value: f64) -> String {
    format_size(value.round() as u64)
}

fn seconds(value: f64) -> String {
    format_duration(Duration::from_secs_f64(value))
}
