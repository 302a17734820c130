//! ztunnel, the node proxy of the ambient modes, with the files and environment that Istio's DaemonSet gives
//! it.
//!
//! If the node's pods share it, as in a cluster, it runs in a pod of its own. [`super::zds`] hands their pods
//! over to it, and it requests certificates from istiod in their names. A dedicated ztunnel runs in its pod,
//! with that pod's identity.

use super::zds::{NodeAgent, NodePod};
use crate::Result;
use crate::certificates::write_private;
use crate::container::{Confined, Container, ContainerSpec, ContainerUser};
use crate::context::variables;
use crate::istio::context::MeshProxies;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::running::{PodIdentity, Proxy};
use components::Installed;
use confinement::Joinable;
use experiment::environment::{AccessLog, ErrorContext};
use mesh::names::{
    ADMIN_PORT, DISCOVERY_NAME, DISCOVERY_PORT, NODE, READINESS_PORT, STATUS_PORT, SYSTEM_NAMESPACE,
};
use mesh::ztunnel::admin::ZtunnelAdmin;
use std::ffi::OsString;
use std::fs;

/// Name of a shared ztunnel as a component, pod and account.
pub const NAME: &str = "ztunnel";

/// Mark on packets that it sends; ambient mode's redirect rules recognise them by it. A shared ztunnel sets
/// it by default.
const PACKET_MARK: &str = "1337";

impl MeshProxies<'_> {
    /// Starts a ztunnel in this pod of its own and hands these pods over to it. It need not be ready on
    /// return.
    pub fn start_shared_ztunnel(
        &self,
        program: &Installed,
        pod: &mut Pod,
        token: &str,
        served: &[NodePod<'_>],
    ) -> Result<Proxy> {
        let files = self.write_ztunnel_files(NAME, token)?;
        let socket = files.path().join("zds");
        let agent = NodeAgent::listen(&socket)?;
        let own = [
            ("INPOD_UDS", socket.into()),
            ("POD_NAME", NAME.into()),
            ("POD_NAMESPACE", SYSTEM_NAMESPACE.into()),
            ("SERVICE_ACCOUNT", NAME.into()),
            ("TRUST_DOMAIN", "cluster.local".into()),
        ];
        let container = self.start_ztunnel((NAME, program), pod, ContainerUser::NodeProxy, &files, own)?;
        let connection = agent.hand_over(served, &|| {
            self.context.lab.check_not_stopped()?;
            container.check(format!("start {NAME}"))
        })?;
        // It serves its pods while this connection is open.
        Ok(Proxy { _held: Some(Box::new(connection)), ..proxy(NAME, pod, container, files) })
    }

    pub fn start_dedicated_ztunnel(
        &self,
        program: (&str, &Installed),
        pod: &mut Pod,
        PodIdentity { namespace, pod: pod_name, account, .. }: &PodIdentity,
        token: &str,
    ) -> Result<Proxy> {
        let files = self.write_ztunnel_files(program.0, token)?;
        let own = [
            ("PROXY_MODE", "dedicated".into()),
            ("PROXY_WORKLOAD_INFO", format!("{namespace}/{pod_name}/{account}").into()),
            ("PACKET_MARK", PACKET_MARK.into()),
        ];
        let container = self.start_ztunnel(program, pod, ContainerUser::NetworkSetup, &files, own)?;
        Ok(proxy(program.0, pod, container, files))
    }

    fn start_ztunnel<const N: usize>(
        &self,
        (name, program): (&str, &Installed),
        pod: &mut Pod,
        user: ContainerUser,
        files: &PrivateDir,
        own: [(&str, OsString); N],
    ) -> Result<Container> {
        let directory = fs::canonicalize(files.path()).context(format!("find the files of {name}"))?;
        let control_plane = format!("https://{DISCOVERY_NAME}:{DISCOVERY_PORT}");
        let root = files.path().join(ROOT_CERTIFICATE);
        // Its access log has a line per connection, written when it closes.
        let (log, format) = match self.context.spec.proxy.access_log {
            AccessLog::Off => ("info,access=off", "plain"),
            AccessLog::Text => ("info", "plain"),
            AccessLog::Json => ("info", "json"),
        };
        let common = [
            ("XDS_ADDRESS", control_plane.clone().into()),
            ("CA_ADDRESS", control_plane.into()),
            ("XDS_ROOT_CA", root.clone().into()),
            ("CA_ROOT_CA", root.into()),
            ("AUTH_TOKEN", files.path().join(TOKEN).into()),
            ("CLUSTER_ID", "Kubernetes".into()),
            ("NODE_NAME", NODE.into()),
            ("INSTANCE_IP", pod.address().to_string().into()),
            ("ZTUNNEL_WORKER_THREADS", self.context.spec.proxy.workers.to_string().into()),
            // Pods of a lab have no IPv6.
            ("IPV6_ENABLED", "false".into()),
            ("RUST_LOG", log.into()),
            ("LOG_FORMAT", format.into()),
        ];
        let confined = Confined::for_programs(&[program]).map(|confined| confined.writing(files.path()));
        let confined = match user {
            ContainerUser::NodeProxy => confined.map(|confined| confined.joining(Joinable::Networks)),
            _ => confined,
        };
        pod.start(&ContainerSpec {
            confined,
            arguments: ["proxy", "ztunnel"].map(OsString::from).to_vec(),
            environment: variables(common.into_iter().chain(own)),
            user,
            working_directory: Some(directory),
            ..self.context.proxy_container(name, &program.path)
        })
    }

    fn write_ztunnel_files(&self, name: &str, token: &str) -> Result<PrivateDir> {
        let directory = format!("mesh-{}-{name}", self.context.number);
        let files = PrivateDir::create(self.context.lab, &directory, ContainerUser::Lab)?;
        for (name, content) in [(TOKEN, token), (ROOT_CERTIFICATE, self.root_certificate)] {
            write_private(&files.path().join(name), content.as_bytes(), None)?;
        }
        Ok(files)
    }
}

fn proxy(name: &str, pod: &Pod, container: Container, files: PrivateDir) -> Proxy {
    let interfaces = ZtunnelAdmin {
        admin: pod.admin(name, ADMIN_PORT),
        statistics: pod.admin(name, STATUS_PORT),
        readiness: Some(pod.admin(name, READINESS_PORT)),
    };
    Proxy::new(name, pod, container, Box::new(interfaces), files)
}

const TOKEN: &str = "istio-token";
const ROOT_CERTIFICATE: &str = "root-cert.pem";
