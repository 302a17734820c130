//! pilot-agent in a pod, which runs Envoy there: what an injected container (or a gateway's) is given, as files and
//! environment.
//!
//! The agent asks the control plane for a certificate with the token of the pod's service account, hands configuration on
//! to Envoy, and ends when Envoy does. Both run as user 1337 in one control group: what a cluster would show as the
//! container `istio-proxy` is one component here. Its folder is private to that user and goes with the proxy.

use super::control_plane::ControlPlane;
use super::in_force::{Awaited, Expected, Running};
use super::refusal::{CHECKED_LINES, check_not_rejected};
use super::site::Site;
use crate::arrangement::started::{CounterSource, PrivateFolder, Proxy};
use crate::arrangement::tracing::SentSpans;
use crate::certificates::write_private;
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::envoy::admin::{Admin, AdminError};
use crate::envoy::plaintext;
use crate::envoy::proof::Evidence;
use crate::lab::Lab;
use crate::life::Question;
use crate::pod::Pod;
use crate::redirect::PROXY_USER;
use crate::wait::wait_for;
use experiment::environment::EnvironmentError;
use experiment::schema::{ProxyConfiguration, ProxyHeap};
use mesh::config_dump::DumpCopy;
use mesh::kubernetes::workloads::Workload;
pub use mesh::names::{ADMIN_PORT, STATUS_PORT};
use mesh::names::{CLUSTER_DOMAIN, DISCOVERY_NAME, DISCOVERY_PORT, NODE, TOKEN_AUDIENCE};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// A proxy takes about a second; more on a machine that is busy with other things.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// What kind of proxy istiod is to configure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyKind {
    /// Beside an application.
    Sidecar,
    /// A gateway.
    Router,
    /// A waypoint.
    Waypoint,
}

impl ProxyKind {
    fn argument(self) -> &'static str {
        match self {
            Self::Sidecar => "sidecar",
            Self::Router => "router",
            Self::Waypoint => "waypoint",
        }
    }

    /// istiod has gateways tell of what they send on besides what arrives.
    fn spans_of_each_request(self) -> u64 {
        match self {
            Self::Router => 2,
            Self::Sidecar | Self::Waypoint => 1,
        }
    }
}

/// A proxy to start.
#[derive(Clone, Debug)]
pub struct AgentSpec<'a> {
    /// The component's name.
    pub name: &'a str,
    /// What kind of proxy it is.
    pub kind: ProxyKind,
    /// The pod as the API knows it; its service account has the same name.
    pub workload: &'a Workload,
    /// Prefixes of the statistics that prove its path, besides those that Istio keeps of its own accord.
    pub statistics: &'a [String],
    /// More of its environment.
    pub environment: &'a [(&'a str, String)],
}

/// Starts the agents of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentFactory<'a> {
    /// Where they run.
    pub site: &'a Site<'a>,
}

/// A running agent with its Envoy.
#[derive(Debug)]
pub struct Agent {
    /// The component's name.
    pub name: String,
    /// The agent's process, Envoy among its children.
    pub container: Container,
    /// Envoy's admin interface.
    pub admin: Admin,
    status: Admin,
    spans: SentSpans,
    /// Who configures it.
    control_plane: Rc<ControlPlane>,
    /// The program that Envoy is.
    envoy: PathBuf,
    /// Its files.
    pub(crate) files: PrivateFolder,
}

