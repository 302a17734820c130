//! Running workloads and proxies on one machine: `experiment`'s `Deployment`.
//!
//! [`deploy`](deploy()) brings one up, phase by phase; [`crate::rollout`] is what is coming up.
//! `trial.rs` starts a trial's drivers, `place.rs` has what the course of a trial ([`mesh::trial`]) reads here.
//! `driver.rs` follows drivers, `fleet.rs` carries out what fleets request, `health.rs` finds components that have
//! failed.

mod deploy;
mod driver;
mod fleet;
mod health;
mod place;
mod rules;
mod trial;

pub(crate) use deploy::deploy;

use self::driver::Drivers;
use self::rules::Rules;
use crate::Result;
use crate::container::Container;
use crate::filters::proof::BeforeLoad;
use crate::istio::MeshNamespaces;
use crate::local_lab::LocalLab;
use crate::observe::{self, Watched};
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::profile::{ProfilePage, Profiler};
use crate::rollout::domains::Domains;
use crate::rollout::filters::Filters;
use crate::rollout::station::Destination;
use crate::running::{Pods, Proxy, Supporting};
use experiment::environment::deploy::{
    ComponentFailure, Deployment, DriverEvent, DriverLoad, DriverStart, HealthProbe, TrialEvidence,
};
use experiment::environment::{ComponentSnapshot, DeploymentSpec, ErrorContext as _, Snapshot};
use jiff::Timestamp;
use mesh::admin::Admin;
use mesh::proof::Seen;
use mesh::spans::tracing::Tracing;
use mesh::trial::course::{Course, KeepsCourse as _};
use mesh::trial::gateways::{Gateway, Reading, read_gateways};
use mesh::trial::place::{Edge, Place as _, ProxyId};
use results::{ConfigurationPush, FleetAsk, ProxySetup, Role};
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::net::Ipv4Addr;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

/// Gateways flush their histograms when queried.
const IN_WINDOW: Reading = Reading { clock: observe::now, has_durations: true };

/// Running workloads and proxies. Dropping it takes them down: fields are dropped in this order, pods with all
/// their processes first, then the objects of the mesh.
#[derive(Debug)]
pub struct LabDeployment<'lab> {
    pods: Pods,
    proxies: Vec<Proxy>,
    edges: Vec<Edge>,
    /// Destinations of the topology's drivers, in the same order.
    destinations: Vec<Destination>,
    supporting: Vec<Supporting>,
    /// Absent if requests are not traced.
    tracing: Option<Tracing>,
    /// Time until the configuration had propagated; absent if proxies are not configured while they run.
    push: Option<ConfigurationPush>,
    /// Number and objects of a domain that trials add while the first gateway serves the others.
    further_domain: Option<(usize, Vec<Value>)>,
    /// The proxies that the control plane configured; absent if it configured none.
    setup: Option<ProxySetup>,
    filters: Option<Filters>,
    /// Domains of the gateways, whose filters trials verify.
    domains: Vec<Domains>,
    _directories: Vec<PrivateDir>,
    namespaces: Option<MeshNamespaces>,
    lab: &'lab LocalLab,
    spec: DeploymentSpec,
    /// Every proxy once, and whether it faces the network. Those on paths come first, from caller to callee.
    order: Vec<(ProxyId, bool)>,
    /// Rules right after the deployment came up.
    rules: Rules,
    gateways: Vec<Gateway>,
    drivers: Drivers,
    /// Place of the component from which the next poll looks for stopped ones.
    next_polled: usize,
    /// Counters of its trials.
    course: Course,
    trial: Trial,
}

fn order(proxies: usize, edges: &[Edge]) -> Vec<(ProxyId, bool)> {
    let mut order = Vec::with_capacity(proxies);
    let mut place = vec![None; proxies];
    let on_paths = edges.iter().flat_map(|edge| &edge.stations).flat_map(|station| {
        let sees_traffic = !matches!(station.evidence.seen, Seen::Nothing(_));
        station.proxies.iter().map(move |id| (*id, sees_traffic))
    });
    for (id, sees_traffic) in on_paths.chain((0..proxies).map(|id| (id, false))) {
        let place = *place[id].get_or_insert_with(|| {
            order.push((id, false));
            order.len() - 1
        });
        order[place].1 |= sees_traffic;
    }
    order
}

