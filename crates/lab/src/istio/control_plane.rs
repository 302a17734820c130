//! The control plane of a lab's mesh: etcd, kube-apiserver and istiod in a pod of their own, started once for
//! all trials.
//!
//! Each is a supervised process with a cgroup, so that its usage is measured like that of any other
//! component. All files that they write (etcd's data, keys, working files) are in one private directory of
//! the lab, which is removed with the control plane. Each process is started as soon as its dependencies
//! respond. The definitions of Istio's kinds are in etcd before kube-apiserver starts ([`prepared`]), or are
//! created while istiod starts.
//!
//! Differences from a cluster:
//! * etcd has one member, which does not wait for the disk.
//! * There is no controller manager, scheduler, kubelet or kube-proxy: code that creates a Service also
//!   writes its endpoints, and pods are what the lab describes.
//! * istiod is an administrator of the API.
//!
//! Differences from an Istio installation are listed in `mesh::istio::istiod`.

mod istiods;
mod prepared;
mod shared;
mod starting;

pub(crate) use self::istiods::happening;
use self::istiods::{Istiod, Istiods, Starter};
use super::credentials::{API_PORT, ApiCredentials};
use super::programs::IstioPrograms;
use crate::Result;
use crate::container::{Container, ContainerUser};
use crate::lab::Lab;
use crate::liveness;
use crate::pod::{Pod, PodSpec, check_name_places};
use crate::private_dir::{PrivateDir, create_log_dir};
use crate::running::Supporting;
use crate::sandbox::port_forward::PortForward;
use crate::wait::wait_for;
use components::{Installed, IstioFiles};
use experiment::Mode;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::schema::{Happening, ProxySetup, Role};
use experiment::settings::istio::IstiodSettings;
use mesh::admin::Admin;
use mesh::admin::RESPONSE_TIMEOUT;
use mesh::admin::liveness::LivenessProbe;
use mesh::istio::background::BackgroundServices;
use mesh::istio::objects::telemetry::TRACE_COLLECTOR_PORT;
use mesh::istio::validation;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::workloads::{namespace, node};
use mesh::names::{DISCOVERY_PORT, ISTIOD, SYSTEM_NAMESPACE};
use prepared::PreparedObjects;
use starting::{Starting, create_definitions, definitions};
use std::cell::RefCell;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const POD: &str = "control-plane";
const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";

/// Port of etcd on the pod's loopback.
const ETCD_PORT: u16 = 2379;
/// Port of etcd's metrics, open to everything in the lab.
const ETCD_METRICS_PORT: u16 = 2381;

/// Time within which a running component must respond on a busy machine. Responses usually take milliseconds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// A running control plane. Dropping it ends its processes and removes their files.
#[derive(Debug)]
pub struct ControlPlane {
    pod: Pod,
    /// etcd and kube-apiserver.
    containers: Vec<Container>,
    istiods: RefCell<Istiods>,
    plan: ControlPlanePlan,
    api: Arc<ApiClient>,
    credentials: ApiCredentials,
    root_certificate: String,
    started_in: Duration,
    log_dir: PathBuf,
    shared: RefCell<Shared>,
    _folder: PrivateDir,
}

/// Properties that distinguish one control plane from another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ControlPlanePlan {
    pub istiod: IstiodSettings,
    program: PathBuf,
    files: IstioFiles,
    /// True if the control plane itself is measured. Each istiod then has a pod of its own, and the control
    /// plane serves a single deployment, which starts with an empty mesh.
    pub is_studied: bool,
    /// The proxies that istiod configures.
    pub proxies: ProxySetup,
}

impl ControlPlanePlan {
    pub fn new(spec: &DeploymentSpec, programs: &IstioPrograms) -> Result<Self> {
        Ok(Self {
            istiod: spec.istio.istiod,
            program: programs.istiod.path.clone(),
            files: programs.files.clone(),
            is_studied: spec.mode == Mode::ControlPlane,
            proxies: programs.proxies(spec)?,
        })
    }
}

/// Shared by the trials of a run, apart from the control plane: background services, and the collector of
/// spans.
#[derive(Debug, Default)]
struct Shared {
    background: BackgroundServices,
    collector: Option<(Pod, Container)>,
}

impl Shared {
    fn collector(&self) -> Option<(&Pod, &Container)> {
        self.collector.as_ref().map(|(pod, container)| (pod, container))
    }
}