impl AgentFactory<'_> {
    /// Starts an agent in this pod. It need not be ready yet.
    ///
    /// # Errors
    /// Where its token cannot be had, a file not be written, or it does not start.
    pub fn start(&self, pod: &mut Pod, spec: &AgentSpec<'_>) -> Result<Agent, EnvironmentError> {
        let operation = |error: std::io::Error| {
            EnvironmentError::new(format!("prepare the files of {}", spec.name), error)
        };
        let folder_name = format!("{}-{}", self.site.namespace.name(), spec.name);
        let files = PrivateFolder(self.site.lab().create_private_dir(&folder_name, ContainerUser::Proxy)?);
        self.write_files(files.path(), spec, pod)?;
        let envoy = self.site.lab().expose_program(&self.site.programs.envoy.path)?;
        let container = pod.start(&ContainerSpec {
            name: spec.name.to_owned(),
            program: self.site.programs.pilot_agent.path.clone(),
            arguments: self.arguments(spec),
            environment: self.environment(spec, pod, &envoy),
            cpu_limit_cores: self.site.spec.proxy.cpu_limit_cores,
            user: ContainerUser::Proxy,
            working_directory: Some(fs::canonicalize(files.path()).map_err(operation)?),
            output_log: self.site.log_dir.join(format!("{}.log", spec.name)),
            error_output: ErrorOutput::WithOutput,
        })?;
        Ok(Agent {
            name: spec.name.to_owned(),
            container,
            admin: pod.admin(spec.name, ADMIN_PORT),
            status: pod.admin(spec.name, STATUS_PORT),
            spans: SentSpans {
                // As the agent names the node: by the pod's label `app` and its namespace.
                sender: format!("{}.{}", spec.workload.name, self.site.namespace.name()),
                of_each_request: spec.kind.spans_of_each_request(),
            },
            control_plane: Rc::clone(self.site.namespace.control_plane()),
            envoy,
            files,
        })
    }

    fn arguments(&self, spec: &AgentSpec<'_>) -> Vec<OsString> {
        let arguments = [
            "proxy".to_owned(),
            spec.kind.argument().to_owned(),
            format!("--domain={}.{}", self.site.namespace.name(), CLUSTER_DOMAIN),
            "--proxyLogLevel=warning".to_owned(),
            "--proxyComponentLogLevel=misc:error".to_owned(),
            "--log_output_level=default:info".to_owned(),
            format!("--templateFile=./{TEMPLATE_FILE}"),
        ];
        arguments.map(OsString::from).to_vec()
    }

    fn environment(&self, spec: &AgentSpec<'_>, pod: &Pod, envoy: &Path) -> BTreeMap<String, OsString> {
        let address = pod.address().to_string();
        let variables = [
            ("POD_NAME", spec.workload.name.clone()),
            ("POD_NAMESPACE", self.site.namespace.name().to_owned()),
            ("INSTANCE_IP", address.clone()),
            ("HOST_IP", address),
            ("SERVICE_ACCOUNT", spec.workload.name.clone()),
            ("CA_ADDR", format!("{DISCOVERY_NAME}:{DISCOVERY_PORT}")),
            ("PILOT_CERT_PROVIDER", "istiod".to_owned()),
            ("PROXY_CONFIG", self.proxy_config(spec, envoy).to_string()),
            ("TRUST_DOMAIN", "cluster.local".to_owned()),
            ("ISTIO_META_CLUSTER_ID", "Kubernetes".to_owned()),
            ("ISTIO_META_MESH_ID", "cluster.local".to_owned()),
            ("ISTIO_META_NODE_NAME", NODE.to_owned()),
            ("ISTIO_META_INTERCEPTION_MODE", "REDIRECT".to_owned()),
            ("ISTIO_META_WORKLOAD_NAME", spec.workload.name.clone()),
            ("ISTIO_META_APP_CONTAINERS", spec.workload.name.clone()),
        ];
        let own = spec.environment.iter().map(|(name, value)| (*name, value.clone()));
        variables.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// What a mesh's `defaultConfig` would say, with the statistics that prove the path switched on: Istio keeps few of
    /// its own accord.
    fn proxy_config(&self, spec: &AgentSpec<'_>, envoy: &Path) -> Value {
        json!({
            "binaryPath": envoy,
            "configPath": "./etc/istio/proxy",
            "discoveryAddress": format!("{DISCOVERY_NAME}:{DISCOVERY_PORT}"),
            "proxyAdminPort": ADMIN_PORT,
            "statusPort": STATUS_PORT,
            "concurrency": self.site.spec.proxy.workers,
            "terminationDrainDuration": "0s",
            "proxyStatsMatcher": {"inclusionPrefixes": spec.statistics},
        })
    }

    fn write_files(&self, folder: &Path, spec: &AgentSpec<'_>, pod: &Pod) -> Result<(), EnvironmentError> {
        for directory in FOLDERS {
            let path = folder.join(directory);
            fs::create_dir(&path)
                .map_err(|error| EnvironmentError::new(format!("make {}", path.display()), error))?;
            self.site.lab().give_to(&path, ContainerUser::Proxy)?;
        }
        let api = self.site.namespace.control_plane().api();
        let token = api.token(self.site.namespace.name(), &spec.workload.name, TOKEN_AUDIENCE)?;
        let template = &self.site.programs.files.bootstrap_template;
        let template = fs::read_to_string(template)
            .map_err(|error| EnvironmentError::new(format!("read {}", template.display()), error))?;
        // pilot-agent asks it of every waypoint, and only Istio's own build of Envoy has it.
        let template = if self.site.programs.is_istios_envoy {
            template
        } else {
            template.replace("if .metadata_discovery", "if false")
        };
        let labels: String =
            spec.workload.labels.iter().map(|(name, value)| format!("{name}={value:?}\n")).collect();
        for (name, content) in [
            ("var/run/secrets/tokens/istio-token", token.as_bytes()),
            (
                "var/run/secrets/istio/root-cert.pem",
                self.site.namespace.control_plane().root_certificate().as_bytes(),
            ),
            ("etc/istio/pod/labels", labels.as_bytes()),
            ("etc/istio/pod/annotations", b""),
            (TEMPLATE_FILE, template.as_bytes()),
        ] {
            let path = folder.join(name);
            write_private(&path, content, Some(PROXY_USER)).map_err(|error| {
                EnvironmentError::new(format!("write {} of pod {}", path.display(), pod.name()), error)
            })?;
        }
        Ok(())
    }
}

