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
use self::istiods::{Istiod, Istiods};
use self::prepared::PreparedObjects;
use self::starting::{Starter, Starting, definitions};
use super::credentials::{API_PORT, ApiCredentials};
use super::programs::IstioPrograms;
use crate::Result;
use crate::container::ContainerUser;
use crate::lab::Lab;
use crate::liveness;
use crate::pod::{Pod, PodSpec, check_name_places};
use crate::private_dir::{PrivateDir, create_log_dir};
use crate::running::Supporting;
use crate::sandbox::port_forward::PortForward;
use crate::wait::wait_for;
use components::{Installed, IstioFiles};
use experiment::environment::DeploymentSpec;
use experiment::settings::istio::IstiodSettings;
use mesh::admin::Admin;
use mesh::admin::RESPONSE_TIMEOUT;
use mesh::istio::background::BackgroundServices;
use mesh::istio::istiod::mesh_config;
use mesh::istio::validation;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::workloads::{namespace, node};
use mesh::names::{DISCOVERY_PORT, ISTIOD, SYSTEM_NAMESPACE};
use results::{Happening, Mode, ProxySetup};
use std::cell::{OnceCell, RefCell};
use std::net::{SocketAddrV4, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const POD: &str = "control-plane";
const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
const DEFINITIONS_API: &str = "apiextensions.k8s.io/v1";

/// Port of etcd on the pod's loopback.
const ETCD_PORT: u16 = 2379;
/// Port of etcd's metrics, open to everything in the lab.
pub(crate) const ETCD_METRICS_PORT: u16 = 2381;

/// Time within which a running component must respond on a busy machine. Responses usually take milliseconds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// A running control plane. Dropping it ends its processes and removes their files.
#[derive(Debug)]
pub struct ControlPlane {
    pod: Pod,
    /// etcd and kube-apiserver.
    parts: Vec<Supporting>,
    istiods: RefCell<Istiods>,
    api: Arc<ApiClient>,
    credentials: ApiCredentials,
    root_certificate: String,
    background: RefCell<BackgroundServices>,
    collector: OnceCell<(Pod, Supporting)>,
    starter: Starter,
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
        check_name_places()?;
        create_log_dir(log_dir)?;
        let name = if number == 0 { POD.to_owned() } else { format!("{POD}-{number}") };
        let directory = PrivateDir::create(lab, &name, ContainerUser::Lab)?;
        let pod = lab.create_pod(&PodSpec::new(POD))?;
        let servers = PrivateDir::create(lab, &format!("{name}-servers"), ContainerUser::Server)?;
        let owner = lab.user_of(ContainerUser::Server);
        let credentials = ApiCredentials::create(directory.path(), servers.path(), owner, pod.address())?;
        let starter = Starter { lab: lab.clone(), plan, log_dir: log_dir.to_path_buf(), directory, servers };
        let (replicas, is_studied) = (starter.plan.istiod.replicas, starter.plan.is_studied);
        let mut starting = Starting { programs, pod, parts: Vec::new(), istiod: None, starter };
        starting.etcd()?;
        let definitions = definitions(programs)?;
        let prepared = PreparedObjects::new(programs, &definitions);
        let objects = prepared.as_ref().and_then(PreparedObjects::load);
        let etcd = starting.pod.admin(ETCD, ETCD_PORT);
        if let Some(objects) = &objects {
            starting.wait_until("etcd accepts prepared objects", || prepared::write_to(&etcd, objects))?;
        }
        starting.api_server(&credentials)?;
        let api = ApiClient::direct(&credentials.kubeconfig_content, starting.api_stop_check())?;
        starting.wait_until("kube-apiserver accepts requests", || api.is_alive())?;
        // istiod keeps its CA in this namespace, and retries with growing delays if it cannot.
        api.apply(&[namespace(SYSTEM_NAMESPACE, &[]), node()])?;
        let mesh_config = mesh_config(starting.starter.plan.proxies.telemetry).to_string();
        starting.starter.write_istiod_files(&credentials.kubeconfig_content.to_string(), &mesh_config)?;
        let several = replicas > 1 || !beside.is_empty();
        let program = &programs.istiod;
        let first = match is_studied {
            true => {
                let name = if several { format!("{ISTIOD}-1") } else { ISTIOD.to_owned() };
                Istiod::in_own_pod(&starting.starter, &name, program)?
            }
            false => Istiod::beside_api_server(&starting.starter, program, &mut starting.pod)?,
        };
        starting.istiod = Some(first.part.container.clone());
        let create = || api.create_documents(DEFINITIONS_API, "CustomResourceDefinition", &definitions);
        let created = objects.is_none().then(create).transpose()?;
        starting.wait_until("kube-apiserver is ready", || api.is_ready())?;
        starting.wait_until("istiod is ready", || first.is_ready())?;
        let root_certificate = starting.root_certificate(&api)?;
        api.apply(&[validation::webhook(first.webhook_host, &root_certificate)])?;
        starting.wait_until("istiod validates objects", || validation::is_active(&api))?;
        if let (Some(created), Some(prepared)) = (created, prepared) {
            // If they cannot be kept, the next start takes as long as this one.
            let kept = || prepared.save_from(&etcd, created).unwrap_or(true);
            starting.wait_until("the definitions of Istio's kinds are established", kept)?;
        }
        // After the first one: it has created the CA that all istiods share.
        let mut istiods = Istiods::new(first);
        if is_studied && several {
            let others = match beside {
                [] => vec![program; replicas - 1],
                beside => beside.iter().collect(),
            };
            istiods.add(&starting.starter, &others, &|what| starting.check_alive(what))?;
        }
        let Starting { starter, pod, parts, .. } = starting;
        Ok(Self {
            pod,
            parts,
            istiods: RefCell::new(istiods),
            api: Arc::new(api),
            credentials,
            root_certificate,
            background: RefCell::default(),
            collector: OnceCell::new(),
            starter,
        })
    }

    pub fn api(&self) -> &Arc<ApiClient> {
        &self.api
    }

    pub fn pod(&self) -> &Pod {
        &self.pod
    }

    pub(crate) fn plan(&self) -> &ControlPlanePlan {
        &self.starter.plan
    }

    /// Address at which proxies reach the first istiod.
    pub(crate) fn discovery(&self) -> SocketAddrV4 {
        self.istiods.borrow().first().discovery
    }

    /// Addresses at which proxies reach the running istiods.
    pub(crate) fn discoveries(&self) -> Vec<SocketAddrV4> {
        self.istiods.borrow().running().map(|istiod| istiod.discovery).collect()
    }

    /// Forwards these ports of the machine to the API and to istiod's discovery port.
    pub fn forward_ports(&self, [api, discovery]: [TcpListener; 2]) -> Result<[PortForward; 2]> {
        let istiods = self.istiods.borrow();
        let istiod = istiods.first().own_pod.as_ref().unwrap_or(&self.pod);
        let api = PortForward::open(api, &self.pod, API_PORT)?;
        Ok([api, PortForward::open(discovery, istiod, DISCOVERY_PORT)?])
    }

    /// Kills and restarts all istiods.
    pub(crate) fn restart_istiods(&self) -> Result<Vec<Happening>> {
        self.istiods.borrow_mut().restart(&self.starter, &|operation| self.check_api(operation))
    }

    pub(crate) fn add_istiod(&self) -> Result<Vec<Happening>> {
        let mut istiods = self.istiods.borrow_mut();
        let program = istiods.first().program.clone();
        istiods.add(&self.starter, &[&program], &|operation| self.check_api(operation))
    }

    /// Ends the istiod that was started last.
    pub(crate) fn remove_istiod(&self) -> Result<Vec<Happening>> {
        self.istiods.borrow_mut().remove_last()
    }

    fn check_api(&self, operation: &str) -> Result<()> {
        self.api.check_not_stopped()?;
        self.parts.iter().try_for_each(|part| part.container.check(operation))
    }

    /// CA certificate of the mesh, PEM. Proxies trust it.
    pub fn root_certificate(&self) -> &str {
        &self.root_certificate
    }

    /// A kubeconfig of the API's administrator, for programs in the lab's network.
    pub fn kubeconfig(&self) -> &Path {
        &self.credentials.kubeconfig
    }

    /// Returns an error if a component has died or was stopped, with the end of its log.
    pub(crate) fn check(&self, operation: &str) -> Result<()> {
        let running = self.supporting().into_iter().filter(|part| part.is_running);
        running.map(|part| part.container).try_for_each(|container| container.check(operation))
    }

    /// Debug pages and readiness of the first istiod.
    /// Running istiods by name, with the port of their debug pages.
    pub(crate) fn debug_pages(&self) -> Vec<(String, Admin)> {
        let istiods = self.istiods.borrow();
        istiods.running().map(|istiod| (istiod.part.name.clone(), istiod.metrics.clone())).collect()
    }

    pub(crate) fn istiod(&self) -> Admin {
        self.istiods.borrow().first().http.clone()
    }

    /// Marks kube-apiserver as failed if it is unresponsive. Its port speaks TLS only.
    pub(crate) fn probe_api(&self) {
        if !self.api.responds_within(RESPONSE_TIMEOUT)
            && let Some(api_server) = self.parts.iter().find(|part| part.name == API_SERVER)
        {
            liveness::mark_unresponsive(&api_server.container, None);
        }
    }

    /// Returns an error if a component hangs: it does not respond, but has neither died nor been stopped.
    pub(crate) fn check_responsive(&self) -> Result<()> {
        let operation = "probe the liveness of the control plane";
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

    /// Its processes as components of a deployment.
    pub(crate) fn supporting(&self) -> Vec<Supporting> {
        let istiods = self.istiods.borrow();
        let collector = self.collector.get().map(|(_, part)| part.clone());
        self.parts.iter().cloned().chain(istiods.supporting()).chain(collector).collect()
    }
}
