//! The istiods of a control plane: one next to the API server, or several in pods of their own. Those can be
//! killed, added and removed while proxies are connected.

use super::starting::{KUBECONFIG, MESH_CONFIG, Starter};
use crate::Result;
use crate::container::{Confined, ENDED_TIMEOUT};
use crate::pod::{Pod, PodSpec};
use crate::running::Supporting;
use crate::wait::wait_for;
use components::Installed;
use experiment::environment::EnvironmentError;
use experiment::settings::istio::IstiodSettings;
use experiment::topology::Resources;
use jiff::Timestamp;
use mesh::admin::Admin;
use mesh::concurrent::try_side_by_side;
use mesh::istio::istiod::{self, Identity};
use mesh::names::{DISCOVERY_PORT, ISTIOD, ISTIOD_DEBUG_PORT, ISTIOD_HTTP_PORT};
use results::{Happening, Role};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::Duration;

/// Time until an istiod is ready. With a small CPU limit and a large mesh this takes minutes.
const READY_TIMEOUT: Duration = Duration::from_secs(150);
/// Not shorter, since readiness requests use istiod's CPU time.
const POLL_INTERVAL: Duration = Duration::from_millis(15);
/// Grace period of an istiod that is removed.
const GRACE: Duration = Duration::from_secs(10);
const READY_PATH: &str = "/ready";

#[derive(Debug)]
pub(super) struct Istiod {
    pub program: Installed,
    /// Absent if it shares the pod of the API server.
    pub own_pod: Option<Pod>,
    /// Address at which proxies reach it.
    pub discovery: SocketAddrV4,
    /// Address at which the API reaches its webhook.
    pub webhook_host: Ipv4Addr,
    /// HTTP port with readiness and debug pages.
    pub http: Admin,
    /// HTTP port with metrics.
    pub metrics: Admin,
    pub part: Supporting,
}

impl Istiod {
    pub fn beside_api_server(starter: &Starter, program: &Installed, pod: &mut Pod) -> Result<Self> {
        Self::start(starter, ISTIOD, program, pod, Ipv4Addr::LOCALHOST)
    }

    pub fn in_own_pod(starter: &Starter, name: &str, program: &Installed) -> Result<Self> {
        let mut pod = starter.lab.create_pod(&PodSpec::new(name))?;
        let webhook_host = pod.address();
        let istiod = Self::start(starter, name, program, &mut pod, webhook_host)?;
        Ok(Self { own_pod: Some(pod), ..istiod })
    }

    /// Starts an istiod, whose webhook the API reaches at `webhook_host`.
    fn start(
        starter: &Starter,
        name: &str,
        program: &Installed,
        pod: &mut Pod,
        webhook_host: Ipv4Addr,
    ) -> Result<Self> {
        let identity = Identity { pod: name, webhook_host: &webhook_host.to_string() };
        let settings = &starter.plan.istiod;
        let IstiodSettings { cpu_limit_cores, memory_limit_bytes, .. } = *settings;
        let confined = Confined::for_programs(&[program]);
        let directory = starter.istiod_directory(confined.as_ref());
        let arguments = istiod::arguments(&directory.join(KUBECONFIG), &directory.join(MESH_CONFIG));
        let environment = istiod::environment(starter.plan.proxies, &identity, settings);
        let limits = Resources { cpu_limit_cores, memory_limit_bytes, ..Resources::default() };
        let container =
            starter.start(pod, (name, &program.path), confined, arguments, environment, limits)?;
        Ok(Self {
            program: program.clone(),
            own_pod: None,
            discovery: SocketAddrV4::new(pod.address(), DISCOVERY_PORT),
            webhook_host,
            http: pod.admin(name, ISTIOD_HTTP_PORT),
            metrics: pod.admin(name, ISTIOD_DEBUG_PORT),
            part: Supporting::new(Role::ControlPlane, pod, container, Some((ISTIOD_HTTP_PORT, READY_PATH))),
        })
    }

    pub fn is_ready(&self) -> bool {
        self.http.ask(READY_PATH).is_ok()
    }

