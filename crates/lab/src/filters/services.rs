//! Services behind the filters of a gateway, each in a pod of its own.

use super::FilterPrograms;
use crate::Result;
use crate::component_name::lab_name;
use crate::container::{Container, ContainerSpec, ContainerUser};
use crate::deployment::rollout::Rollout;
use crate::local_lab::LocalLab;
use crate::private_dir::PrivateDir;
use crate::running::Supporting;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use components::Component;
use experiment::dataplane::Entry;
use experiment::environment::{DeploymentSpec, EnvironmentError, ErrorContext as _};
use experiment::schema::Role;
use mesh::admin::Admin;
use mesh::admin::liveness::LivenessProbe;
use mesh::filters::{
    CREDENTIAL_HEADER, Filter, FilterService, GatewayFilters, LIMIT_DOMAIN, PROBE_DESCRIPTOR, service_limits,
    wasm,
};
use mesh::istio::token::TokenIssuer;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

/// Port on the loopback of its pod where a service serves its counters.
const COUNTERS_PORT: u16 = 8079;
pub(super) const COUNTERS_PATH: &str = "/counters";
const CREDENTIAL_VARIABLE: &str = "FILTER_SERVICES_API_KEY";
const CREDENTIAL_BYTES: usize = 24;
const STORE: &str = "rate-limit-store";
const STORE_PORT: u16 = 6379;
/// Health port of the rate limit service, on the loopback of its pod: it is healthy once it has its limits.
const HEALTH_PORT: u16 = 8082;
const DEBUG_PORT: u16 = 6070;
/// The core rule set takes half a second to load on an idle core.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The filters of a deployment's gateways.
#[derive(Debug)]
pub(crate) struct Filters {
    pub configuration: GatewayFilters,
    /// Headers that let requests pass, apart from tokens, such as `x-api-key: …`.
    pub headers: Vec<String>,
    /// Counters of the services, by filter.
    pub(super) counters: BTreeMap<Filter, Admin>,
    pub supporting: Vec<Supporting>,
}

impl Filters {
    /// Filters of a deployment's scenario; empty without a gateway.
    pub fn for_spec(spec: &DeploymentSpec) -> Vec<Filter> {
        match spec.parts().entry {
            Entry::Direct => Vec::new(),
            Entry::Gateway | Entry::Ingress => Filter::for_scenario(spec.ingress.scenario),
        }
    }

    /// Starts the services of the scenario and waits until they serve; absent if it has no filters.
    pub fn start(rollout: &mut Rollout<'_>, lab: &LocalLab) -> Result<Option<Self>> {
        let filters = Self::for_spec(rollout.context.spec);
        if filters.is_empty() {
            return Ok(None);
        }
        check_protocols(rollout)?;
        let token_keys = rollout.tokens.as_ref().map(TokenIssuer::public_keys).unwrap_or_default();
        let mut started = Self {
            configuration: GatewayFilters {
                filters: filters.clone(),
                token_keys,
                ..GatewayFilters::default()
            },
            headers: Vec::new(),
            counters: BTreeMap::new(),
            supporting: Vec::new(),
        };
        let has_services = filters.iter().any(|filter| filter.service().is_some());
        let programs = has_services.then(|| lab.filter_programs()).transpose()?;
        for filter in filters {
            if filter == Filter::Wasm {
                started.configuration.wasm_module = wasm_module(rollout)?;
            }
            if let (Some(service), Some(programs)) = (filter.service(), programs) {
                started.start_service(rollout, programs, filter, service)?;
            }
        }
        started.wait_until_ready(rollout)?;
        Ok(Some(started))
    }

