//! Starts etcd and kube-apiserver, and waits for each component of the control plane.

use super::{
    API_PORT, API_SERVER, ApiCredentials, ControlPlanePlan, ETCD, ETCD_METRICS_PORT, ETCD_PORT, IstioPrograms,
};
use crate::Result;
use crate::certificates::write_private;
use crate::confined::server_user;
use crate::container::{Confined, Container, ContainerSpec, ContainerUser};
use crate::context::variables;
use crate::lab::Lab;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::running::Supporting;
use crate::wait::wait_for;
use components::Installed;
use experiment::environment::ErrorContext;
use experiment::topology::Resources;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::SYSTEM_NAMESPACE;
use results::Role;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

/// Address range of Services, next to the range of pods, 10.77.0.0/16.
const SERVICE_ADDRESSES: &str = "10.78.0.0/16";

/// Startup timeout of each of the three components. Together they take some 8 s on two idle cores.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts the processes of a control plane, which share a directory.
#[derive(Debug)]
pub(super) struct Starter {
    pub(super) lab: Lab,
    pub(super) plan: ControlPlanePlan,
    pub(super) log_dir: PathBuf,
    /// Directory of programs of the lab's user: Meshmeter's, and an istiod that the user named.
    pub(super) directory: PrivateDir,
    /// Directory of confined servers.
    pub(super) servers: PrivateDir,
}

/// Names of istiod's files in its directory.
pub(super) const KUBECONFIG: &str = "kubeconfig";
pub(super) const MESH_CONFIG: &str = "mesh.json";

impl Starter {
    /// Directory of an istiod that is confined or not.
    pub(super) fn istiod_directory(&self, confined: Option<&Confined>) -> &Path {
        if confined.is_some() { self.servers.path() } else { self.directory.path() }
    }

    /// Writes the files of istiods. The lab's user has the kubeconfig already.
    pub(super) fn write_istiod_files(&self, kubeconfig: &str, mesh_config: &str) -> Result<()> {
        let owner = self.lab.user_of(ContainerUser::Server);
        write_private(&self.servers.path().join(KUBECONFIG), kubeconfig.as_bytes(), owner)?;
        write_private(&self.servers.path().join(MESH_CONFIG), mesh_config.as_bytes(), owner)?;
        write_private(&self.directory.path().join(MESH_CONFIG), mesh_config.as_bytes(), None)
    }

    pub(super) fn start(
        &self,
        pod: &mut Pod,
        (name, program): (&str, &Path),
        confined: Option<Confined>,
        arguments: impl IntoIterator<Item = String>,
        environment: BTreeMap<String, OsString>,
        limits: Resources,
    ) -> Result<Container> {
        let directory = self.istiod_directory(confined.as_ref());
        pod.start(&ContainerSpec {
            user: server_user(confined.as_ref()),
            working_directory: Some(directory.to_path_buf()),
            confined: confined.map(|confined| confined.writing(directory)),
            arguments: arguments.into_iter().map(OsString::from).collect(),
            environment,
            limits,
            ..ContainerSpec::new(name, program, self.log_dir.join(format!("{name}.log")))
        })
    }
}

/// A control plane that is starting. The directory of its processes is removed last.
pub(super) struct Starting<'a> {
    pub(super) programs: &'a IstioPrograms,
    pub(super) pod: Pod,
    /// etcd and kube-apiserver.
    pub(super) parts: Vec<Supporting>,
    /// The first istiod, once it has been started.
    pub(super) istiod: Option<Container>,
    pub(super) starter: Starter,
}