    fn start_again(&mut self, starter: &Starter) -> Result<()> {
        let name = &self.part.name;
        let error = |reason| EnvironmentError::new(format!("start {name} again"), reason);
        let pod = self.own_pod.as_mut().ok_or_else(|| error("it has no pod of its own"))?;
        if self.part.container.wait(ENDED_TIMEOUT).is_none() {
            return Err(error("the killed process did not end"));
        }
        self.part = Self::start(starter, name, &self.program, pod, self.webhook_host)?.part;
        Ok(())
    }

    fn note(&self, kind: &str) -> Happening {
        happening(kind, &self.part.name)
    }
}

/// An event that has just happened.
pub(crate) fn happening(kind: &str, detail: &str) -> Happening {
    let now = Timestamp::now().as_duration();
    Happening { at_unix_s: now.as_secs_f64(), kind: kind.to_owned(), detail: detail.to_owned() }
}

/// The istiods of a control plane, in start order. The first one is never removed. The counters of removed
/// ones still show their usage.
#[derive(Debug)]
pub(super) struct Istiods(Vec<Istiod>);

impl Istiods {
    pub fn new(first: Istiod) -> Self {
        Self(vec![first])
    }

    pub fn first(&self) -> &Istiod {
        &self.0[0]
    }

    pub fn running(&self) -> impl Iterator<Item = &Istiod> {
        self.0.iter().filter(|istiod| istiod.part.is_running)
    }

    /// Components of all istiods; removed ones come last.
    pub fn supporting(&self) -> impl Iterator<Item = Supporting> {
        let removed = self.0.iter().filter(|istiod| !istiod.part.is_running);
        self.running().chain(removed).map(|istiod| istiod.part.clone())
    }

    /// Starts one more istiod per program and waits until all are ready. An error from `check` ends the wait.
    pub fn add(
        &mut self,
        starter: &Starter,
        programs: &[&Installed],
        check: &dyn Fn(&str) -> Result<()>,
    ) -> Result<Vec<Happening>> {
        let started = try_side_by_side((self.0.len() + 1..).zip(programs), |(number, program)| {
            Istiod::in_own_pod(starter, &format!("{ISTIOD}-{number}"), program)
        })?;
        let happened = started.iter().map(|istiod| istiod.note("istiod-started")).collect();
        self.0.extend(started);
        self.wait_until_ready(check, happened)
    }

    /// Ends the istiod that was started last.
    pub fn remove_last(&mut self) -> Result<Vec<Happening>> {
        let last = self.0.iter_mut().skip(1).rfind(|istiod| istiod.part.is_running);
        let last = last.ok_or_else(|| EnvironmentError::new("remove an istiod", "there is only one"))?;
        let begun = last.note("istiod-told-to-end");
        (last.part.is_running, last.part.liveness) = (false, None);
        last.part.container.stop(GRACE)?;
        Ok(vec![begun, last.note("istiod-removed")])
    }

    /// Kills all istiods at once and restarts them.
    pub fn restart(
        &mut self,
        starter: &Starter,
        check: &dyn Fn(&str) -> Result<()>,
    ) -> Result<Vec<Happening>> {
        let mut happened = Vec::new();
        for istiod in self.running() {
            istiod.part.container.kill();
            happened.push(istiod.note("istiod-killed"));
        }
        for istiod in self.0.iter_mut().filter(|istiod| istiod.part.is_running) {
            istiod.start_again(starter)?;
        }
        self.wait_until_ready(check, happened)
    }

    /// Waits until all are ready, and adds to what has happened when each was.
    fn wait_until_ready(
        &self,
        check: &dyn Fn(&str) -> Result<()>,
        mut happened: Vec<Happening>,
    ) -> Result<Vec<Happening>> {
        let mut waiting: Vec<&Istiod> = self.running().collect();
        let what = "every istiod is ready";
        wait_for(what, READY_TIMEOUT, || {
            check(what)?;
            waiting
                .iter()
                .try_for_each(|istiod| istiod.part.container.check(format!("wait until {what}")))?;
            happened.extend(
                waiting.extract_if(.., |istiod| istiod.is_ready()).map(|ready| ready.note("istiod-ready")),
            );
            if waiting.is_empty() {
                return Ok(Some(()));
            }
            thread::sleep(POLL_INTERVAL);
            Ok(None)
        })?;
        Ok(happened)
    }
}
