//! The istiods of a control plane: one next to the API server, or several in pods of their own. Those can be
//! killed, added and removed while proxies are connected.

use super::ControlPlanePlan;
use crate::Result;
use crate::certificates::write_private;
use crate::container::{Container, ContainerSpec, ENDED_TIMEOUT};
use crate::lab::Lab;
use crate::pod::{Pod, PodSpec};
use crate::running::Supporting;
use crate::wait::wait_for;
use experiment::environment::EnvironmentError;
use experiment::schema::{Happening, ProxySetup, Role};
use experiment::settings::istio::IstiodSettings;
use experiment::topology::Resources;
use jiff::Timestamp;
use mesh::admin::Admin;
use mesh::admin::liveness::LivenessProbe;
use mesh::concurrent::try_side_by_side;
use mesh::istio::istiod::{self, Identity};
use mesh::names::{DISCOVERY_PORT, ISTIOD, ISTIOD_DEBUG_PORT, ISTIOD_HTTP_PORT};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Time until an istiod is ready. With a small CPU limit and a large mesh this takes minutes.
const READY_TIMEOUT: Duration = Duration::from_secs(150);
/// Not shorter, since readiness requests use istiod's CPU time.
const POLL_INTERVAL: Duration = Duration::from_millis(15);
/// Grace period of an istiod that is removed.
const GRACE: Duration = Duration::from_secs(10);

/// Inputs that every istiod of a control plane is started with.
#[derive(Debug)]
pub(super) struct Starter {
    lab: Lab,
    kubeconfig: PathBuf,
    mesh_config: PathBuf,
    working_directory: PathBuf,
    log_dir: PathBuf,
    proxies: ProxySetup,
    settings: IstiodSettings,
}

impl Starter {
    /// Writes the mesh configuration to the control plane's own directory.
    pub fn new(
        lab: &Lab,
        kubeconfig: &Path,
        (directory, log_dir): (&Path, &Path),
        plan: &ControlPlanePlan,
    ) -> Result<Self> {
        let ControlPlanePlan { istiod: settings, proxies, .. } = *plan;
        let mesh_config = directory.join("mesh.json");
        let config = istiod::mesh_config(proxies.telemetry).to_string();
        write_private(&mesh_config, config.as_bytes(), None)?;
        Ok(Self {
            lab: lab.clone(),
            kubeconfig: kubeconfig.to_path_buf(),
            mesh_config,
            working_directory: directory.to_path_buf(),
            log_dir: log_dir.to_path_buf(),
            proxies,
            settings,
        })
    }

    /// Starts an istiod. The API reaches its webhook at `webhook_host`.
    fn start(&self, pod: &mut Pod, name: &str, program: &Path, webhook_host: Ipv4Addr) -> Result<Container> {
        let identity = Identity { pod: name, webhook_host: &webhook_host.to_string() };
        let arguments = istiod::arguments(&self.kubeconfig, &self.mesh_config);
        let IstiodSettings { cpu_limit_cores, memory_limit_bytes, .. } = self.settings;
        pod.start(&ContainerSpec {
            arguments: arguments.into_iter().map(OsString::from).collect(),
            environment: istiod::environment(self.proxies, &identity, &self.settings),
            working_directory: Some(self.working_directory.clone()),
            limits: Resources { cpu_limit_cores, memory_limit_bytes, ..Resources::default() },
            ..ContainerSpec::new(name, program, self.log_dir.join(format!("{name}.log")))
        })
    }
}

#[derive(Debug)]
pub(super) struct Istiod {
    program: PathBuf,
    pub container: Container,
    /// Absent if it shares the pod of the API server.
    own_pod: Option<Pod>,
    pod_name: String,
    address: Ipv4Addr,
    /// Address at which the API reaches its webhook.
    webhook_host: Ipv4Addr,
    /// HTTP port with readiness and debug pages.
    pub http: Admin,
    /// HTTP port with metrics.
    pub metrics: Admin,
}

impl Istiod {
    pub fn beside_api_server(starter: &Starter, program: &Path, pod: &mut Pod) -> Result<Self> {
        let webhook_host = Ipv4Addr::LOCALHOST;
        let container = starter.start(pod, ISTIOD, program, webhook_host)?;
        Ok(Self::new(container, program, pod, webhook_host))
    }

    pub fn in_own_pod(starter: &Starter, name: &str, program: &Path) -> Result<Self> {
        let mut pod = starter.lab.create_pod(&PodSpec::new(name))?;
        let webhook_host = pod.address();
        let container = starter.start(&mut pod, name, program, webhook_host)?;
        let istiod = Self::new(container, program, &pod, webhook_host);
        Ok(Self { own_pod: Some(pod), ..istiod })
    }

    fn new(container: Container, program: &Path, pod: &Pod, webhook_host: Ipv4Addr) -> Self {
        Self {
            program: program.to_path_buf(),
            own_pod: None,
            pod_name: pod.name().to_owned(),
            address: pod.address(),
            webhook_host,
            http: pod.admin(container.name(), ISTIOD_HTTP_PORT),
            metrics: pod.admin(container.name(), ISTIOD_DEBUG_PORT),
            container,
        }
    }

    fn name(&self) -> &str {
        self.container.name()
    }