#[derive(Debug, Default)]
struct Trial {
    /// Number of the trial within the deployment, from 1.
    number: usize,
    log_dir: PathBuf,
    filters_before_load: BeforeLoad,
    /// Addresses of a fleet whose packets are dropped.
    links_down: BTreeSet<Ipv4Addr>,
    /// Absent if no stacks are sampled.
    profiler: Option<Profiler>,
}

impl LabDeployment<'_> {
    pub fn client_pod(&self) -> &Pod {
        self.pod_of(self.spec.topology.drivers.first().map_or(0, |driver| driver.at))
    }

    pub fn server_pod(&self) -> &Pod {
        self.pod_of(self.spec.topology.drivers.first().map_or(0, |driver| driver.target))
    }

    fn pod_of(&self, workload: usize) -> &Pod {
        &self.pods.workloads[workload].pods[0].pod
    }

    /// All pods: those of workloads, then those of proxies with a pod of their own.
    pub fn pods(&self) -> Vec<&Pod> {
        self.pods.all().collect()
    }

    pub fn namespace(&self) -> Option<&str> {
        self.namespaces.as_ref()?.names().first().map(String::as_str)
    }

    /// Proxies that have an admin interface, from caller to callee: name, pod, and admin interface.
    pub fn admin_interfaces(&self) -> impl Iterator<Item = (&str, &str, &Admin)> {
        self.on_paths()
            .filter_map(|proxy| Some((proxy.name.as_str(), proxy.pod.as_str(), proxy.counters.admin()?)))
    }

    pub fn url(&self) -> String {
        self.destinations.first().map(|destination| destination.url.clone()).unwrap_or_default()
    }

    pub fn client_arguments(&self) -> Vec<String> {
        self.destinations.first().map(|destination| destination.arguments.clone()).unwrap_or_default()
    }

    /// Every proxy once, those on paths first.
    fn on_paths(&self) -> impl Iterator<Item = &Proxy> {
        self.order.iter().map(|(id, _)| &self.proxies[*id])
    }

    /// Pages with which istiods and ztunnels profile themselves for the length of a window.
    fn profile_pages(&self, window: Duration) -> Vec<ProfilePage> {
        let control_plane = self.lab.running_control_plane().filter(|_| self.namespaces.is_some());
        let istiods = control_plane.map(|control_plane| control_plane.debug_pages()).unwrap_or_default();
        let page = |component: String, admin: &Admin| ProfilePage { component, admin: admin.clone(), window };
        let ztunnels = self.proxies.iter().filter(|proxy| proxy.name.contains("ztunnel"));
        let ztunnels = ztunnels.filter_map(|proxy| Some(page(proxy.name.clone(), proxy.counters.admin()?)));
        istiods.into_iter().map(|(name, admin)| page(name, &admin)).chain(ztunnels).collect()
    }

    fn components(&self) -> impl Iterator<Item = (&str, &Container)> {
        let proxies = self.on_paths().map(|proxy| (proxy.name.as_str(), &proxy.container));
        let services = self.pods.services();
        let services = services.map(|(running, service)| (running.name.as_str(), &service.container));
        let supporting = self.supporting.iter().filter(|other| other.is_running);
        let supporting = supporting.map(|other| (other.name.as_str(), &other.container));
        proxies.chain(services).chain(supporting)
    }

    /// Drivers first, then components along the paths. The component nearest to a pod's interface shows the
    /// pod's traffic.
    fn watched(&self) -> Vec<Watched> {
        let mut pods_shown = HashSet::new();
        let proxies = self.order.iter().map(|(id, faces_network)| {
            let proxy = &self.proxies[*id];
            let shows_network = *faces_network && pods_shown.insert(proxy.pod.as_str());
            watched(&proxy.name, Role::Proxy, &proxy.pod, &proxy.container, shows_network)
        });
        let proxies: Vec<Watched> = proxies.collect();
        let application = |name: &str, role: Role, pod: &str, container: &Container| {
            watched(name, role, pod, container, !pods_shown.contains(pod))
        };
        let drivers = self
            .drivers
            .containers()
            .map(|(name, pod, container)| application(name, Role::Generator, pod, container));
        let services = self.pods.services().map(|(running, service)| {
            application(&running.name, Role::App, running.pod.name(), &service.container)
        });
        // The cgroup of a component that has ended still has its counters.
        let supporting = self.supporting.iter();
        let supporting = supporting.filter(|other| other.is_running || other.container.cgroup().is_some());
        let supporting = supporting
            .map(|other| watched(&other.name, other.role, &other.pod, &other.container, other.shows_network));
        drivers.chain(proxies).chain(services).chain(supporting).collect()
    }
}

