//! Runs one trial of a test: a deployment, the generator in its client's pod, and the observations.

use crate::cases::LogFolder;
use crate::observation::Observation;
pub use crate::specs::{settings, spec};
use experiment::environment::deploy::{Argument, Deployment, DriverEventKind, DriverLoad, DriverStart};
use experiment::environment::{
    DeploymentSpec, EnvironmentError, SentLoad, Snapshot, TCP_REQUEST_BYTES, WindowUsage, error_chain,
};
use experiment::mesh_settings::{ExtraObjects, IngressSettings, IngressTls};
use experiment::{MeshSettings, Protocol};
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use results::{ConfigurationPush, LoadEvent, LoadResult, Mode, ProxyProof, SpokenProtocol};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub const REQUESTS: u64 = 400;
pub const CONNECTIONS: u64 = 4;
/// Driver of a pair.
const GENERATOR: &str = "generator";
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Longer than all requests take if they get responses: their number ends the window.
const WINDOW: Duration = Duration::from_secs(60);
/// If every connection is refused, no request is ever sent and only time ends the window. Long enough for
/// hundreds of attempts.
const WINDOW_OF_REFUSALS: Duration = Duration::from_secs(1);

/// The generator's result and the usage in its window; either is `None` if it could not connect.
#[derive(Default)]
pub struct Load {
    result: Option<LoadResult>,
    usage: Option<WindowUsage>,
}

/// Result and observations of a trial.
pub struct Trial {
    pub observation: Observation,
    /// `None` if the generator could not connect.
    result: Option<LoadResult>,
}

impl Trial {
    /// Requests with a response of status 200; with raw TCP, which has no status, requests with a response.
    pub fn answered(&self) -> u64 {
        let Some(result) = &self.result else { return 0 };
        if result.protocol == SpokenProtocol::Raw {
            return result.requests.completed;
        }
        result.requests.status.get("200").copied().unwrap_or(0)
    }

    /// Responses with this status.
    pub fn responses(&self, status: &str) -> u64 {
        self.result.as_ref().and_then(|result| result.requests.status.get(status)).copied().unwrap_or(0)
    }

    /// Responses with an error status, of HTTP or of gRPC.
    pub fn errors(&self) -> u64 {
        self.result.as_ref().map_or(0, |result| result.requests.error_statuses())
    }

    /// Requests with any response.
    pub fn completed(&self) -> u64 {
        self.result.as_ref().map_or(0, |result| result.requests.completed)
    }

    pub fn proxy(&self, name: &str) -> &ProxyProof {
        let found = self.observation.evidence.path.proxies.iter().find(|proxy| proxy.name == name);
        found.unwrap_or_else(|| panic!("no proxy {name} in {:?}", self.observation.evidence.path))
    }

    /// Result of the generator.
    pub fn result(&self) -> &LoadResult {
        self.result.as_ref().expect("the generator sent something")
    }

    /// Sum of the deltas of a proxy's counters with this suffix.
    pub fn rise(&self, proxy: &str, ending: &str) -> u64 {
        let counters = &self.proxy(proxy).counters;
        let found: Vec<u64> =
            counters.iter().filter(|(name, _)| name.ends_with(ending)).map(|(_, rise)| *rise).collect();
        assert!(!found.is_empty(), "{proxy} has no counter …{ending}: {:?}", counters.keys());
        found.iter().sum()
    }

    /// Every request got a response of status 200, and the path is proven.
    pub fn check_path(&self, what: &str) {
        assert!(
            self.observation.evidence.path.proven,
            "{what}: {:?}",
            self.observation.evidence.path.reasons
        );
        assert_eq!(self.answered(), REQUESTS, "{what}: {:?}", self.result);
    }

    /// Components on the path. Excludes the control plane, components of all trials, and the span collector,
    /// which stays up after the first case that traces.
    pub fn components(&self) -> Vec<&str> {
        let beside = ["etcd", "kube-apiserver", "istiod", "meshmeter", "kernel", "trace-collector"];
        let names = self.observation.usage.components.iter().map(|component| component.name.as_str());
        names.filter(|name| !beside.contains(name)).collect()
    }

