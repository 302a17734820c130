//! Writes an experiment as a file with every default visible.

mod views;

use super::overrides::split_key;
use crate::definition::{Experiment, Factor, Fresh, LoadLevels, Resolve};
use crate::diagnostic::Source;
use crate::mesh_kind::{MeshKind, configures_envoys};
use crate::published::{PublishedSource, ReferenceValue};
use crate::settings::components::ComponentsSettings;
use crate::settings::ingress::GatewaySettings;
use crate::settings::istio::{LuaScript, MeshSettings, TelemetrySetting, WorkloadKeys};
use crate::topology::file::{Yaml, view};
use crate::topology::settings::TopologySource;
use crate::topology::shapes::ParameterKind;
use crate::yaml::document;
use results::units::{ByteSize, CpuCores, Fraction, TimeSpan};
use results::{FactorValue, Mode};
use serde::Serialize;
use std::sync::Arc;
use views::{
    AuthorizationView, ClientView, EstateView, FigureView, FleetView, GatewayView, IngressView, IstioSection,
    IstioView, IstiodView, LoadView, Number, ObjectiveView, ProxyView, PublishedView, ResolveView,
    ServerView, SurroundingsView, ValueView,
};

/// The whole file. Absent fields have no value to show: no limit, no seed, no bound.
#[derive(Serialize)]
struct FileView<'a> {
    name: &'a str,
    question: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<Yaml>,
    mesh: MeshKind,
    modes: &'a [Mode],
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<LoadView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<FleetView>,
    repeats: usize,
    retakes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<ObjectiveView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolve: Option<ResolveView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<ProxyView>,
    #[serde(skip_serializing_if = "ComponentsSettings::is_default")]
    components: &'a ComponentsSettings,
    #[serde(skip_serializing_if = "Option::is_none")]
    istio: Option<IstioSection<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingress: Option<EstateView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<GatewayView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<ServerView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<ClientView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    published: Vec<PublishedView<'a>>,
}

/// Writes the file.
pub(super) fn experiment(experiment: &Experiment) -> String {
    let objective = &experiment.objective;
    // A fleet has no requests, so settings about them are left out.
    let has_requests = experiment.fleet.is_none();
    let has_topology = experiment.fleet.as_ref().is_none_or(|fleet| fleet.topology.is_some());
    let view = FileView {
        name: &experiment.name,
        question: &experiment.question,
        topology: has_topology.then(|| topology(experiment)),
        mesh: experiment.mesh,
        modes: &experiment.modes,
        load: has_requests.then(|| load(experiment)),
        fleet: experiment.fleet.as_deref().map(FleetView::new),
        repeats: experiment.repeats,
        retakes: experiment.retakes,
        seed: experiment.seed,
        objective: (!objective.is_empty()).then(|| ObjectiveView {
            times: objective.times().collect(),
            errors: objective.errors.map(Fraction),
        }),
        resolve: (experiment.resolve != Resolve::default()).then(|| ResolveView {
            p50: experiment.resolve.p50.map(TimeSpan),
            p99: experiment.resolve.p99.map(TimeSpan),
        }),
        proxy: has_requests.then(|| ProxyView {
            workers: experiment.proxy.workers,
            mtls: experiment.proxy.mtls,
            access_log: experiment.proxy.access_log,
            cpu: experiment.proxy.cpu_limit_cores.map(CpuCores),
            cpu_time: Some(experiment.proxy.cpu_time).filter(|time| !time.is_zero()).map(TimeSpan),
        }),
        components: &experiment.components,
        istio: match (experiment.mesh, has_requests) {
            (MeshKind::Istio, true) => Some(IstioSection::Mesh(Box::new(istio(experiment)))),
            (MeshKind::Istio, false) => {
                Some(IstioSection::ControlPlane { istiod: IstiodView::new(&experiment.istio.istiod) })
            }
            _ => None,
        },
        ingress: experiment.ingress.declared.then(|| EstateView::new(&experiment.ingress)),
        gateway: (experiment.gateway != GatewaySettings::default())
            .then(|| GatewayView::new(&experiment.gateway)),
        server: has_requests.then(|| ServerView {
            delay: TimeSpan(experiment.server.delay),
            cpu_time: Some(experiment.server.cpu_time).filter(|time| !time.is_zero()).map(TimeSpan),
            error_rate: Fraction(experiment.server.error_fraction),
            cpu: experiment.server.cpu_limit_cores.map(CpuCores),
        }),
        fresh: experiment.fresh.map(Fresh::name),
        published: experiment.published.iter().map(published).collect(),
        client: experiment.client_cpu_limit_cores.map(|cores| ClientView { cpu: CpuCores(cores) }),
    };
    with_factors(document::write(&view), &experiment.factors)
}

