//! pilot-agent in a pod, which runs Envoy, with the files and environment of an injected container or a
//! gateway.
//!
//! The agent requests a certificate from the control plane with the token of the pod's service account,
//! passes configuration on to Envoy, and ends when Envoy does. Both run as user 1337 in one cgroup: the
//! container `istio-proxy` of a cluster is one component here. Its directory is private to that user and is
//! removed with the proxy.

use super::context::MeshProxies;
use crate::Result;
use crate::certificates::write_private;
use crate::container::{Confined, ContainerSpec, ContainerUser};
use crate::context::{ProxyResources, variables};
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::redirect::PROXY_USER;
use crate::running::{PodIdentity, PodPlace, Proxy};
use experiment::environment::ErrorContext;
use mesh::envoy::traffic::BOOTSTRAP_FLUSH;
use mesh::istio::agent::AgentProxy;
use mesh::names::{ADMIN_PORT, STATUS_PORT, UPDATE_TIME, setting_for_keys};
use mesh::names::{CLUSTER_DOMAIN, DISCOVERY_NAME, DISCOVERY_PORT, NODE};
use mesh::spans::SentSpans;
use results::{Mode, ProxyBuild};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Number of inotify instances that an agent opens, for its certificates.
pub(crate) const INOTIFY_INSTANCES: usize = 2;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyKind {
    Sidecar,
    Router,
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

    /// istiod configures gateways to report spans for what they forward, in addition to what they receive.
    fn spans_per_request(self) -> u64 {
        match self {
            Self::Router => 2,
            Self::Sidecar | Self::Waypoint => 1,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AgentSpec {
    pub place: PodPlace,
    pub name: String,
    pub kind: ProxyKind,
    pub identity: PodIdentity,
    /// Prefixes of the statistics that prove its path, in addition to those that Istio enables itself.
    pub statistics: Vec<String>,
    pub resources: ProxyResources,
}

impl MeshProxies<'_> {
    /// Starts an agent in this pod. `token` authenticates its service account.
    pub fn start_agent(&self, pod: &mut Pod, spec: &AgentSpec, token: &str) -> Result<Proxy> {
        let lab = self.context.lab;
        let directory = format!("mesh-{}-{}", self.context.number, spec.name);
        let files = PrivateDir::create(lab, &directory, ContainerUser::Proxy)?;
        self.write_files(files.path(), spec, token)?;
        let confined = Confined::for_programs(&[&self.programs.pilot_agent, &self.programs.envoy]);
        let envoy = match confined {
            Some(_) => self.programs.envoy.path.clone(),
            None => lab.expose_program(&self.programs.envoy.path)?,
        };
        let working_directory =
            fs::canonicalize(files.path()).context(format!("prepare the files of {}", spec.name))?;
        let arguments = [
            "proxy".to_owned(),
            spec.kind.argument().to_owned(),
            format!("--domain={}.{}", spec.identity.namespace, CLUSTER_DOMAIN),
            "--proxyLogLevel=warning".to_owned(),
            "--proxyComponentLogLevel=misc:error".to_owned(),
            "--log_output_level=default:info".to_owned(),
            format!("--templateFile=./{TEMPLATE_FILE}"),
        ];
        let exposed = lab.exposed_files_dir()?;
        let container = pod.start(&ContainerSpec {
            confined: confined.map(|confined| confined.reading([exposed.as_path()]).writing(files.path())),
            arguments: arguments.map(OsString::from).to_vec(),
            environment: self.environment(spec, pod, &envoy),
            working_directory: Some(working_directory),
            limits: spec.resources.limits,
            ..self.context.proxy_container(&spec.name, &self.programs.pilot_agent.path)
        })?;
        let PodIdentity { account, pod: pod_name, namespace, .. } = &spec.identity;
        let counters = AgentProxy {
            envoy: pod.admin(&spec.name, ADMIN_PORT),
            agent: Some(pod.admin(&spec.name, STATUS_PORT)),
        };
        Ok(Proxy {
            known_as: Some(format!("{pod_name}.{namespace}")),
            spans: Some(SentSpans {
                // The agent's name for the node: the pod's label `app` and its namespace.
                sender: format!("{account}.{namespace}"),
                spans_per_request: spec.kind.spans_per_request(),
            }),
            ..Proxy::new(&spec.name, pod, container, Box::new(counters), files)
        })
    }

    fn environment(&self, spec: &AgentSpec, pod: &Pod, envoy: &Path) -> BTreeMap<String, OsString> {
        let address = pod.address().to_string();
        let identity = &spec.identity;
        let istio = &self.context.spec.istio;
        let dns = [
            ("ISTIO_META_DNS_CAPTURE", istio.dns_capture),
            ("ISTIO_META_DNS_AUTO_ALLOCATE", istio.dns_auto_allocate),
        ];
        let dns = dns.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (name, "true".to_owned()));
        let keys = setting_for_keys(istio.workload_keys).map(|(name, value)| (name, value.to_owned()));
        let own = [
            ("POD_NAME", identity.pod.clone()),
            ("POD_NAMESPACE", identity.namespace.clone()),
            ("INSTANCE_IP", address.clone()),
            ("HOST_IP", address),
            ("SERVICE_ACCOUNT", identity.account.clone()),
            ("CA_ADDR", format!("{DISCOVERY_NAME}:{DISCOVERY_PORT}")),
            ("PILOT_CERT_PROVIDER", "istiod".to_owned()),
            ("PROXY_CONFIG", self.proxy_config(spec, envoy).to_string()),
            ("TRUST_DOMAIN", "cluster.local".to_owned()),
            ("ISTIO_META_CLUSTER_ID", "Kubernetes".to_owned()),
            ("ISTIO_META_MESH_ID", "cluster.local".to_owned()),
            ("ISTIO_META_NODE_NAME", NODE.to_owned()),
            ("ISTIO_META_INTERCEPTION_MODE", "REDIRECT".to_owned()),
            ("ISTIO_META_WORKLOAD_NAME", identity.account.clone()),
            ("ISTIO_META_APP_CONTAINERS", identity.account.clone()),
        ];
        variables(own.into_iter().chain(dns).chain(keys))
    }

    /// A mesh's `defaultConfig`, with the statistics that prove the path: Istio enables few by default.
    fn proxy_config(&self, spec: &AgentSpec, envoy: &Path) -> Value {
        // A fleet's witness has to show when it received each update.
        let is_witness = self.context.spec.mode == Mode::ControlPlane;
        let suffixes: &[&str] = if is_witness { &[UPDATE_TIME] } else { &[] };
        json!({
            "binaryPath": envoy,
            "configPath": "./etc/istio/proxy",
            "discoveryAddress": format!("{DISCOVERY_NAME}:{DISCOVERY_PORT}"),
            "proxyAdminPort": ADMIN_PORT,
            "statusPort": STATUS_PORT,
            "concurrency": spec.resources.workers,
            "terminationDrainDuration": "0s",
            "proxyStatsMatcher": {"inclusionPrefixes": spec.statistics, "inclusionSuffixes": suffixes},
        })
    }

    fn write_files(&self, folder: &Path, spec: &AgentSpec, token: &str) -> Result<()> {
        for directory in FOLDERS {
            let path = folder.join(directory);
            fs::create_dir(&path).context(format!("make {}", path.display()))?;
            self.context.lab.give_to(&path, ContainerUser::Proxy)?;
        }
        let template = &self.programs.files.bootstrap_template;
        let template = fs::read_to_string(template).context(format!("read {}", template.display()))?;
        let template = match self.programs.proxy_build {
            ProxyBuild::Istio => template,
            // pilot-agent requires this filter of every waypoint, and only Istio's own build of Envoy has it.
            ProxyBuild::Upstream => template.replace("if .metadata_discovery", "if false"),
        };
        let template =
            if spec.kind == ProxyKind::Sidecar { template } else { flushing_on_queries(&template) };
        let labels: String =
            spec.identity.labels.iter().map(|(name, value)| format!("{name}={value:?}\n")).collect();
        for (name, content) in [
            ("var/run/secrets/tokens/istio-token", token.as_bytes()),
            ("var/run/secrets/istio/root-cert.pem", self.root_certificate.as_bytes()),
            ("etc/istio/pod/labels", labels.as_bytes()),
            ("etc/istio/pod/annotations", b""),
            (TEMPLATE_FILE, template.as_bytes()),
        ] {
            write_private(&folder.join(name), content, Some(PROXY_USER))?;
        }
        Ok(())
    }
}

/// The bootstrap of a gateway: histograms are flushed when queried, since they are read at both ends of the
/// window.
fn flushing_on_queries(template: &str) -> String {
    let (key, value) = BOOTSTRAP_FLUSH;
    template.replacen("\"stats_config\": {", &format!("\"{key}\": {value},\n  \"stats_config\": {{"), 1)
}

const TEMPLATE_FILE: &str = "envoy_bootstrap_template.json";

/// Directories that the agent expects under its own, parents first.
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