    /// Every request got a response, the path is proven, and the control plane configured these proxies.
    pub fn check_proven(&self, what: &str, configured: &[&str]) {
        let path = &self.observation.evidence.path;
        self.check_path(what);
        let ConfigurationPush { in_force_s, .. } =
            self.observation.evidence.push.as_ref().expect("proxies were configured");
        let proxies: Vec<&str> = in_force_s.keys().map(String::as_str).collect();
        assert_eq!(proxies, configured, "{what}");
        for proxy in path.proxies.iter().filter(|proxy| configured.contains(&proxy.name.as_str())) {
            let rejected = "cluster_manager.cds.update_rejected";
            assert_eq!(proxy.counters.get(rejected), Some(&0), "{what}: {:?}", proxy.counters.keys());
        }
    }
}

/// A deployment with these settings. The client of `ingress` uses plaintext HTTP, so that a test can too.
pub fn switched(mode: Mode, istio: MeshSettings) -> DeploymentSpec {
    let ingress = IngressSettings { tls: IngressTls::Off, ..istio.ingress };
    DeploymentSpec { istio: Arc::new(MeshSettings { ingress, ..istio }), ..spec(mode) }
}

/// Objects as an experiment adds them.
pub fn has_all(objects: &[Value]) -> ExtraObjects {
    let text: Vec<String> = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    ExtraObjects { text: text.concat(), objects: objects.to_vec() }
}

pub fn bring_up<'a>(lab: &'a LocalLab, spec: &DeploymentSpec, logs: &Path) -> LabDeployment<'a> {
    lab.bring_up(spec, logs).unwrap_or_else(|error| {
        panic!("{}: {} ({})", spec.mode, error_chain(&error), error.hint.as_deref().unwrap_or("no hint"));
    })
}

/// Runs the generator as a run does, and asserts that every request got a response and the path is proven.
/// With ztunnels on the path, it uses a new deployment: earlier requests of the test leave connections
/// between ztunnels open, and the generator's requests would then open none.
pub fn run_proven(
    lab: &LocalLab,
    spec: &DeploymentSpec,
    deployment: LabDeployment<'_>,
    logs: &Path,
) -> Trial {
    let deployment = if spec.mode.is_ambient() {
        drop(deployment);
        bring_up(lab, spec, logs)
    } else {
        deployment
    };
    let client_arguments = deployment.client_arguments();
    let trial = run(deployment, logs, &client_arguments);
    trial.check_path(spec.mode.name());
    trial
}

/// Error of a deployment that cannot be brought up, with its hint, as one line.
pub fn refused(lab: &LocalLab, spec: &DeploymentSpec) -> String {
    let logs = LogFolder::create();
    match lab.bring_up(spec, logs.path()) {
        Ok(_) => panic!("{}: it was brought up", spec.mode),
        Err(error) => told(&error),
    }
}

/// An error with its hint, as one line.
pub fn told(error: &EnvironmentError) -> String {
    format!("{} ({})", error_chain(error), error.hint.as_deref().unwrap_or("no hint"))
}

/// Runs the generator in the client's pod, with the arguments that the deployment adds, and observes its
/// window.
pub fn run(mut deployment: LabDeployment<'_>, logs: &Path, client_arguments: &[String]) -> Trial {
    let url = deployment.url();
    let result = load(&mut deployment, logs, url, client_arguments);
    finish(deployment, result)
}

/// First half of [`run`], with a given URL.
pub fn load(
    deployment: &mut LabDeployment<'_>,
    logs: &Path,
    url: String,
    client_arguments: &[String],
) -> Load {
    load_for(WINDOW, deployment, logs, url, client_arguments)
}

/// Like [`load`], if connections are expected to be refused.
pub fn load_refused(
    deployment: &mut LabDeployment<'_>,
    logs: &Path,
    url: String,
    client_arguments: &[String],
) -> Load {
    load_for(WINDOW_OF_REFUSALS, deployment, logs, url, client_arguments)
}