    fn start_service(
        &mut self,
        rollout: &mut Rollout<'_>,
        programs: &FilterPrograms,
        filter: Filter,
        service: FilterService,
    ) -> Result<()> {
        let addresses = [
            format!("--listen={}", SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, service.port)),
            format!("--counters={}", SocketAddrV4::new(Ipv4Addr::LOCALHOST, COUNTERS_PORT)),
        ];
        let spec = match filter {
            Filter::GlobalRateLimit => self.rate_limit(rollout, programs, service)?,
            Filter::Waf => {
                container(rollout, service.name, programs, ["waf".to_owned()].into_iter().chain(addresses))
            }
            _ => {
                let protocol = if service.speaks_grpc { "grpc" } else { "http" };
                let arguments = ["ext-authz".to_owned(), format!("--protocol={protocol}")];
                let credential = credential()?;
                self.headers.push(format!("{CREDENTIAL_HEADER}: {credential}"));
                ContainerSpec {
                    environment: environment([(CREDENTIAL_VARIABLE, credential)]),
                    ..container(rollout, service.name, programs, arguments.into_iter().chain(addresses))
                }
            }
        };
        let (address, admin) = self.run(rollout, &spec, Some(COUNTERS_PORT))?;
        self.configuration.services.push((service, address));
        self.counters.insert(filter, admin.expect("its counters have a port"));
        Ok(())
    }

    /// Starts the store of the rate limit service and returns the container for that service.
    fn rate_limit(
        &mut self,
        rollout: &mut Rollout<'_>,
        programs: &FilterPrograms,
        service: FilterService,
    ) -> Result<ContainerSpec> {
        let store = ContainerSpec {
            arguments: store_arguments(programs.store.component),
            ..rollout.context.container(STORE, &programs.store.path)
        };
        let (store, _) = self.run(rollout, &store, None)?;
        self.wait_until_listening(rollout, STORE, STORE_PORT)?;
        let limits = limits_directory(rollout)?;
        let variables = [
            ("GRPC_PORT", service.port.to_string()),
            ("HOST", Ipv4Addr::LOCALHOST.to_string()),
            ("PORT", HEALTH_PORT.to_string()),
            ("DEBUG_HOST", Ipv4Addr::LOCALHOST.to_string()),
            ("DEBUG_PORT", DEBUG_PORT.to_string()),
            // Statistics are still counted, but not sent to statsd.
            ("DISABLE_STATS", "true".to_owned()),
            ("RUNTIME_ROOT", limits.display().to_string()),
            ("RUNTIME_WATCH_ROOT", "false".to_owned()),
            ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "true".to_owned()),
            ("REDIS_SOCKET_TYPE", "tcp".to_owned()),
            ("REDIS_URL", SocketAddrV4::new(store, STORE_PORT).to_string()),
        ];
        let arguments = [
            "service".to_owned(),
            format!("--counters={}", SocketAddrV4::new(Ipv4Addr::LOCALHOST, COUNTERS_PORT)),
            format!("--limit={LIMIT_DOMAIN}.{PROBE_DESCRIPTOR}"),
        ];
        Ok(ContainerSpec {
            arguments: arguments.map(OsString::from).to_vec(),
            environment: environment(variables),
            ..rollout.context.container(service.name, &programs.rate_limit.path)
        })
    }

    /// Runs a container in a pod of its own with the same name. Returns its address, and its counters if it
    /// has a port for them.
    fn run(
        &mut self,
        rollout: &mut Rollout<'_>,
        spec: &ContainerSpec,
        counters_port: Option<u16>,
    ) -> Result<(Ipv4Addr, Option<Admin>)> {
        let pod = rollout.create_proxy_pod(&spec.name, 0)?;
        let pod = &mut rollout.pods.infrastructure[pod];
        let container = pod.start(spec)?;
        let admin = counters_port.map(|port| pod.admin(&spec.name, port));
        let liveness = admin.clone().map(|admin| LivenessProbe { process: None, admin, path: COUNTERS_PATH });
        self.supporting.push(Supporting {
            name: spec.name.clone(),
            role: Role::FilterService,
            pod: pod.name().to_owned(),
            container,
            liveness,
            is_running: true,
            shows_network: true,
        });
        Ok((pod.address(), admin))
    }

    fn wait_until_ready(&self, rollout: &Rollout<'_>) -> Result<()> {
        for (service, _) in &self.configuration.services {
            self.wait_until_listening(rollout, service.name, service.port)?;
        }
        let Some(service) = Filter::GlobalRateLimit
            .service()
            .filter(|_| self.configuration.filters.contains(&Filter::GlobalRateLimit))
        else {
            return Ok(());
        };
        let (pod, container) = self.running(rollout, service.name);
        let health = pod.admin(service.name, HEALTH_PORT);
        let what = format!("{} has its limits", service.name);
        pod.wait_until(container, &what, READY_TIMEOUT, || Ok(health.ask("/healthcheck").is_ok()))
    }

    fn wait_until_listening(&self, rollout: &Rollout<'_>, name: &str, port: u16) -> Result<()> {
        let (pod, container) = self.running(rollout, name);
        pod.wait_until_listening(container, port, READY_TIMEOUT)
    }

    fn running<'a>(&'a self, rollout: &'a Rollout<'_>, name: &str) -> (&'a crate::pod::Pod, &'a Container) {
        let service = self.supporting.iter().find(|service| service.name == name);
        let service = service.expect("it was started");
        let pod = rollout.pods.infrastructure.iter().find(|pod| pod.name() == service.pod);
        (pod.expect("it runs in a pod"), &service.container)
    }
}

