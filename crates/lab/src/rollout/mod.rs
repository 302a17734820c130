//! A deployment that is coming up: its pods, its proxies and its objects in the API so far. Data planes, entries,
//! exits and filters ([`part`]) add to it; it knows none of them.

pub(crate) mod domains;
pub(crate) mod filters;
pub(crate) mod gateway;
mod objects;
pub(crate) mod part;
mod questions;
pub(crate) mod station;

use self::domains::Domains;
use self::filters::Filters;
use crate::Result;
use crate::certificates::CredentialFiles;
use crate::component_name::lab_name;
use crate::container::ContainerUser;
use crate::context::DeploymentContext;
use crate::istio::agent::{AgentSpec, INOTIFY_INSTANCES};
use crate::istio::context::MeshContext;
use crate::istio::{MeshNamespaces, expose_wasm_module};
use crate::local_lab::LocalLab;
use crate::pod::{Pod, PodSpec};
use crate::private_dir::{PrivateDir, create_log_dir};
use crate::programs::ChosenPrograms;
use crate::running::service::ServiceFactory;
use crate::running::{PodIdentity, PodPlace, Pods, Proxy, RunningPod, RunningWorkload};
use crate::sandbox::inotify::allow_instances;
use experiment::MeshKind;
use experiment::dataplane::ModeParts;
use experiment::environment::{DeploymentSpec, EnvironmentError, ErrorContext};
use experiment::topology::{Call, DriverPlacement, Runs, Topology, Workload, WorkloadId};
use jiff::{SignedDuration, Timestamp};
use mesh::concurrent::try_side_by_side;
use mesh::dataplane::MeshView;
use mesh::filters::Filter;
use mesh::filters::probe::TOKEN_HEADER;
use mesh::istio::objects::waypoint;
use mesh::istio::token::TokenIssuer;
use mesh::kubernetes::workloads::{self as api, Membership, Replica};
use mesh::names::TOKEN_AUDIENCE;
use mesh::trial::place::ProxyId;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Allowed difference between the clocks of a token's issuer and verifier.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);
/// Tokens outlive any trial.
const TOKEN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// First address for services with several pods if no control plane assigns Service addresses.
const FIRST_SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

/// A deployment that is coming up. Pods are dropped first, with all their processes; objects last.
pub(crate) struct Rollout<'a> {
    pub pods: Pods,
    pub proxies: Vec<Proxy>,
    /// The control plane and the objects in it; absent under `mesh: envoy`.
    pub mesh: Option<MeshContext<'a>>,
    pub context: DeploymentContext<'a>,
    pub mode: ModeParts,
    topology_file: PathBuf,
    /// Directories that are removed with the deployment.
    pub directories: Vec<PrivateDir>,
    namespaces: Vec<&'a str>,
    /// Sorted by caller.
    pub calls: BTreeSet<Call>,
    /// Signs the tokens that requests carry; absent if they carry none.
    pub tokens: Option<TokenIssuer>,
    /// Filters of the gateways that drivers reach; absent if the scenario has none.
    pub filters: Option<Filters>,
    /// Domains of the gateways in front of workloads, if the experiment has domains.
    pub domains: BTreeMap<WorkloadId, Domains>,
}

impl<'a> Rollout<'a> {
    /// Creates every pod of the topology, starts the services, and describes the pods to the API. Workloads
    /// in the mesh are described as `member`.
    pub fn begin(
        lab: &'a LocalLab,
        programs: &'a ChosenPrograms,
        spec: &'a DeploymentSpec,
        log_dir: &'a Path,
        member: Membership,
    ) -> Result<Self> {
        check_names(&spec.topology)?;
        create_log_dir(log_dir)?;
        let context = lab.deployment_context(spec, log_dir);
        let mesh = (spec.mesh == MeshKind::Istio).then(|| open_mesh(lab, programs, &context)).transpose()?;
        let mode = spec.parts();
        let namespaces = spec.topology.namespaces();
        let has_tokens =
            mesh.is_some() && spec.istio.authorization.jwt || Filters::for_spec(spec).contains(&Filter::Jwt);
        let (topology_file, directory) = write_topology(&context)?;
        let mut rollout = Self {
            pods: Pods::default(),
            proxies: Vec::new(),
            mesh,
            context,
            mode,
            topology_file,
            directories: vec![directory],
            namespaces,
            calls: spec.topology.calls.iter().copied().collect(),
            tokens: has_tokens.then(TokenIssuer::create).transpose()?,
            filters: None,
            domains: BTreeMap::new(),
        };
        rollout.create_pods()?;
        rollout.start_services(|rollout, id| !rollout.queries_database(id))?;
        rollout.describe_pods(member)?;
        Ok(rollout)
    }

    /// Headers of drivers' requests, such as `authorization: Bearer …`.
    pub fn request_headers(&self) -> Result<Vec<String>> {
        let token = self.tokens.as_ref().map(|tokens| {
            let token = tokens.token(Timestamp::now() - CLOCK_SKEW, TOKEN_LIFETIME)?;
            Ok(format!("{TOKEN_HEADER}: Bearer {token}"))
        });
        let of_filters = self.filters.iter().flat_map(|filters| &filters.headers).cloned();
        token.into_iter().chain(of_filters.map(Ok)).collect()
    }

