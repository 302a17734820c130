//! Sections of the file, in the order in which they are written.

use crate::settings::fleet::FleetSettings;
use crate::settings::ingress::{Estate, GatewaySettings, Scenario};
use crate::settings::istio::{
    IngressApi, IngressTls, IstiodSettings, TelemetrySetting, WorkloadKeys, ZtunnelPlacement,
};
use crate::settings::proxy::{AccessLog, MutualTls};
use results::units::{ByteSize, CpuCores, Fraction, TimeSpan};
use results::{ExpectedStatuses, Mode, Pacing, TimeFigure};
use serde::{Serialize, Serializer};
use std::path::Path;
use std::time::Duration;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct LoadView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requests_per_connection: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<Vec<Number>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clients: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arrival: Option<&'static str>,
    pub(super) warmup: TimeSpan,
    pub(super) duration: TimeSpan,
    pub(super) timeout: TimeSpan,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expect_status: Option<ExpectedStatuses>,
    pub(super) threads: usize,
    pub(super) generators: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pacing: Option<Pacing>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FleetView {
    pub(super) proxies: usize,
    pub(super) kind: String,
    pub(super) xds: &'static str,
    pub(super) security: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) services: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pods: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespaces: Option<usize>,
    pub(super) virtual_services: usize,
    pub(super) destination_rules: usize,
    pub(super) gateways: usize,
    pub(super) policies: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) scope: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) on_demand: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) witnesses: usize,
    pub(super) churn: String,
    pub(super) changes: Vec<String>,
    pub(super) between: TimeSpan,
    pub(super) duration: TimeSpan,
    pub(super) settle: TimeSpan,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connect_rate: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threads: Option<usize>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Signature required by serde.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl FleetView {
    pub(super) fn new(fleet: &FleetSettings) -> Self {
        // If there is a topology, it defines these.
        let number = |number: usize| fleet.topology.is_none().then_some(number);
        Self {
            proxies: fleet.proxies,
            kind: fleet.kinds.to_string(),
            xds: fleet.xds.name(),
            security: fleet.security.name(),
            services: number(fleet.services),
            pods: number(fleet.pods),
            namespaces: number(fleet.namespaces),
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
            connect_rate: fleet.connect_rate.map(Number::new),
            threads: fleet.threads,
        }
    }
}

/// Settings of the mesh; with a fleet, of the control plane only.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum IstioSection<'a> {
    Mesh(Box<IstioView<'a>>),
    ControlPlane { istiod: IstiodView },
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct IstiodView {
    pub(super) replicas: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<CpuCores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) debounce_after: Option<TimeSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) debounce_max: Option<TimeSpan>,
}

impl IstiodView {
    pub(super) fn new(istiod: &IstiodSettings) -> Self {
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
pub(super) struct ResolveView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p50: Option<TimeSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p99: Option<TimeSpan>,
}

#[derive(Serialize)]
pub(super) struct ObjectiveView {
    #[serde(flatten, serialize_with = "bounds_in_order")]
    pub(super) times: Vec<(TimeFigure, Duration)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) errors: Option<Fraction>,
}

fn bounds_in_order<S: Serializer>(
    times: &[(TimeFigure, Duration)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(times.iter().map(|(figure, bound)| (figure.name(), TimeSpan(*bound))))
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ProxyView {
    pub(super) workers: usize,
    pub(super) mtls: MutualTls,
    pub(super) access_log: AccessLog,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<CpuCores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_time: Option<TimeSpan>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct IstioView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) telemetry: Option<TelemetrySetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tracing: Option<Fraction>,
    pub(super) authorization: AuthorizationView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lua: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wasm: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retries: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timeout: Option<TimeSpan>,
    #[serde(rename = "http2-upgrade", skip_serializing_if = "std::ops::Not::not")]
    pub(super) http2_upgrade: bool,
    pub(super) sidecar_scope: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) dns_capture: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) dns_auto_allocate: bool,
    pub(super) surroundings: SurroundingsView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ingress: Option<IngressView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ztunnel: Option<ZtunnelPlacement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workload_keys: Option<WorkloadKeys>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct AuthorizationView {
    pub(super) paths: usize,
    pub(super) identities: usize,
    pub(super) jwt: bool,
}

#[derive(Serialize)]
pub(super) struct SurroundingsView {
    pub(super) services: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) endpoints: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct IngressView {
    pub(super) tls: IngressTls,
    pub(super) api: IngressApi,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct EstateView {
    pub(super) domains: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) paths: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) credentials: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requested_paths: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requested_domains: Option<usize>,
    pub(super) scenario: Scenario,
}

impl EstateView {
    pub(super) fn new(estate: &Estate) -> Self {
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
pub(super) struct GatewayView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<CpuCores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workers: Option<usize>,
}

impl GatewayView {
    pub(super) fn new(gateway: &GatewaySettings) -> Self {
        Self {
            cpu: gateway.cpu_limit_cores.map(CpuCores),
            memory: gateway.memory_limit_bytes.map(ByteSize),
            workers: gateway.workers,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ServerView {
    pub(super) delay: TimeSpan,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_time: Option<TimeSpan>,
    pub(super) error_rate: Fraction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<CpuCores>,
}

#[derive(Serialize)]
pub(super) struct ClientView {
    pub(super) cpu: CpuCores,
}

#[derive(Serialize)]
pub(super) struct PublishedView<'a> {
    pub(super) source: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) differs: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) margin: Option<Fraction>,
    pub(super) figures: Vec<FigureView<'a>>,
}

#[derive(Serialize)]
pub(super) struct FigureView<'a> {
    pub(super) figure: String,
    pub(super) mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) component: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clients: Option<usize>,
    #[serde(rename = "gateway-cpu", skip_serializing_if = "Option::is_none")]
    pub(super) gateway_cpu: Option<CpuCores>,
    pub(super) value: ValueView,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ValueView {
    Cores(CpuCores),
    Size(ByteSize),
    Time(TimeSpan),
    Rate(Number),
    Text(String),
}

/// Number without a needless decimal point: 1000, not 1000.0.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Number {
    Whole(u64),
    Decimal(f64),
}

impl Number {
    pub(super) fn new(value: f64) -> Self {
        if value.fract() == 0.0 && value < 1e15 { Self::Whole(value as u64) } else { Self::Decimal(value) }
    }
}