/// Rejects targets without HTTP: filters read requests, and HTTP requests probe them.
fn check_protocols(rollout: &Rollout<'_>) -> Result<()> {
    let targets = rollout.topology().drivers.iter().map(|driver| rollout.workload(driver.target));
    match targets.into_iter().find(|target| !target.protocol.is_http()) {
        None => Ok(()),
        Some(target) => {
            let scenario = rollout.context.spec.ingress.scenario.name();
            let reason = format!("{} speaks no HTTP", target.qualified_name());
            Err(EnvironmentError::new(format!("run scenario {scenario}"), reason))
        }
    }
}

fn container(
    rollout: &Rollout<'_>,
    name: &str,
    programs: &FilterPrograms,
    arguments: impl Iterator<Item = String>,
) -> ContainerSpec {
    ContainerSpec {
        arguments: arguments.map(OsString::from).collect(),
        ..rollout.context.container(name, &programs.services.path)
    }
}

fn environment<const N: usize>(variables: [(&str, String); N]) -> BTreeMap<String, OsString> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn store_arguments(program: Component) -> Vec<OsString> {
    let arguments = if program == Component::RedisServer {
        // The store's data does not outlive the deployment, and only its pods can reach it.
        format!(
            "--port {STORE_PORT} --bind 0.0.0.0 --protected-mode no --save --appendonly no --daemonize no"
        )
    } else {
        format!("store --listen 0.0.0.0:{STORE_PORT}")
    };
    arguments.split(' ').map(OsString::from).collect()
}

/// A random credential for the requests of this deployment.
fn credential() -> Result<String> {
    let mut bytes = [0; CREDENTIAL_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes).map_err(|error| error.to_string());
    filled.context("draw the credential of requests")?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Directory with the limits in the service's format. JSON is valid YAML.
fn limits_directory(rollout: &mut Rollout<'_>) -> Result<PathBuf> {
    let name = lab_name(&format!("t{}-rate-limits", rollout.context.number));
    let directory = PrivateDir(rollout.context.lab.create_private_dir(&name, ContainerUser::Lab)?);
    let path = directory.path().to_owned();
    let file = path.join("config/limits.yaml");
    fs::create_dir(path.join("config"))
        .and_then(|()| fs::write(&file, service_limits().to_string()))
        .context(format!("write {}", file.display()))?;
    rollout.directories.push(directory);
    Ok(path)
}

/// The WebAssembly module, readable for proxies.
fn wasm_module(rollout: &mut Rollout<'_>) -> Result<PathBuf> {
    let name = lab_name(&format!("t{}-wasm", rollout.context.number));
    let directory = PrivateDir(rollout.context.lab.create_private_dir(&name, ContainerUser::Lab)?);
    let file = directory.path().join("gateway.wasm");
    fs::write(&file, wasm::module()?).context(format!("write {}", file.display()))?;
    rollout.directories.push(directory);
    rollout.context.lab.expose_file(&file)
}