    fn pod_spec(&self, name: &str, namespace: usize) -> PodSpec {
        let names = self.mesh.as_ref().map(|mesh| mesh.namespaces.name_files(namespace));
        PodSpec { name: lab_name(name), names }
    }

    fn create_pods(&mut self) -> Result<()> {
        let workloads = &self.topology().workloads;
        let wanted = workloads.iter().enumerate();
        let wanted = wanted.flat_map(|(id, workload)| workload.pod_names().map(move |name| (id, name)));
        let wanted: Vec<(WorkloadId, String)> = wanted.collect();
        let specs = wanted.iter().map(|(id, name)| self.pod_spec(name, self.namespace_index(*id)));
        let pods = self.context.lab.create_pods(&specs.collect::<Vec<_>>())?;
        self.pods.workloads.resize_with(workloads.len(), RunningWorkload::default);
        for (pod, (id, name)) in pods.into_iter().zip(wanted) {
            let running = RunningPod { pod, name, identity: None, service: None };
            self.pods.workloads[id].pods.push(running);
        }
        Ok(())
    }

    pub fn queries_database(&self, id: WorkloadId) -> bool {
        self.calls_from(id).any(|call| matches!(self.workload(call.to).runs, Runs::Database))
    }

    /// Starts services that query a database. They connect to it at once, so they are held until their
    /// proxies are configured.
    pub fn start_held_services(&mut self) -> Result<()> {
        self.start_services(Self::queries_database)
    }

    fn start_services(&mut self, is_started: impl Fn(&Self, WorkloadId) -> bool) -> Result<()> {
        let topology = self.topology();
        let databases = topology.workloads.iter().zip(&self.pods.workloads);
        let mut databases = databases.filter(|(workload, _)| matches!(workload.runs, Runs::Database));
        let authority = databases.find_map(|(_, running)| {
            let running = running.pods.first()?;
            let directory = running.service.as_ref()?.credentials.as_ref()?;
            Some(CredentialFiles::in_folder(directory.path()).authority)
        });
        // A database's directory is its user's.
        let authority = authority.map(|file| self.context.lab.expose_file(&file)).transpose()?;
        let wanted = topology.workloads.iter().enumerate().map(|(id, workload)| {
            let is_started = is_started(self, id);
            is_started.then(|| (workload, self.connect_options(id)))
        });
        let wanted: Vec<Option<(&Workload, Vec<String>)>> = wanted.collect();
        let factory = ServiceFactory {
            context: &self.context,
            topology: &self.topology_file,
            database_authority: authority.as_deref(),
        };
        let pods = self.pods.workloads.iter_mut().zip(&wanted);
        let pods = pods.filter_map(|(running, wanted)| Some((running, wanted.as_ref()?)));
        let pods = pods.flat_map(|(running, wanted)| running.pods.iter_mut().map(move |pod| (pod, wanted)));
        try_side_by_side(pods, |(running, (workload, connect))| {
            running.service = factory.start(&mut running.pod, &running.name, workload, connect)?;
            Ok(())
        })
        .map(drop)
    }

    /// Options that locate the callees of a service with a script. Their names need not resolve yet.
    fn connect_options(&self, id: WorkloadId) -> Vec<String> {
        let option = |call: Call| {
            format!("--connect={}={}", self.workload(call.to).qualified_name(), self.authority_of(call.to))
        };
        self.calls_from(id).map(option).collect()
    }

    fn describe_pods(&mut self, member: Membership) -> Result<()> {
        if self.mesh.is_none() {
            return Ok(());
        }
        let mut described = Vec::new();
        for (id, workload) in self.topology().workloads.iter().enumerate() {
            if workload.is_external() {
                continue;
            }
            let membership = if self.is_member(id) { member } else { Membership::Outside };
            let in_namespace = Workload { namespace: String::new(), ..workload.clone() };
            let replicas = in_namespace.pod_names().zip(&self.pods.workloads[id].pods);
            let replicas =
                replicas.map(|(pod, running)| Replica { pod, address: running.pod.address() }).collect();
            let namespace = self.mesh_namespace(id);
            described.push((id, api::Workload::new(&workload.name, namespace, replicas, membership)));
        }
        self.describe(&described.iter().map(|(_, workload)| workload).collect::<Vec<_>>())?;
        for (id, workload) in described {
            let running = &mut self.pods.workloads[id];
            for (pod, identity) in running.pods.iter_mut().zip(PodIdentity::for_workload(&workload)) {
                pod.identity = Some(identity);
            }
            running.described = Some(workload);
        }
        Ok(())
    }

    pub fn describe(&mut self, workloads: &[&api::Workload]) -> Result<()> {
        self.mesh_mut().namespaces.objects.create_pods(workloads, &|_| ())
    }

    /// Creates a pod for a proxy of its own and, if it has a name in the API, describes it there.
    pub fn create_proxy_pod(&mut self, name: &str, namespace: usize) -> Result<usize> {
        Ok(self.create_proxy_pods(&[(name.to_owned(), namespace)])?[0])
    }

