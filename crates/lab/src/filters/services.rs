//! Services behind the filters of a gateway, each in a pod of its own.

use crate::Result;
use crate::certificates::write_private;
use crate::confined::server_user;
use crate::container::{Confined, Container, ContainerSpec, ContainerUser};
use crate::context::variables;
use crate::local_lab::LocalLab;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::programs::FilterPrograms;
use crate::rollout::Rollout;
use crate::rollout::filters::Filters;
use crate::running::Supporting;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use components::{Component, Installed};
use experiment::environment::{EnvironmentError, ErrorContext as _};
use mesh::filters::{
    CREDENTIAL_HEADER, Filter, FilterService, GatewayFilters, LIMIT_DOMAIN, PROBE_DESCRIPTOR, service_limits,
    wasm,
};
use mesh::istio::token::TokenIssuer;
use results::Role;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
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

impl Filters {
    /// Starts the services of the scenario and waits until they serve; absent if it has no filters.
    pub fn start(rollout: &mut Rollout<'_>, lab: &LocalLab) -> Result<Option<Self>> {
        let filters = Self::for_spec(rollout.context.spec);
        if filters.is_empty() {
            return Ok(None);
        }
        check_protocols(rollout)?;
        let token_keys = rollout.tokens.as_ref().map(TokenIssuer::public_keys).unwrap_or_default();
        let mut started = Self {
            configuration: GatewayFilters { filters, token_keys, ..GatewayFilters::default() },
            headers: Vec::new(),
            counters: BTreeMap::new(),
            supporting: Vec::new(),
        };
        for filter in started.configuration.filters.clone() {
            if filter == Filter::Wasm {
                let directory = create_directory(rollout, "wasm", ContainerUser::Lab)?;
                let module = directory.join("gateway.wasm");
                write_private(&module, wasm::MODULE, None)?;
                started.configuration.wasm_module = rollout.context.lab.expose_file(&module)?;
            }
            if let Some(service) = filter.service() {
                started.start_service(rollout, lab.filter_programs()?, filter, service)?;
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
        let listen = format!("--listen={}", SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, service.port));
        let program = match filter {
            Filter::GlobalRateLimit => &programs.rate_limit,
            _ => &programs.services,
        };
        let mut confined = Confined::for_programs(&[program]);
        let user = server_user(confined.as_ref());
        let (arguments, environment) = match filter {
            Filter::GlobalRateLimit => {
                let arguments =
                    vec!["service".to_owned(), format!("--limit={LIMIT_DOMAIN}.{PROBE_DESCRIPTOR}")];
                let limits = write_limits(rollout, user)?;
                confined = confined.map(|confined| confined.reading([limits.as_path()]));
                (arguments, self.rate_limit(rollout, &programs.store, service, &limits)?)
            }
            Filter::Waf => (vec!["waf".to_owned(), listen], BTreeMap::new()),
            _ => {
                let protocol = if service.speaks_grpc { "grpc" } else { "http" };
                let arguments = vec!["ext-authz".to_owned(), format!("--protocol={protocol}"), listen];
                let credential = credential()?;
                self.headers.push(format!("{CREDENTIAL_HEADER}: {credential}"));
                (arguments, variables([(CREDENTIAL_VARIABLE, credential)]))
            }
        };
        let counters = format!("--counters={}", SocketAddrV4::new(Ipv4Addr::LOCALHOST, COUNTERS_PORT));
        let spec = ContainerSpec {
            user,
            confined,
            arguments: arguments.into_iter().chain([counters]).map(OsString::from).collect(),
            environment,
            ..rollout.context.container(service.name, &program.path)
        };
        let pod = self.run(rollout, &spec, Some((COUNTERS_PORT, COUNTERS_PATH)))?;
        self.configuration.services.push((service, pod.address()));
        self.counters.insert(filter, pod.admin(service.name, COUNTERS_PORT));
        Ok(())
    }

    /// Starts the store of the rate limit service and returns the environment of that service.
    fn rate_limit(
        &mut self,
        rollout: &mut Rollout<'_>,
        store: &Installed,
        service: FilterService,
        limits: &Path,
    ) -> Result<BTreeMap<String, OsString>> {
        let confined = Confined::for_programs(&[store]);
        let spec = ContainerSpec {
            user: server_user(confined.as_ref()),
            confined,
            arguments: store_arguments(store.component),
            ..rollout.context.container(STORE, &store.path)
        };
        let address = self.run(rollout, &spec, None)?.address();
        let (pod, container) = self.running(rollout, STORE);
        pod.wait_until_listening(container, STORE_PORT, READY_TIMEOUT)?;
        Ok(variables([
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
            ("REDIS_URL", SocketAddrV4::new(address, STORE_PORT).to_string()),
        ]))
    }

    /// Runs a container in a pod of its own with the same name, and returns the pod.
    fn run<'a>(
        &mut self,
        rollout: &'a mut Rollout<'_>,
        spec: &ContainerSpec,
        probe: Option<(u16, &'static str)>,
    ) -> Result<&'a Pod> {
        let pod = rollout.create_proxy_pod(&spec.name, 0)?;
        let pod = &mut rollout.pods.infrastructure[pod];
        let container = pod.start(spec)?;
        self.supporting.push(Supporting::new(Role::FilterService, pod, container, probe));
        Ok(pod)
    }