    pub fn webhook_host(&self) -> Ipv4Addr {
        self.webhook_host
    }

    /// Address at which proxies reach it.
    pub fn discovery(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address, DISCOVERY_PORT)
    }

    pub fn own_pod(&self) -> Option<&Pod> {
        self.own_pod.as_ref()
    }

    fn start_again(&mut self, starter: &Starter) -> Result<()> {
        let name = self.name().to_owned();
        let operation = || format!("start {name} again");
        let pod = self.own_pod.as_mut();
        let pod = pod.ok_or_else(|| EnvironmentError::new(operation(), "it has no pod of its own"))?;
        if self.container.wait(ENDED_TIMEOUT).is_none() {
            return Err(EnvironmentError::new(operation(), "the killed process did not end"));
        }
        self.container = starter.start(pod, &name, &self.program, self.webhook_host)?;
        Ok(())
    }

    fn supporting(&self, is_running: bool) -> Supporting {
        let probe = LivenessProbe { process: None, admin: self.http.clone(), path: "/ready" };
        Supporting {
            name: self.name().to_owned(),
            role: Role::ControlPlane,
            pod: self.pod_name.clone(),
            container: self.container.clone(),
            liveness: is_running.then_some(probe),
            is_running,
            shows_network: true,
        }
    }

    fn note(&self, kind: &str) -> Happening {
        happening(kind, self.name())
    }
}

/// An event that has just happened.
pub(crate) fn happening(kind: &str, detail: &str) -> Happening {
    let now = Timestamp::now().as_duration();
    Happening { at_unix_s: now.as_secs_f64(), kind: kind.to_owned(), detail: detail.to_owned() }
}

/// The istiods of a control plane, in start order. The first one is never removed.
#[derive(Debug)]
pub(super) struct Istiods {
    starter: Starter,
    first: Istiod,
    others: Vec<Istiod>,
    /// Removed istiods. Their counters still show their usage.
    removed: Vec<Istiod>,
}

impl Istiods {
    pub fn new(starter: Starter, first: Istiod) -> Self {
        Self { starter, first, others: Vec::new(), removed: Vec::new() }
    }

    pub fn first(&self) -> &Istiod {
        &self.first
    }

    pub fn running(&self) -> impl Iterator<Item = &Istiod> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Components of all istiods, including removed ones.
    pub fn supporting(&self) -> impl Iterator<Item = Supporting> {
        let running = self.running().map(|istiod| istiod.supporting(true));
        running.chain(self.removed.iter().map(|istiod| istiod.supporting(false)))
    }

    /// Starts one more istiod per program and waits until all are ready. An error from `check` ends the wait.
    pub fn add(&mut self, programs: &[&Path], check: &dyn Fn(&str) -> Result<()>) -> Result<Vec<Happening>> {
        let numbers = self.running().count() + self.removed.len() + 1..;
        let started = try_side_by_side(numbers.zip(programs), |(number, program)| {
            Istiod::in_own_pod(&self.starter, &format!("{ISTIOD}-{number}"), program)
        })?;
        let mut happened: Vec<Happening> =
            started.iter().map(|istiod| istiod.note("istiod-started")).collect();
        self.others.extend(started);
        self.wait_until_ready(check, &mut happened)?;
        Ok(happened)
    }

    /// Starts one more istiod of the first one's program.
    pub fn add_one(&mut self, check: &dyn Fn(&str) -> Result<()>) -> Result<Vec<Happening>> {
        let program = self.first.program.clone();
        self.add(&[&program], check)
    }

    /// Ends the istiod that was started last.
    pub fn remove_last(&mut self) -> Result<Vec<Happening>> {
        let last = self.others.pop();
        let last = last.ok_or_else(|| EnvironmentError::new("remove an istiod", "there is only one"))?;
        let begun = last.note("istiod-told-to-end");
        last.container.stop(GRACE)?;
        let ended = last.note("istiod-removed");
        self.removed.push(last);
        Ok(vec![begun, ended])
    }

    /// Kills all istiods at once and restarts them.
    pub fn restart(&mut self, check: &dyn Fn(&str) -> Result<()>) -> Result<Vec<Happening>> {
        let mut happened = Vec::new();
        for istiod in self.running() {
            istiod.container.kill();
            happened.push(istiod.note("istiod-killed"));
        }
        for istiod in std::iter::once(&mut self.first).chain(&mut self.others) {
            istiod.start_again(&self.starter)?;
        }
        self.wait_until_ready(check, &mut happened)?;
        Ok(happened)
    }

    fn wait_until_ready(
        &self,
        check: &dyn Fn(&str) -> Result<()>,
        happened: &mut Vec<Happening>,
    ) -> Result<()> {
        let mut waiting: Vec<&Istiod> = self.running().collect();
        let what = "every istiod is ready";
        wait_for(what, READY_TIMEOUT, || {
            check(what)?;
            waiting.iter().try_for_each(|istiod| istiod.container.check(format!("wait until {what}")))?;
            for istiod in waiting.extract_if(.., |istiod| istiod.http.ask("/ready").is_ok()) {
                happened.push(istiod.note("istiod-ready"));
            }
            if waiting.is_empty() {
                return Ok(Some(()));
            }
            thread::sleep(POLL_INTERVAL);
            Ok(None)
        })
    }
}
