//! An experiment as a file, every default visible.

use super::document;
use super::overrides::split_key;
use crate::definition::{Experiment, Factor, Fresh, LoadLevels, Resolve};
use crate::diagnostic::Source;
use crate::mode::{MeshKind, Mode};
use crate::objective::TimeFigure;
use crate::published::{PublishedSource, ReferenceValue};
use crate::schema::Pacing;
use crate::schema::factor::FactorValue;
use crate::settings::components::ComponentsSettings;
use crate::settings::fleet::FleetSettings;
use crate::settings::ingress::{Estate, GatewaySettings, Scenario};
use crate::settings::istio::{
    IngressApi, IngressTls, IstiodSettings, LuaScript, MeshSettings, TelemetrySetting, ZtunnelPlacement,
};
use crate::settings::proxy::{AccessLog, MutualTls};
use crate::topology::file::{Yaml, view};
use crate::topology::settings::TopologySource;
use crate::topology::shapes::ParameterKind;
use crate::units::in_files::{ByteSize, CpuCores, Fraction, TimeSpan};
use serde::{Serialize, Serializer};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The whole file. What is absent has no value to show: no limit, no seed, no bound.
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

#[derive(Serialize)]
struct LoadView {
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Vec<Number>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clients: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<&'static str>,
    warmup: TimeSpan,
    duration: TimeSpan,
    timeout: TimeSpan,
    threads: usize,
    generators: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing: Option<Pacing>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct FleetView {
    proxies: usize,
    kind: String,
    xds: &'static str,
    security: &'static str,
    services: usize,
    pods: usize,
    namespaces: usize,
    virtual_services: usize,
    destination_rules: usize,
    gateways: usize,
    policies: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    scope: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    on_demand: bool,
    #[serde(skip_serializing_if = "is_zero")]
    witnesses: usize,
    churn: String,
    changes: Vec<String>,
    between: TimeSpan,
    duration: TimeSpan,
    settle: TimeSpan,
    #[serde(skip_serializing_if = "Option::is_none")]
    connect_rate: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl FleetView {
    fn new(fleet: &FleetSettings) -> Self {
        Self {
            proxies: fleet.proxies,
            kind: fleet.kinds.to_string(),
            xds: fleet.xds.name(),
            security: fleet.security.name(),
            services: fleet.services,
            pods: fleet.pods,
            namespaces: fleet.namespaces,
            virtual_services: fleet.virtual_services,
            destination_rules: fleet.destination_rules,
            gateways: fleet.gateways,
            policies: fleet.policies,
            scope: fleet.scope,
            on_demand: fleet.on_demand,
            witnesses: fleet.witnesses,
            churn: fleet.churn.to_string(),
            changes: fleet.changes.iter().map(ToString::to_string).collect(),
            between: TimeSpan(fleet.between),
            duration: TimeSpan(fleet.duration),
            settle: TimeSpan(fleet.settle),
            connect_rate: fleet.connect_rate.map(Number::of),
            threads: fleet.threads,
        }
    }
}

/// What a mesh is asked for; with a fleet, of the control plane alone.
#[derive(Serialize)]
#[serde(untagged)]
enum IstioSection<'a> {
    Mesh(Box<IstioView<'a>>),
    ControlPlane { istiod: IstiodView },
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct IstiodView {
    replicas: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuCores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    debounce_after: Option<TimeSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    debounce_max: Option<TimeSpan>,
}

impl IstiodView {
    fn new(istiod: &IstiodSettings) -> Self {
        Self {
            replicas: istiod.replicas,
            cpu: istiod.cpu_limit_cores.map(CpuCores),
            memory: istiod.memory_limit_bytes.map(ByteSize),
            debounce_after: istiod.debounce_after.map(TimeSpan),
            debounce_max: istiod.debounce_max.map(TimeSpan),
        }
    }
}

#[derive(Serialize)]
struct ResolveView {
    #[serde(skip_serializing_if = "Option::is_none")]
    p50: Option<TimeSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<TimeSpan>,
}

#[derive(Serialize)]
struct ObjectiveView {
    #[serde(flatten, serialize_with = "bounds_in_order")]
    times: Vec<(TimeFigure, Duration)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Fraction>,
}

fn bounds_in_order<S: Serializer>(
    times: &[(TimeFigure, Duration)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(times.iter().map(|(figure, bound)| (figure.name(), TimeSpan(*bound))))
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ProxyView {
    workers: usize,
    mtls: MutualTls,
    access_log: AccessLog,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuCores>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct IstioView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    telemetry: Option<TelemetrySetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracing: Option<Fraction>,
    authorization: AuthorizationView,
    #[serde(skip_serializing_if = "Option::is_none")]
    lua: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wasm: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<TimeSpan>,
    #[serde(rename = "http2-upgrade", skip_serializing_if = "std::ops::Not::not")]
    http2_upgrade: bool,
    sidecar_scope: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dns_capture: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dns_auto_allocate: bool,
    surroundings: SurroundingsView,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingress: Option<IngressView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ztunnel: Option<ZtunnelPlacement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a str>,
}

#[derive(Serialize)]
struct AuthorizationView {
    paths: usize,
    identities: usize,
    jwt: bool,
}

#[derive(Serialize)]
struct SurroundingsView {
    services: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<usize>,
}

#[derive(Serialize)]
struct IngressView {
    tls: IngressTls,
    api: IngressApi,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct EstateView {
    domains: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_paths: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_domains: Option<usize>,
    scenario: Scenario,
}

impl EstateView {
    fn new(estate: &Estate) -> Self {
        Self {
            domains: estate.domains,
            paths: estate.paths,
            credentials: estate.credentials,
            requested_paths: estate.requested_paths,
            requested_domains: estate.requested_domains,
            scenario: estate.scenario,
        }
    }
}

#[derive(Serialize)]
struct GatewayView {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuCores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<usize>,
}

impl GatewayView {
    fn new(gateway: &GatewaySettings) -> Self {
        Self {
            cpu: gateway.cpu_limit_cores.map(CpuCores),
            memory: gateway.memory_limit_bytes.map(ByteSize),
            workers: gateway.workers,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ServerView {
    delay: TimeSpan,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_time: Option<TimeSpan>,
    error_rate: Fraction,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuCores>,
}

#[derive(Serialize)]
struct ClientView {
    cpu: CpuCores,
}

#[derive(Serialize)]
struct PublishedView<'a> {
    source: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    differs: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<Fraction>,
    figures: Vec<FigureView<'a>>,
}

#[derive(Serialize)]
struct FigureView<'a> {
    figure: String,
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clients: Option<usize>,
    #[serde(rename = "gateway-cpu", skip_serializing_if = "Option::is_none")]
    gateway_cpu: Option<CpuCores>,
    value: ValueView,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ValueView {
    Cores(CpuCores),
    Size(ByteSize),
    Time(TimeSpan),
    Rate(Number),
    Text(String),
}

/// A rate without a needless point: 1000, not 1000.0.
#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Decimal(f64),
}

impl Number {
    fn of(value: f64) -> Self {
        if value.fract() == 0.0 && value < 1e15 { Self::Whole(value as u64) } else { Self::Decimal(value) }
    }
}

/// Writes the file.
pub(super) fn experiment(experiment: &Experiment) -> String {
    let objective = &experiment.objective;
    // With a fleet there are no requests, and nothing is said of what carries them.
    let has_requests = experiment.fleet.is_none();
    let view = FileView {
        name: &experiment.name,
        question: &experiment.question,
        topology: has_requests.then(|| topology(experiment)),
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
        }),
        components: &experiment.components,
        istio: match (experiment.mesh, has_requests) {
            (MeshKind::Envoy, _) => None,
            (MeshKind::Istio, true) => Some(IstioSection::Mesh(Box::new(istio(experiment)))),
            (MeshKind::Istio, false) => {
                Some(IstioSection::ControlPlane { istiod: IstiodView::new(&experiment.istio.istiod) })
            }
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
            (Some(rates.iter().map(|rate| Number::of(*rate)).collect()), None, Some(arrival.name()))
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
        rate,
        clients,
        arrival,
        warmup: TimeSpan(load.warmup),
        duration: TimeSpan(load.duration),
        timeout: TimeSpan(load.timeout),
        threads: load.threads,
        generators: load.generators,
        pacing: load.pacing,
    }
}

/// Whether a value is the experiment's to say. Where it differs and the key is not a factor, topologies with a value of
/// their own are compared.
fn is_common<T: PartialEq>(experiment: &Experiment, key: &str, value: impl Fn(&Experiment) -> T) -> bool {
    let own = value(experiment);
    experiment.factor(key).is_some() || experiment.each_combination().all(|(_, one)| value(one) == own)
}

/// A built-in topology without parameters that stands once is its name alone. Where shapes are compared, only what they
/// have in common can have been given.
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

/// Puts each factor's list in the place of its first value.
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
            // The first value is a switch's off, which is not written.
            None => {
                let start = map.entries().first().map_or(0, |entry| entry.key_place.span.start);
                let indent = start - text[..start].rfind('\n').map_or(0, |newline| newline + 1);
                text.insert_str(start, &format!("{key}: {list}\n{}", " ".repeat(indent)));
            }
        }
    }
    text
}

/// Such as `[250m, 1]`; text that YAML could read otherwise stands in quotes.
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

/// What is asked of the control plane. Keys that go with others alone are left out where those are absent.
fn istio(experiment: &Experiment) -> IstioView<'_> {
    let settings: &MeshSettings = &experiment.istio;
    let (authorization, surroundings) = (settings.authorization, settings.surroundings);
    IstioView {
        telemetry: Some(settings.telemetry).filter(|telemetry| {
            let is_configured = experiment.modes.iter().any(|mode| mode.configures_envoys());
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
        sidecar_scope: settings.sidecar_scope && experiment.modes.iter().any(|mode| mode.has_sidecars()),
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
        rate: figure.rate.map(Number::of),
        clients: figure.clients,
        gateway_cpu: figure.gateway_cpu_cores.map(CpuCores),
        value: match figure.value {
            ReferenceValue::Cpu(cores) => ValueView::Cores(CpuCores(cores)),
            ReferenceValue::Throughput(rate) | ReferenceValue::ThroughputPerCpu(rate) => {
                ValueView::Rate(Number::of(rate))
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