    fn wait_until_ready(&self, rollout: &Rollout<'_>) -> Result<()> {
        for (service, _) in &self.configuration.services {
            let (pod, container) = self.running(rollout, service.name);
            pod.wait_until_listening(container, service.port, READY_TIMEOUT)?;
            if Filter::GlobalRateLimit.service() == Some(*service) {
                let health = pod.admin(service.name, HEALTH_PORT);
                let what = format!("{} has its limits", service.name);
                let is_healthy = || Ok(health.ask("/healthcheck").is_ok());
                pod.wait_until(container, &what, READY_TIMEOUT, is_healthy)?;
            }
        }
        Ok(())
    }

    fn running<'a>(&'a self, rollout: &'a Rollout<'_>, name: &str) -> (&'a Pod, &'a Container) {
        let service = self.supporting.iter().find(|service| service.name == name);
        let service = service.expect("it was started");
        let pod = rollout.pods.infrastructure.iter().find(|pod| pod.name() == service.pod);
        (pod.expect("it runs in a pod"), &service.container)
    }
}

/// Rejects targets without HTTP: filters read requests, and HTTP requests probe them.
fn check_protocols(rollout: &Rollout<'_>) -> Result<()> {
    let targets = rollout.topology().drivers.iter().map(|driver| rollout.workload(driver.target));
    let Some(target) = targets.into_iter().find(|target| !target.protocol.is_http()) else { return Ok(()) };
    let scenario = rollout.context.spec.ingress.scenario.name();
    let reason = format!("{} speaks no HTTP", target.qualified_name());
    Err(EnvironmentError::new(format!("run scenario {scenario}"), reason))
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

/// Creates a directory that is removed with the deployment.
fn create_directory(rollout: &mut Rollout<'_>, directory: &str, user: ContainerUser) -> Result<PathBuf> {
    let name = format!("t{}-{directory}", rollout.context.number);
    let directory = PrivateDir::create(rollout.context.lab, &name, user)?;
    let path = directory.path().to_owned();
    rollout.directories.push(directory);
    Ok(path)
}

/// Writes the limits of the rate limit service. Returns the directory that it reads.
fn write_limits(rollout: &mut Rollout<'_>, user: ContainerUser) -> Result<PathBuf> {
    let directory = create_directory(rollout, "rate-limits", user)?;
    let lab = rollout.context.lab;
    let configuration = directory.join("config");
    fs::create_dir(&configuration).context(format!("make {}", configuration.display()))?;
    lab.give_to(&configuration, user)?;
    // JSON is valid YAML.
    let limits = service_limits().to_string();
    write_private(&configuration.join("limits.yaml"), limits.as_bytes(), lab.user_of(user))?;
    Ok(directory)
}