fn load(experiment: &Experiment) -> LoadView {
    let load = &experiment.load;
    let (rate, clients, arrival) = match &load.levels {
        LoadLevels::Open { rates, arrival } => {
            (Some(rates.iter().map(|rate| Number::new(*rate)).collect()), None, Some(arrival.name()))
        }
        LoadLevels::Closed { clients } => (None, Some(clients.clone()), None),
        LoadLevels::Fleet => (None, None, None),
    };
    LoadView {
        protocol: is_common(experiment, "load.protocol", |one| one.load.protocol)
            .then(|| load.protocol.to_string()),
        payload: is_common(experiment, "load.payload", |one| one.server.payload_bytes)
            .then_some(ByteSize(experiment.server.payload_bytes)),
        connections: load.connections,
        requests_per_connection: load.requests_per_connection,
        rate,
        clients,
        arrival,
        warmup: TimeSpan(load.warmup),
        duration: TimeSpan(load.duration),
        timeout: TimeSpan(load.timeout),
        expect_status: load.expected_status.clone(),
        threads: load.threads,
        generators: load.generators,
        pacing: load.pacing,
    }
}

/// True if the experiment, and not each topology, defines the value. If values differ although the key is not
/// a factor, topologies with values of their own are compared.
fn is_common<T: PartialEq>(experiment: &Experiment, key: &str, value: impl Fn(&Experiment) -> T) -> bool {
    let own = value(experiment);
    experiment.factor(key).is_some() || experiment.each_combination().all(|(_, one)| value(one) == own)
}

/// A single built-in topology without parameters is written as its name. If shapes are compared, only their
/// common parameters can have been given.
fn topology(experiment: &Experiment) -> Yaml {
    let settings = &experiment.topology;
    let is_factor = |key: &str| experiment.factor(&format!("topology.{key}")).is_some();
    let number = |key: &str, value: usize| (key.to_owned(), Yaml::Number(value as u64));
    let namespaces = number("namespaces", settings.namespaces);
    match &settings.source {
        TopologySource::Graph(graph) => match view(graph) {
            Yaml::Map(entries) => Yaml::Map([namespaces].into_iter().chain(entries).collect()),
            other => other,
        },
        TopologySource::Shape { shape, .. }
            if shape.parameters.is_empty()
                && settings.source == TopologySource::shape(shape)
                && settings.namespaces == 1
                && !experiment.factors.iter().any(|factor| factor.key.starts_with("topology.")) =>
        {
            Yaml::Text(shape.name.to_owned())
        }
        TopologySource::Shape { shape, parameters, replicas } => {
            let name = ("shape".to_owned(), Yaml::Text(shape.name.to_owned()));
            let mut entries = vec![name, namespaces, number("replicas", *replicas)];
            for parameter in shape.parameters {
                let value = parameters.get(parameter.name).unwrap_or(parameter.default);
                if !is_factor("shape") || value != parameter.default || is_factor(parameter.name) {
                    let value = match parameter.kind {
                        ParameterKind::Whole(_) => Yaml::Number(value as u64),
                        ParameterKind::Switch => Yaml::Switch(value != 0.0),
                        ParameterKind::Fraction => Yaml::Text(parameter.format(value)),
                    };
                    entries.push((parameter.name.to_owned(), value));
                }
            }
            Yaml::Map(entries)
        }
    }
}

/// Replaces the first value of each factor with the factor's list.
fn with_factors(mut text: String, factors: &[Factor]) -> String {
    for factor in factors {
        let source = Arc::new(Source { name: String::new(), text: text.clone() });
        let root = document::read(&source).expect("what was just written can be read");
        let (section, key) = split_key(&factor.key);
        let names = section.split('.').filter(|name| !name.is_empty());
        let map = names.fold(&root, |node, name| {
            &node.entries().iter().find(|entry| entry.key == name).expect("sections are written").node
        });
        let list = flow_list(&factor.values);
        match map.entries().iter().find(|entry| entry.key == key) {
            Some(entry) => text.replace_range(entry.node.place.span.clone(), &list),
            // The first value turns something off, and is not written.
            None => {
                let start = map.entries().first().map_or(0, |entry| entry.key_place.span.start);
                let indent = start - text[..start].rfind('\n').map_or(0, |newline| newline + 1);
                text.insert_str(start, &format!("{key}: {list}\n{}", " ".repeat(indent)));
            }
        }
    }
    text
}

