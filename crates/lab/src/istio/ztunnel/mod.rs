//! ztunnel, the node proxy of the ambient modes: what Istio's DaemonSet gives it, as files and environment.
//!
//! Shared by the node's pods, as in a cluster, it runs in a pod of its own, is handed theirs by [`super::zds`], and asks
//! istiod for certificates in their names. One for each pod ("dedicated") runs in that pod, as that pod.

pub(super) use mesh::ztunnel::metrics;

use super::control_plane::ControlPlane;
use super::in_force::Running;
use super::site::Site;
use super::zds::{Connection, NodeAgent, NodePod};
use crate::arrangement::started::{CounterSource, PrivateFolder, Proxy};
use crate::certificates::write_private;
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::envoy::admin::{Admin, AdminError};
use crate::envoy::proof::Evidence;
use crate::lab::Lab;
use crate::life::Question;
use crate::pod::Pod;
use crate::wait::wait_for;
use experiment::environment::{AccessLog, EnvironmentError};
use experiment::schema::ProxyConfiguration;
use mesh::config_dump::DumpCopy;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::workloads::Workload;
use mesh::names::{
    ADMIN_PORT, DISCOVERY_NAME, DISCOVERY_PORT, NODE, READINESS_PORT, STATUS_PORT, SYSTEM_NAMESPACE,
    TOKEN_AUDIENCE,
};
use mesh::ztunnel::footprint;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The name of a shared one: its component's, its pod's, its account's.
pub const NAME: &str = "ztunnel";

/// The mark on what it sends, which the redirect rules of ambient mode know it by. A shared one sets it of its own accord.
const PACKET_MARK: &str = "1337";

/// It takes some 100 ms.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Starts the ztunnels of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZtunnelFactory<'a> {
    /// Where they run.
    pub site: &'a Site<'a>,
    /// The program.
    pub program: &'a Path,
}

/// A running ztunnel.
#[derive(Debug)]
pub(super) struct Ztunnel {
    /// The component's name.
    pub name: String,
    /// The name of its pod.
    pub pod: String,
    /// Its process.
    pub container: Container,
    /// Its admin interface.
    pub admin: Admin,
    statistics: Admin,
    readiness: Admin,
    /// Who configures it.
    control_plane: Rc<ControlPlane>,
    _files: PrivateFolder,
    /// Of a shared one: it serves its pods while this is open.
    _pods: Option<Connection>,
}

impl ZtunnelFactory<'_> {
    /// Starts one in this pod of its own for these pods and hands them over. It need not be ready yet.
    ///
    /// # Errors
    /// Where it does not start, or cannot serve a pod.
    pub fn start_shared(
        &self,
        own: (&mut Pod, &Workload),
        served: &[(&Pod, &Workload)],
    ) -> Result<Ztunnel, EnvironmentError> {
        let (pod, workload) = own;
        let files = self.write_files(NAME, workload)?;
        let agent = NodeAgent::listen(&files.path().join("zds"))?;
        let mut environment = self.environment(pod, files.path());
        environment.extend(variables([
            ("INPOD_UDS", agent.path().into()),
            ("POD_NAME", NAME.into()),
            ("POD_NAMESPACE", SYSTEM_NAMESPACE.into()),
            ("SERVICE_ACCOUNT", NAME.into()),
            ("TRUST_DOMAIN", "cluster.local".into()),
        ]));
        let started = self.start(NAME, pod, ContainerUser::NodeProxy, files, environment)?;
        let pods = served.iter().map(|(pod, workload)| {
            Ok(NodePod {
                uid: self.uid(workload)?,
                name: &workload.name,
                namespace: &workload.namespace,
                service_account: &workload.name,
                network: pod.namespace().file().as_fd(),
            })
        });
        let pods: Vec<NodePod<'_>> = pods.collect::<Result<_, EnvironmentError>>()?;
        let connection = agent.hand_over(&pods, &|| started.check_starting(self.site.lab()))?;
        Ok(Ztunnel { _pods: Some(connection), ..started })
    }

    /// Starts one in the pod that it serves. It need not be ready yet.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start_dedicated(
        &self,
        name: &str,
        pod: &mut Pod,
        workload: &Workload,
    ) -> Result<Ztunnel, EnvironmentError> {
        let files = self.write_files(name, workload)?;
        let identity = format!("{}/{}/{}", workload.namespace, workload.name, workload.name);
        let mut environment = self.environment(pod, files.path());
        environment.extend(variables([
            ("PROXY_MODE", "dedicated".into()),
            ("PROXY_WORKLOAD_INFO", identity.into()),
            ("PACKET_MARK", PACKET_MARK.into()),
        ]));
        self.start(name, pod, ContainerUser::NetworkSetup, files, environment)
    }

    fn start(
        &self,
        name: &str,
        pod: &mut Pod,
        user: ContainerUser,
        files: PrivateFolder,
        environment: BTreeMap<String, OsString>,
    ) -> Result<Ztunnel, EnvironmentError> {
        let folder = fs::canonicalize(files.path())
            .map_err(|error| EnvironmentError::new(format!("find the files of {name}"), error))?;
        let container = pod.start(&ContainerSpec {
            name: name.to_owned(),
            program: self.program.to_path_buf(),
            arguments: ["proxy", "ztunnel"].map(OsString::from).to_vec(),
            environment,
            cpu_limit_cores: self.site.spec.proxy.cpu_limit_cores,
            user,
            working_directory: Some(folder),
            output_log: self.site.log_dir.join(format!("{name}.log")),
            error_output: ErrorOutput::WithOutput,
        })?;
        Ok(Ztunnel {
            name: name.to_owned(),
            pod: pod.name().to_owned(),
            container,
            admin: pod.admin(name, ADMIN_PORT),
            statistics: pod.admin(name, STATUS_PORT),
            readiness: pod.admin(name, READINESS_PORT),
            control_plane: Rc::clone(self.site.namespace.control_plane()),
            _files: files,
            _pods: None,
        })
    }

    fn environment(&self, pod: &Pod, files: &Path) -> BTreeMap<String, OsString> {
        let control_plane = format!("https://{DISCOVERY_NAME}:{DISCOVERY_PORT}");
        let root = files.join(ROOT_CERTIFICATE);
        // Its access log has a line for each connection, at its end.
        let log = if self.site.spec.proxy.access_log == AccessLog::Off { "info,access=off" } else { "info" };
        let format = if self.site.spec.proxy.access_log == AccessLog::Json { "json" } else { "plain" };
        variables([
            ("XDS_ADDRESS", control_plane.clone().into()),
            ("CA_ADDRESS", control_plane.into()),
            ("XDS_ROOT_CA", root.clone().into()),
            ("CA_ROOT_CA", root.into()),
            ("AUTH_TOKEN", files.join(TOKEN).into()),
            ("CLUSTER_ID", "Kubernetes".into()),
            ("NODE_NAME", NODE.into()),
            ("INSTANCE_IP", pod.address().to_string().into()),
            ("ZTUNNEL_WORKER_THREADS", self.site.spec.proxy.workers.to_string().into()),
            // Pods of a lab have no IPv6.
            ("IPV6_ENABLED", "false".into()),
            ("RUST_LOG", log.into()),
            ("LOG_FORMAT", format.into()),
        ])
        .collect()
    }

    fn write_files(&self, name: &str, workload: &Workload) -> Result<PrivateFolder, EnvironmentError> {
        let folder = format!("{}-{name}", self.site.namespace.name());
        let files = PrivateFolder(self.site.lab().create_private_dir(&folder, ContainerUser::Lab)?);
        let control_plane = self.site.namespace.control_plane();
        let token =
            control_plane.api().pod_token(&pod_reference(workload), &workload.name, TOKEN_AUDIENCE)?;
        for (name, content) in [(TOKEN, token.as_str()), (ROOT_CERTIFICATE, control_plane.root_certificate())]
        {
            let path = files.path().join(name);
            write_private(&path, content.as_bytes(), None)
                .map_err(|error| EnvironmentError::new(format!("write {}", path.display()), error))?;
        }
        Ok(files)
    }

    /// The identity of the pod's object.
    fn uid(&self, workload: &Workload) -> Result<String, EnvironmentError> {
        self.site.namespace.control_plane().api().uid(&pod_reference(workload))
    }
}