    /// Creates several of these pods in parallel, each given as its name and the index of its namespace.
    pub fn create_proxy_pods(&mut self, names: &[(String, usize)]) -> Result<Vec<usize>> {
        let specs = names.iter().map(|(name, namespace)| self.pod_spec(name, *namespace));
        let pods = self.context.lab.create_pods(&specs.collect::<Vec<_>>())?;
        let first = self.pods.infrastructure.len();
        self.pods.infrastructure.extend(pods);
        Ok((first..self.pods.infrastructure.len()).collect())
    }

    pub fn start_agents(&mut self, agents: &[AgentSpec]) -> Result<Vec<ProxyId>> {
        let mesh = self.mesh.as_ref().expect("agents are configured by a control plane");
        let api = mesh.control_plane.api();
        let running = self.proxies.iter().filter(|proxy| proxy.known_as.is_some()).count();
        allow_instances((running + agents.len()) * INOTIFY_INSTANCES)?;
        let accounts: Vec<(&str, &str)> = agents
            .iter()
            .map(|agent| (agent.identity.namespace.as_str(), agent.identity.account.as_str()))
            .collect();
        let tokens = api.tokens(&accounts, TOKEN_AUDIENCE)?;
        let places: Vec<PodPlace> = agents.iter().map(|agent| agent.place).collect();
        let factory = mesh.proxies(&self.context);
        let pods = self.pods.select(&places).into_iter().zip(agents.iter().zip(tokens));
        let started =
            try_side_by_side(pods, |(pod, (agent, token))| factory.start_agent(pod, agent, &token))?;
        Ok(self.add_proxies(started))
    }

    pub fn add_proxies(&mut self, started: Vec<Proxy>) -> Vec<ProxyId> {
        let first = self.proxies.len();
        self.proxies.extend(started);
        (first..self.proxies.len()).collect()
    }

    pub fn change_pods(
        &mut self,
        places: &[PodPlace],
        change: impl Fn(&mut Pod) -> Result<()> + Sync,
    ) -> Result<()> {
        try_side_by_side(self.pods.select(places), change).map(drop)
    }

    /// Ends wait loops: returns an error once the user has stopped the run or a part of the control plane has
    /// failed.
    pub fn check_goes_on(&self) -> Result<()> {
        self.context.lab.check_not_stopped()?;
        self.mesh.as_ref().map_or(Ok(()), |mesh| mesh.control_plane.check("configure the proxies"))
    }
}

/// Checks that component names are distinct.
fn check_names(topology: &Topology) -> Result<()> {
    let mut names = HashSet::new();
    let pods = topology.workloads.iter().flat_map(Workload::pod_names);
    let mut all: Vec<String> =
        pods.flat_map(|pod| [format!("{pod}-proxy"), format!("{pod}-ztunnel"), pod]).collect();
    // A pod that runs only a driver may have the driver's name.
    let is_its_pods = |driver: &&DriverPlacement| {
        let at = &topology.workloads[driver.at];
        matches!(at.runs, Runs::Drivers) && at.pod_names().any(|pod| pod == driver.name)
    };
    let drivers = topology.drivers.iter().filter(|driver| !is_its_pods(driver));
    all.extend(drivers.map(|driver| driver.name.clone()));
    let clash = all.into_iter().find(|name| !names.insert(lab_name(name)));
    clash.map_or(Ok(()), |name| {
        let reason = format!("two of its pods, their proxies and its drivers would be called {name}");
        Err(EnvironmentError::new(format!("deploy topology {}", topology.name), reason))
    })
}

/// Writes the topology if a service reads it. Returns its file, and the directory to keep.
fn write_topology(context: &DeploymentContext<'_>) -> Result<(PathBuf, PrivateDir)> {
    let name = format!("t{}-topology", context.number);
    let directory = PrivateDir::create(context.lab, &name, ContainerUser::Lab)?;
    let file = directory.path().join("topology.yaml");
    let topology = &context.spec.topology;
    if topology.workloads.iter().any(|workload| workload.script().is_some()) {
        fs::write(&file, topology.to_yaml()).context(format!("write {}", file.display()))?;
    }
    Ok((file, directory))
}

fn open_mesh<'a>(
    lab: &'a LocalLab,
    programs: &'a ChosenPrograms,
    context: &DeploymentContext<'a>,
) -> Result<MeshContext<'a>> {
    let settings = &context.spec.istio;
    let programs = programs.istio()?;
    let control_plane = lab.control_plane(context.spec, programs)?;
    control_plane.provide(context.meshmeter, settings, &lab.progress)?;
    let wasm_module = settings.wasm.as_ref().map(|file| expose_wasm_module(context.lab, file)).transpose()?;
    let labels: Vec<_> = waypoint::namespace_labels(context.spec.parts().data_plane).collect();
    let namespaces = MeshNamespaces::create(
        context.lab,
        &control_plane,
        context.number,
        &context.spec.topology.namespaces(),
        &labels,
    )?;
    Ok(MeshContext { programs, control_plane, namespaces, wasm_module })
}