/// Formats a flow sequence, such as `[250m, 1]`. Text that YAML could read as something else is quoted.
fn flow_list(values: &[FactorValue]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '%');
    let value = |value: &FactorValue| match value {
        FactorValue::Text(text)
            if text.is_empty() || !text.chars().all(is_plain) || text.starts_with(['-', '%']) =>
        {
            serde_json::Value::from(text.as_str()).to_string()
        }
        other => other.to_string(),
    };
    format!("[{}]", values.iter().map(value).collect::<Vec<_>>().join(", "))
}

/// Settings of the control plane. Keys that only apply together with others are left out if those are absent.
fn istio(experiment: &Experiment) -> IstioView<'_> {
    let settings: &MeshSettings = &experiment.istio;
    let (authorization, surroundings) = (settings.authorization, settings.surroundings);
    IstioView {
        telemetry: Some(settings.telemetry).filter(|telemetry| {
            let is_configured = experiment.modes.iter().any(|mode| configures_envoys(*mode));
            is_configured && *telemetry != TelemetrySetting::Auto
        }),
        tracing: settings.tracing_fraction.map(Fraction),
        authorization: AuthorizationView {
            paths: authorization.paths,
            identities: authorization.identities,
            jwt: authorization.jwt,
        },
        lua: settings.lua.as_ref().map(|script| match script {
            LuaScript::BuiltIn => "on",
            LuaScript::Inline(text) => text,
        }),
        wasm: settings.wasm.as_deref(),
        retries: settings.retries,
        timeout: settings.timeout.map(TimeSpan),
        http2_upgrade: settings.http2_upgrade,
        sidecar_scope: settings.sidecar_scope
            && experiment.modes.iter().any(|mode| experiment.mesh.parts(*mode).has_sidecars()),
        dns_capture: settings.dns_capture,
        dns_auto_allocate: settings.dns_auto_allocate,
        surroundings: SurroundingsView {
            services: surroundings.services,
            endpoints: experiment
                .each_combination()
                .any(|(_, one)| one.istio.surroundings.services > 0)
                .then_some(surroundings.endpoints),
        },
        ingress: experiment
            .modes
            .contains(&Mode::Ingress)
            .then_some(IngressView { tls: settings.ingress.tls, api: settings.ingress.api }),
        ztunnel: experiment.modes.iter().any(|mode| mode.is_ambient()).then_some(settings.ztunnel),
        workload_keys: Some(settings.workload_keys).filter(|keys| *keys != WorkloadKeys::default()),
        extra: settings.extra.as_ref().map(|extra| extra.text.as_str()),
    }
}

fn published(source: &PublishedSource) -> PublishedView<'_> {
    let figures = source.figures.iter().map(|figure| FigureView {
        figure: figure.value.name(),
        mode: figure.mode,
        to: match figure.value {
            ReferenceValue::Relative(_, to, _) => Some(to),
            _ => None,
        },
        component: figure.component.as_deref(),
        rate: figure.rate.map(Number::new),
        clients: figure.clients,
        gateway_cpu: figure.gateway_cpu_cores.map(CpuCores),
        value: match figure.value {
            ReferenceValue::Cpu(cores) => ValueView::Cores(CpuCores(cores)),
            ReferenceValue::Throughput(rate) | ReferenceValue::ThroughputPerCpu(rate) => {
                ValueView::Rate(Number::new(rate))
            }
            ReferenceValue::Memory(_, bytes) => ValueView::Size(ByteSize(bytes)),
            ReferenceValue::ReservedCpu(cores) | ReferenceValue::IstiodCpu(cores) => {
                ValueView::Cores(CpuCores(cores))
            }
            ReferenceValue::ReservedMemory(bytes)
            | ReferenceValue::IstiodMemory(bytes)
            | ReferenceValue::IstiodMemoryPerProxy(bytes) => ValueView::Size(ByteSize(bytes)),
            ReferenceValue::Time(_, _, range) => ValueView::Text(range.to_string()),
            ReferenceValue::Added(_, time) => ValueView::Time(TimeSpan(time)),
            ReferenceValue::Relative(.., relation) => ValueView::Text(relation.to_string()),
        },
    });
    PublishedView {
        source: &source.source,
        differs: &source.differs,
        margin: source.margin.map(Fraction),
        figures: figures.collect(),
    }
}