const TOKEN: &str = "istio-token";
const ROOT_CERTIFICATE: &str = "root-cert.pem";

fn variables<const N: usize>(
    variables: [(&'static str, OsString); N],
) -> impl Iterator<Item = (String, OsString)> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value))
}

fn pod_reference(workload: &Workload) -> ObjectRef {
    ObjectRef::new("v1", "Pod", Some(&workload.namespace), &workload.name)
}

impl Ztunnel {
    /// Waits until it says that it is ready: it has had its first configuration, and all pods.
    ///
    /// # Errors
    /// Where that takes too long or it ends, with its last words.
    pub fn wait_until_ready(&self, lab: &Lab) -> Result<(), EnvironmentError> {
        wait_for(&format!("{} is ready", self.name), READY_WITHIN, || {
            self.check_starting(lab)?;
            self.control_plane.check(&format!("wait until {} is ready", self.name))?;
            Ok(self.readiness.ask("/healthz/ready").is_ok().then_some(()))
        })
    }

    fn check_starting(&self, lab: &Lab) -> Result<(), EnvironmentError> {
        lab.check_not_stopped()?;
        self.container.check(format!("start {}", self.name))
    }

    /// It as a part of its arrangement, once for each place on the path that it stands at.
    pub fn on_the_path(self, places: Vec<(Option<&'static str>, Evidence)>) -> Vec<Proxy> {
        let ztunnel = self;
        let kept = Arc::new((ztunnel._files, ztunnel._pods));
        let place = |(side, evidence)| Proxy {
            name: ztunnel.name.clone(),
            side,
            pod: ztunnel.pod.clone(),
            container: ztunnel.container.clone(),
            evidence,
            spans: None,
            counters: Box::new(ZtunnelPorts {
                admin: ztunnel.admin.clone(),
                statistics: ztunnel.statistics.clone(),
                readiness: ztunnel.readiness.clone(),
                _kept: Arc::clone(&kept),
            }),
            _files: None,
        };
        places.into_iter().map(place).collect()
    }
}

impl Running for Ztunnel {
    fn check(&self, operation: &str) -> Result<(), EnvironmentError> {
        self.container.check(operation)
    }
}

/// The ports of a ztunnel that is asked what it counted.
#[derive(Debug)]
struct ZtunnelPorts {
    admin: Admin,
    statistics: Admin,
    readiness: Admin,
    /// Its files, and of a shared one what it is handed pods by: it serves them as long as its counters are read.
    _kept: Arc<(PrivateFolder, Option<Connection>)>,
}

impl CounterSource for ZtunnelPorts {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        let text = self.statistics.ask("/metrics")?;
        Ok(metrics::counters(&String::from_utf8_lossy(&text)))
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        self.admin.read("/config_dump", |answer| footprint::count(answer, copy)).map(Some)
    }

    fn liveness_probes(&self) -> Vec<Question> {
        vec![Question { process: None, admin: self.readiness.clone(), path: "/healthz/ready" }]
    }

    fn admin(&self) -> Option<&Admin> {
        Some(&self.admin)
    }
}