/// Where the template of Envoy's bootstrap file is, in the agent's folder.
const TEMPLATE_FILE: &str = "envoy_bootstrap_template.json";

/// The folders that the agent expects below its own, parents first.
const FOLDERS: [&str; 10] = [
    "etc",
    "etc/istio",
    "etc/istio/proxy",
    "etc/istio/pod",
    "var",
    "var/run",
    "var/run/secrets",
    "var/run/secrets/tokens",
    "var/run/secrets/istio",
    "var/run/secrets/workload-spiffe-uds",
];

impl Agent {
    /// The proxy as one that is waited for until it shows this.
    pub(super) fn awaited(&self, expected: Vec<Expected>) -> Awaited<'_> {
        Awaited {
            name: &self.name,
            known_as: Some(&self.spans.sender),
            admin: &self.admin,
            running: self,
            expected,
        }
    }

    /// The proxy as a part of its arrangement.
    pub(crate) fn on_the_path(self, pod: &str, evidence: Evidence) -> Proxy {
        Proxy {
            name: self.name,
            side: None,
            pod: pod.to_owned(),
            container: self.container,
            evidence,
            spans: Some(self.spans),
            counters: Box::new(AgentCounters { envoy: self.admin, agent: self.status }),
            _files: Some(self.files),
        }
    }

    /// Waits until the agent says that its Envoy serves with a first configuration.
    ///
    /// # Errors
    /// Where that takes too long, it refuses its configuration, or it or the control plane ends or stands still: with its words.
    pub fn wait_until_ready(&self, lab: &Lab) -> Result<(), EnvironmentError> {
        let what = format!("{} is ready", self.name);
        wait_for(&what, READY_WITHIN, || {
            lab.check_not_stopped()?;
            self.check(&format!("start {}", self.name))?;
            self.control_plane.check(&format!("wait until {what}"))?;
            Ok(self.status.ask("/healthz/ready").is_ok().then_some(()))
        })?;
        self.watch_envoy()
    }

    /// An agent may take its time to end when its Envoy has; nothing passes the proxy from then on.
    fn watch_envoy(&self) -> Result<(), EnvironmentError> {
        let is_envoy =
            |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == self.envoy);
        let watched = match self.container.processes().into_iter().find(is_envoy) {
            Some(envoy) => self.container.cannot_do_without("Envoy", envoy),
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        watched.map_err(|error| EnvironmentError::new(format!("watch the Envoy of {}", self.name), error))
    }
}

impl Running for Agent {
    fn check(&self, operation: &str) -> Result<(), EnvironmentError> {
        self.container.check(operation)?;
        check_not_rejected(&self.name, &self.container.log_tail(CHECKED_LINES))
    }
}

/// The counters of an Envoy that istiod configured.
#[derive(Debug)]
struct AgentCounters {
    envoy: Admin,
    agent: Admin,
}

impl CounterSource for AgentCounters {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        let counters = self.envoy.counters()?;
        Ok(counters.into_iter().map(|(name, count)| (plain_name(&name), count)).collect())
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        CounterSource::heap(&self.envoy)
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        CounterSource::configuration(&self.envoy, copy)
    }

    fn accepts_plaintext(&self, port: u16) -> Result<Option<bool>, AdminError> {
        let listeners = self.envoy.ask_long_json("/config_dump?resource=dynamic_listeners")?;
        Ok(plaintext::accepts_plaintext(&listeners, port))
    }

    fn liveness_probes(&self) -> Vec<Question> {
        let question = |of, admin: &Admin, path| Question { process: Some(of), admin: admin.clone(), path };
        // The agent knows no such page, and says so without asking Envoy.
        vec![question("Envoy", &self.envoy, "/ready"), question("pilot-agent", &self.agent, "/")]
    }

    fn admin(&self) -> Option<&Admin> {
        Some(&self.envoy)
    }
}

/// Recent versions of Istio end what a statistic is about with a semicolon, for their own parsing of names:
/// `cluster.inbound|8080||;.upstream_rq_total`.
fn plain_name(name: &str) -> String {
    name.replace(";.", ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_have_one_name_whatever_the_version_of_istio() {
        for name in ["cluster.inbound|8080||;.ssl.handshake", "cluster.inbound|8080||.ssl.handshake"] {
            assert_eq!(plain_name(name), "cluster.inbound|8080||.ssl.handshake");
        }
    }
}