fn watched(name: &str, role: Role, pod: &str, container: &Container, nearest_to_network: bool) -> Watched {
    Watched {
        name: name.to_owned(),
        role,
        pod: pod.to_owned(),
        pid: container.pid().cast_signed(),
        cgroup: container.cgroup().cloned(),
        interface: nearest_to_network.then(|| container.interface().clone()),
    }
}

impl Deployment for LabDeployment<'_> {
    fn begin_trial(&mut self, label: &str) -> Result<()> {
        self.begin(&self.lab.logs.join(label))
    }

    fn start(&mut self, drivers: &[DriverStart]) -> Result<()> {
        self.check_alive("start the drivers")?;
        drivers.iter().try_for_each(|driver| self.start_driver(driver, None))
    }

    fn release(&mut self, generator: &str, window_opens_at: SystemTime) -> Result<()> {
        let instant = Timestamp::try_from(window_opens_at);
        let instant = instant.context(format!("start the load of {generator}"))?;
        self.drivers.release(generator, instant)
    }

    fn act(&mut self, fleet: &str, ask: &FleetAsk) {
        self.carry_out(fleet, ask);
    }

    fn next_event(&mut self, timeout: Duration) -> Option<DriverEvent> {
        self.drivers.next_event(timeout)
    }

    fn interrupt(&mut self, driver: &str) {
        self.drivers.interrupt(driver);
    }

    fn kill(&mut self, driver: &str) {
        self.drivers.kill(driver);
    }

    fn snapshot(&mut self) -> Result<Snapshot> {
        self.check_alive("read the components")?;
        let (watched, targets) = (self.watched(), self.targets());
        let (gateways, proxies) = (&self.gateways[..], self.proxies());
        // Read in parallel: a gateway that is out of CPU responds late, and CPU usage belongs to the window's
        // end.
        let snapshot = thread::scope(|scope| {
            let gateways = scope.spawn(|| read_gateways(gateways, &proxies, IN_WINDOW));
            let services = scope.spawn(|| place::read_targets(targets));
            let usage = observe::read(&watched, &self.lab.host_proc);
            let gateways = gateways.join().unwrap_or_else(|panic| resume_unwind(panic));
            let services = services.join().unwrap_or_else(|panic| resume_unwind(panic));
            usage.map(|usage| Snapshot { gateways, services, ..usage })
        });
        self.in_course(Course::open_window);
        snapshot
    }

    fn read_usage(&mut self) -> Vec<ComponentSnapshot> {
        observe::read_usage(&self.watched())
    }

    fn begin_profile(&mut self, window: Duration) -> Result<()> {
        let pages = self.profile_pages(window);
        self.trial.profiler = Some(Profiler::start(&self.watched(), pages, &self.trial.log_dir)?);
        Ok(())
    }

    fn end_profile(&mut self) {
        let watched = self.watched();
        if let Some(profiler) = &mut self.trial.profiler {
            profiler.end(&watched);
        }
    }

    fn health(&mut self, probe: HealthProbe) -> Option<ComponentFailure> {
        self.failure(probe)
    }

    fn end_trial(&mut self, sent: &[DriverLoad]) -> TrialEvidence {
        self.end(sent)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.pods.close()
    }
}