/// Like [`load`], with a window of this length, which ends early once all requests were sent.
fn load_for(
    at_most: Duration,
    deployment: &mut LabDeployment<'_>,
    logs: &Path,
    url: String,
    client_arguments: &[String],
) -> Load {
    let arguments = [
        format!("--clients={CONNECTIONS}"),
        format!("--connections={CONNECTIONS}"),
        format!("--requests={REQUESTS}"),
        "--warmup=0s".to_owned(),
        format!("--duration={}s", at_most.as_secs()),
        "--timeout=5s".to_owned(),
    ];
    let arguments = arguments.map(Argument::Text).to_vec();
    let generator = DriverStart {
        driver: GENERATOR.to_owned(),
        generator: GENERATOR.to_owned(),
        arguments,
        ..DriverStart::default()
    };
    deployment.begin_trial(&logs.to_string_lossy()).expect("every component is there");
    // The first snapshot of a trial is where response times of calls begin: here before the first request.
    deployment.snapshot().expect("every component is there");
    deployment.start_at(&generator, url, client_arguments.to_vec()).expect("the generator starts");
    let mut snapshots: Vec<Snapshot> = Vec::new();
    loop {
        let event = deployment.next_event(TEST_TIMEOUT).expect("the generator ends by itself");
        match event.kind {
            DriverEventKind::Load(LoadEvent::WindowOpened | LoadEvent::WindowClosed) => {
                snapshots.push(deployment.snapshot().expect("every component is there"));
            }
            // Other events are for people.
            DriverEventKind::Load(_) | DriverEventKind::Fleet(_) | DriverEventKind::Message(_) => {}
            DriverEventKind::Ended(end) => {
                let usage = match &snapshots[..] {
                    [open, close] => Some(close.usage_since(open)),
                    _ => None,
                };
                let result = end.result.ok().and_then(|result| result.load().cloned());
                return Load { result, usage };
            }
        }
    }
}

/// Second half of [`run`].
pub fn finish(mut deployment: LabDeployment<'_>, load: Load) -> Trial {
    end(&mut deployment, load)
}

/// Ends a trial; the deployment stays up.
pub fn end(deployment: &mut LabDeployment<'_>, load: Load) -> Trial {
    let Load { result, usage } = load;
    let sent = result.as_ref().map(sent_load).unwrap_or_default();
    let evidence = deployment.end_trial(&[DriverLoad { driver: GENERATOR.to_owned(), sent }]);
    Trial { observation: Observation::new(usage.unwrap_or_default(), evidence), result }
}

/// Requests that the generator counted. There is no warm-up.
fn sent_load(result: &LoadResult) -> SentLoad {
    let (requests, bytes) = (result.requests.sent, result.bytes.sent);
    SentLoad { requests, request_bytes: (requests > 0).then(|| bytes as f64 / requests as f64) }
}

/// Options for the protocol. Files that they need are written to `logs`.
fn options(spec: &DeploymentSpec, logs: &Path) -> Vec<String> {
    match spec.topology.target().expect("it has a driver").protocol {
        Protocol::Http1 => Vec::new(),
        Protocol::Grpc => {
            // gRPC reflection would send calls to the service that are not part of the load.
            let file = logs.join("echo.proto");
            std::fs::write(&file, service::ECHO_PROTO).expect("a temporary folder can be written");
            vec![format!("--proto={}", file.display())]
        }
        Protocol::Http2 => vec!["--http=2".to_owned()],
        Protocol::Tcp => vec![format!("--body-size={TCP_REQUEST_BYTES}"), "--reply-size=1024".to_owned()],
    }
}

/// Runs a whole trial; `tamper` runs before the load.
pub fn trial(lab: &LocalLab, spec: &DeploymentSpec, tamper: impl FnOnce(&LabDeployment<'_>)) -> Trial {
    trial_for(WINDOW, lab, spec, &[], tamper)
}

/// Like [`trial`], if connections are expected to be refused.
pub fn trial_of_refusals(
    lab: &LocalLab,
    spec: &DeploymentSpec,
    tamper: impl FnOnce(&LabDeployment<'_>),
) -> Trial {
    trial_for(WINDOW_OF_REFUSALS, lab, spec, &[], tamper)
}

/// Runs a whole trial with further options of the generator.
pub fn trial_with(lab: &LocalLab, spec: &DeploymentSpec, further: &[&str]) -> Trial {
    trial_for(WINDOW, lab, spec, further, |_| ())
}

fn trial_for(
    at_most: Duration,
    lab: &LocalLab,
    spec: &DeploymentSpec,
    further: &[&str],
    tamper: impl FnOnce(&LabDeployment<'_>),
) -> Trial {
    let logs = LogFolder::create();
    let mut deployment = bring_up(lab, spec, logs.path());
    tamper(&deployment);
    let further = further.iter().map(|option| (*option).to_owned()).collect();
    let client_arguments = [deployment.client_arguments(), options(spec, logs.path()), further].concat();
    let url = deployment.url();
    let result = load_for(at_most, &mut deployment, logs.path(), url, &client_arguments);
    finish(deployment, result)
}