impl ControlPlane {
    /// Starts everything and waits until istiod is ready. `number` distinguishes the directories of a lab's
    /// control planes. `beside` are programs whose istiods run next to that of `programs`, for comparison.
    pub(crate) fn start(
        lab: &Lab,
        programs: &IstioPrograms,
        beside: &[Installed],
        plan: ControlPlanePlan,
        number: usize,
        log_dir: &Path,
    ) -> Result<Self> {
        let started_at = Instant::now();
        check_name_places()?;
        create_log_dir(log_dir)?;
        let name = if number == 0 { POD.to_owned() } else { format!("{POD}-{number}") };
        let folder = PrivateDir(lab.create_private_dir(&name, ContainerUser::Lab)?);
        let pod = lab.create_pod(&PodSpec::new(POD))?;
        let credentials = ApiCredentials::create(folder.path(), pod.address())?;
        let mut starting = Starting {
            lab,
            programs,
            folder: folder.path(),
            log_dir,
            pod,
            containers: Vec::new(),
            istiod: None,
        };
        starting.etcd()?;
        let definitions = definitions(programs)?;
        let prepared = PreparedObjects::new(programs, &definitions);
        let objects = prepared.as_ref().and_then(PreparedObjects::load);
        let etcd = starting.pod.admin(ETCD, ETCD_PORT);
        if let Some(objects) = &objects {
            starting.wait_until("etcd takes prepared objects", || prepared::write_to(&etcd, objects))?;
        }
        starting.api_server(&credentials)?;
        let api = ApiClient::direct(&credentials.kubeconfig_content, starting.api_stop_check())?;
        starting.wait_until("kube-apiserver takes requests", || api.is_alive())?;
        // istiod keeps its CA in this namespace, and retries with growing delays if it cannot.
        api.apply(&[namespace(SYSTEM_NAMESPACE, &[]), node()])?;
        let places = (folder.path(), log_dir);
        let starter = Starter::new(lab, &credentials.kubeconfig, places, &plan)?;
        let several = plan.istiod.replicas > 1 || !beside.is_empty();
        let program = &programs.istiod.path;
        let first = match plan.is_studied {
            true => {
                let name = if several { format!("{ISTIOD}-1") } else { ISTIOD.to_owned() };
                Istiod::in_own_pod(&starter, &name, program)?
            }
            false => Istiod::beside_api_server(&starter, program, &mut starting.pod)?,
        };
        starting.istiod = Some(first.container.clone());
        let created = if objects.is_none() { Some(create_definitions(&api, &definitions)?) } else { None };
        starting.wait_until("kube-apiserver is ready", || api.is_ready())?;
        starting.wait_until("istiod is ready", || first.http.ask("/ready").is_ok())?;
        let root_certificate = starting.root_certificate(&api)?;
        api.apply(&[validation::webhook(first.webhook_host(), &root_certificate)])?;
        starting.wait_until("istiod validates objects", || validation::is_active(&api))?;
        if let (Some(created), Some(prepared)) = (created, prepared) {
            // If they cannot be kept, the next start takes as long as this one.
            let kept = || prepared.save_from(&etcd, created).unwrap_or(true);
            starting.wait_until("the definitions of Istio's kinds are established", kept)?;
        }
        // After the first one: it has created the CA that all istiods share.
        let mut istiods = Istiods::new(starter, first);
        if plan.is_studied && several {
            let others = match beside {
                [] => vec![program.as_path(); plan.istiod.replicas - 1],
                beside => beside.iter().map(|istiod| istiod.path.as_path()).collect(),
            };
            istiods.add(&others, &|what| starting.check_alive(what))?;
        }
        let Starting { pod, containers, .. } = starting;
        let started_in = started_at.elapsed();
        Ok(Self {
            pod,
            containers,
            istiods: RefCell::new(istiods),
            plan,
            api: Arc::new(api),
            credentials,
            root_certificate,
            started_in,
            log_dir: log_dir.to_path_buf(),
            shared: RefCell::default(),
            _folder: folder,
        })
    }

    pub fn api(&self) -> &Arc<ApiClient> {
        &self.api
    }

    pub fn pod(&self) -> &Pod {
        &self.pod
    }

    pub(crate) fn plan(&self) -> &ControlPlanePlan {
        &self.plan
    }

    /// Address at which proxies reach the first istiod.
    pub(crate) fn discovery(&self) -> SocketAddrV4 {
        self.istiods.borrow().first().discovery()
    }

    /// Addresses at which proxies reach the running istiods.
    pub(crate) fn discoveries(&self) -> Vec<SocketAddrV4> {
        self.istiods.borrow().running().map(Istiod::discovery).collect()
    }

    /// Forwards a port of the machine to istiod's discovery port.
    pub(super) fn forward_discovery(&self, lab: &Lab) -> Result<PortForward> {
        let istiods = self.istiods.borrow();
        lab.forward_port(istiods.first().own_pod().unwrap_or(&self.pod), DISCOVERY_PORT)
    }