impl Starting<'_> {
    pub(super) fn etcd(&mut self) -> Result<()> {
        let data = self.starter.servers.path().join("etcd");
        let client = format!("http://127.0.0.1:{ETCD_PORT}");
        let peer = "http://127.0.0.1:2380";
        let arguments = [
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            format!("--listen-metrics-urls=http://0.0.0.0:{ETCD_METRICS_PORT}"),
            // Its data does not outlive the lab.
            "--unsafe-no-fsync".to_owned(),
            // The only member waits up to this long (ms) before it elects itself.
            "--election-timeout=500".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let etcd = self.start((ETCD, &self.programs.etcd), arguments, Some((ETCD_PORT, "/version")))?;
        self.pod.wait_until_listening(&etcd, ETCD_PORT, READY_TIMEOUT)
    }

    pub(super) fn api_server(&mut self, credentials: &ApiCredentials) -> Result<()> {
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{ETCD_PORT}"),
            "--bind-address=0.0.0.0".to_owned(),
            format!("--advertise-address={}", self.pod.address()),
            format!("--secure-port={API_PORT}"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-cluster-ip-range={SERVICE_ADDRESSES}"),
            // As in a cluster: a gateway reads only those secrets that its service account may read.
            "--authorization-mode=RBAC".to_owned(),
            "--anonymous-auth=false".to_owned(),
            // The lab creates service accounts itself, and its pods have no containers to mount tokens into.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--enable-priority-and-fairness=false".to_owned(),
            "--profiling=false".to_owned(),
        ];
        let arguments = arguments.into_iter().chain(credentials.options.iter().cloned());
        self.start((API_SERVER, &self.programs.api_server), arguments, None).map(drop)
    }

    fn start(
        &mut self,
        (name, program): (&str, &Installed),
        arguments: impl IntoIterator<Item = String>,
        probe: Option<(u16, &'static str)>,
    ) -> Result<Container> {
        let container = self.starter.start(
            &mut self.pod,
            (name, &program.path),
            Confined::for_programs(&[program]),
            arguments,
            runtime_variables(),
            Resources::default(),
        )?;
        // istiod, if it shares the pod, has nearly all of the pod's traffic. Without an istiod, no other
        // component shows it.
        let shows_network = name == API_SERVER && self.starter.plan.is_studied;
        let part = Supporting::new(Role::ControlPlane, &self.pod, container.clone(), probe);
        self.parts.push(Supporting { shows_network, ..part });
        Ok(container)
    }

    /// A check that returns an error once the user stops the run or a component that the API needs has
    /// failed.
    pub(super) fn api_stop_check(&self) -> impl Fn() -> Result<()> + Send + Sync + 'static {
        let (lab, parts) = (self.starter.lab.clone(), self.parts.clone());
        move || {
            lab.check_not_stopped()?;
            parts.iter().try_for_each(|part| part.container.check("answer"))
        }
    }

    pub(super) fn wait_until(&self, what: &str, so: impl Fn() -> bool) -> Result<()> {
        wait_for(what, READY_TIMEOUT, || {
            self.check_alive(what)?;
            Ok(so().then_some(()))
        })
    }

    pub(super) fn check_alive(&self, what: &str) -> Result<()> {
        self.starter.lab.check_not_stopped()?;
        let mut containers = self.parts.iter().map(|part| &part.container).chain(&self.istiod);
        containers.try_for_each(|container| container.check(format!("wait until {what}")))
    }

    /// The root certificate that istiod writes to every namespace for pods to mount.
    pub(super) fn root_certificate(&self, api: &ApiClient) -> Result<String> {
        let reference = ObjectRef::new("v1", "ConfigMap", Some(SYSTEM_NAMESPACE), "istio-ca-root-cert");
        let what = "istiod gives out its root certificate";
        wait_for(what, READY_TIMEOUT, || {
            self.check_alive(what)?;
            let map = api.get(&reference)?;
            Ok(map.and_then(|map| map["data"]["root-cert.pem"].as_str().map(ToOwned::to_owned)))
        })
    }
}

/// Variables of etcd and kube-apiserver, whose CPU time is not a result: half the number of garbage
/// collections, and half of the CPUs, since threads that look for work take CPU from what is measured. istiod
/// keeps Go's defaults.
fn runtime_variables() -> BTreeMap<String, OsString> {
    let cpus = available_parallelism().map_or(1, NonZero::get);
    variables([("GOGC", "200".to_owned()), ("GOMAXPROCS", cpus.div_ceil(2).to_string())])
}

/// Definitions of the kinds that Istio and the Gateway API add to the API, as YAML documents.
pub(super) fn definitions(programs: &IstioPrograms) -> Result<String> {
    let mut definitions = String::new();
    for file in std::iter::once(&programs.files.istio_crds).chain(&programs.files.gateway_api_crds) {
        let text = std::fs::read_to_string(file).context(format!("read {}", file.display()))?;
        definitions.push_str("\n---\n");
        definitions.push_str(&text);
    }
    Ok(definitions)
}