    /// Starts one more istiod, ends the last one, or kills and restarts all.
    pub(crate) fn change_istiods(&self, change: IstiodChange) -> Result<Vec<Happening>> {
        let check = |operation: &str| {
            self.api.check_not_stopped()?;
            self.containers.iter().try_for_each(|container| container.check(operation))
        };
        let mut istiods = self.istiods.borrow_mut();
        match change {
            IstiodChange::Restart => istiods.restart(&check),
            IstiodChange::Add => istiods.add_one(&check),
            IstiodChange::Remove => istiods.remove_last(),
        }
    }

    /// CA certificate of the mesh, PEM. Proxies trust it.
    pub fn root_certificate(&self) -> &str {
        &self.root_certificate
    }

    /// Address of etcd's metrics.
    pub(crate) fn etcd_metrics(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.pod.address(), ETCD_METRICS_PORT)
    }

    /// A kubeconfig of the API's administrator, for programs in the lab's network.
    pub fn kubeconfig(&self) -> &Path {
        &self.credentials.kubeconfig
    }

    pub(super) fn credentials(&self) -> &ApiCredentials {
        &self.credentials
    }

    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Returns an error if a component has died or was stopped, with the end of its log.
    pub fn check(&self, operation: &str) -> Result<()> {
        let shared = self.shared.borrow();
        let istiods = self.istiods.borrow();
        let collector = shared.collector().map(|(_, container)| container);
        let istiods = istiods.running().map(|istiod| &istiod.container);
        self.containers.iter().chain(istiods).chain(collector).try_for_each(|one| one.check(operation))
    }

    /// Debug pages and readiness of the first istiod.
    pub(crate) fn istiod(&self) -> Admin {
        self.istiods.borrow().first().http.clone()
    }

    /// Marks kube-apiserver as failed if it is unresponsive. Its port speaks TLS only.
    pub(crate) fn probe_api(&self) {
        if !self.api.responds_within(RESPONSE_TIMEOUT)
            && let Some(container) = self.containers.iter().find(|container| container.name() == API_SERVER)
        {
            liveness::mark_unresponsive(container, None);
        }
    }

    /// Returns an error if a component hangs: it does not respond, but has neither died nor been stopped.
    pub fn check_responsive(&self) -> Result<()> {
        let operation = "ask the control plane for a sign of life";
        self.check(operation)?;
        let supporting = self.supporting();
        let asked: Vec<_> =
            supporting.iter().filter_map(|part| Some((&part.container, part.liveness.clone()?))).collect();
        liveness::probe_all(&asked, || self.probe_api());
        self.check(operation)?;
        // All processes respond. They may still be unable to do their work.
        let istiod = self.istiod();
        let answers = |what: &str, answers: &dyn Fn() -> bool| {
            wait_for(what, CHECK_TIMEOUT, || {
                self.check(what)?;
                self.api.check_not_stopped()?;
                Ok(answers().then_some(()))
            })
        };
        answers("istiod answers", &|| istiod.ask("/ready").is_ok())?;
        answers("kube-apiserver answers", &|| self.api.is_ready())
    }

    /// Replaces the error of an operation that waited in vain for the control plane: a component that hangs
    /// explains more.
    pub(crate) fn prefer_root_cause(&self, error: EnvironmentError) -> EnvironmentError {
        match self.check_responsive() {
            Ok(()) => error,
            Err(cause) => EnvironmentError::new(error.operation, cause),
        }
    }

    /// Its processes as components of a deployment. Traffic of a pod that istiod shares is nearly all
    /// istiod's.
    pub(crate) fn supporting(&self) -> Vec<Supporting> {
        let part = |container: &Container| Supporting {
            name: container.name().to_owned(),
            role: Role::ControlPlane,
            pod: self.pod.name().to_owned(),
            container: container.clone(),
            liveness: None,
            is_running: true,
            shows_network: false,
        };
        let probe = |admin, path| Some(LivenessProbe { process: None, admin, path });
        let parts = self.containers.iter().map(|container| match container.name() {
            ETCD => {
                Supporting { liveness: probe(self.pod.admin(ETCD, ETCD_PORT), "/version"), ..part(container) }
            }
            // No other component shows the traffic of a pod without an istiod.
            API_SERVER => Supporting { shows_network: self.plan.is_studied, ..part(container) },
            _ => part(container),
        });
        let shared = self.shared.borrow();
        let collector = shared.collector().map(|(pod, container)| Supporting {
            pod: pod.name().to_owned(),
            liveness: probe(pod.admin(container.name(), TRACE_COLLECTOR_PORT), "/counters"),
            shows_network: true,
            ..part(container)
        });
        let istiods = self.istiods.borrow();
        parts.chain(istiods.supporting()).chain(collector).collect()
    }
}

/// A change to the set of istiods or their processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IstiodChange {
    Restart,
    Add,
    Remove,
}
