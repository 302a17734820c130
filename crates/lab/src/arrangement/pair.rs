//! One trial's client and server, and the proxies between them, while they run.

use super::LocalLab;
use super::holdings::BeforeLoad;
use super::rules::Rules;
use super::service::ServiceCounters;
use super::started::{CounterSource, Proxy, Started, Unresponsive};
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::envoy::admin::{Admin, AdminCause};
use crate::envoy::proof::{CountedProxy, CountedService, Seen, prove};
use crate::istio::MeshNamespace;
use crate::life;
use crate::observe::{self, Watched};
use crate::pod::Pod;
use experiment::environment::{
    Arrangement, DeploymentSpec, EnvironmentError, Observation, SentLoad, Snapshot, WindowUsage, in_one_line,
};
use experiment::schema::{PathProof, Role};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ChildStderr;
use std::time::{Duration, Instant};

/// The generator's name as a component.
pub const GENERATOR: &str = "generator";

/// The service's name as a component.
pub const SERVER: &str = "server";

/// How long proxies may take, after the generator's end, to read what it had sent them.
const SETTLED_WITHIN: Duration = Duration::from_millis(500);

/// How long the generator may take to end when it is told to at once.
const GENERATOR_GRACE: Duration = Duration::from_secs(1);

/// The running pods, proxies and service of one trial. Dropping it takes them down.
#[derive(Debug)]
pub struct PairArrangement<'lab> {
    place: &'lab LocalLab,
    started: Started,
    /// As it was brought up.
    rules: Rules,
    /// The service's own counters; absent where the proxies' suffice to prove the path.
    service: Option<ServiceCounters>,
    log_dir: PathBuf,
    client_cpu_limit_cores: Option<f64>,
    generator: Option<Container>,
    counters_before: Vec<BTreeMap<String, u64>>,
    /// The service's, where its own count is needed.
    service_before: Option<BTreeMap<String, u64>>,
    before_load: BeforeLoad,
    window: Option<Snapshot>,
    usage: Option<WindowUsage>,
}

impl<'lab> PairArrangement<'lab> {
    pub(super) fn new(
        place: &'lab LocalLab,
        spec: &DeploymentSpec,
        log_dir: &Path,
        started: Started,
    ) -> Self {
        let rules = Rules::of(&started.pods.all());
        let is_asked = started.proxies.iter().any(|proxy| proxy.evidence.needs_service());
        let service = is_asked.then(|| ServiceCounters::in_pod(&started.pods.server));
        Self {
            place,
            started,
            rules,
            service,
            log_dir: log_dir.to_path_buf(),
            client_cpu_limit_cores: spec.client_cpu_limit_cores,
            generator: None,
            counters_before: Vec::new(),
            service_before: None,
            before_load: BeforeLoad::default(),
            window: None,
            usage: None,
        }
    }

    /// The client's pod: where the generator runs.
    #[must_use]
    pub fn client_pod(&self) -> &Pod {
        &self.started.pods.client
    }

    /// The server's pod.
    #[must_use]
    pub fn server_pod(&self) -> &Pod {
        &self.started.pods.server
    }

    /// Every pod of the trial: the client's, the server's, those of gateways.
    #[must_use]
    pub fn pods(&self) -> Vec<&Pod> {
        self.started.pods.all()
    }

    /// The namespace of the mesh that its objects are in; absent where there is no control plane.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.started.namespace.as_ref().map(MeshNamespace::name)
    }

    /// The proxies that have an admin interface, from client to server: name, pod, and where it answers.
    pub fn admin_interfaces(&self) -> impl Iterator<Item = (&str, &str, &Admin)> {
        self.proxies()
            .filter_map(|(_, proxy)| Some((proxy.name.as_str(), proxy.pod.as_str(), proxy.counters.admin()?)))
    }

    /// Reads the counters of every component and of the machine.
    ///
    /// # Errors
    /// A component is gone.
    pub fn snapshot(&self) -> Result<Snapshot, EnvironmentError> {
        self.check_alive("read the counters of the components")?;
        observe::read(&self.watched(), &self.place.host_proc)
    }

    /// The proxies as components: each once, wherever it stands on the path; with its first place there.
    fn proxies(&self) -> impl Iterator<Item = (usize, &Proxy)> {
        let all = &self.started.proxies;
        all.iter()
            .enumerate()
            .filter(|(index, proxy)| all[..*index].iter().all(|earlier| earlier.name != proxy.name))
    }

    /// Every component but the generator, with its name.
    fn supporting(&self) -> impl Iterator<Item = (&str, &Container)> {
        let proxies = self.proxies().map(|(_, proxy)| (proxy.name.as_str(), &proxy.container));
        let supporting = self.started.supporting.iter().map(|other| (other.name.as_str(), &other.container));
        proxies.chain(std::iter::once((SERVER, &self.started.server))).chain(supporting)
    }

    /// The first component that has died or stands still, with the words that say how. The generator may end, but not
    /// stand still.
    fn failed(&self) -> Option<(String, String)> {
        let failed = |(name, how): (&str, Option<String>)| Some((name.to_owned(), how?));
        let mut supporting = self.supporting().map(|(name, container)| (name, container.failed()));
        supporting.find_map(failed).or_else(|| {
            let generator = self.generator.as_ref()?;
            failed((GENERATOR, generator.has_exited().map_or_else(|| generator.stands_still(), |_| None)))
        })
    }

    /// Asks every component that answers questions for a sign of life; the control plane only where it is part of this.
    fn ask_for_signs_of_life(&self) {
        let of_proxies = self.proxies().flat_map(|(_, proxy)| {
            proxy.counters.liveness_probes().into_iter().map(|question| (&proxy.container, question))
        });
        let of_supporting = self.started.supporting.iter();
        let of_supporting =
            of_supporting.filter_map(|other| Some((&other.container, other.sign_of_life.clone()?)));
        // A service whose own count is needed would count the question too: it is asked for that count later.
        let of_server = (&self.started.server, self.started.server_sign_of_life.clone());
        let of_server = self.service.is_none().then_some(of_server);
        let asked: Vec<_> = of_proxies.chain(of_server).chain(of_supporting).collect();
        let control_plane = self.place.running_control_plane();
        let control_plane = control_plane.filter(|_| !self.started.supporting.is_empty());
        life::ask_all(&asked, || {
            if let Some(control_plane) = control_plane {
                control_plane.ask_api_for_sign_of_life();
            }
        });
    }

    fn check_alive(&self, operation: &str) -> Result<(), EnvironmentError> {
        let mut supporting = self.supporting().map(|(_, container)| container.check(operation));
        supporting.find(Result::is_err).unwrap_or(Ok(()))
    }

    /// What is watched: the generator first, then along the path. The component nearest to a pod's interface shows the
    /// pod's traffic.
    fn watched(&self) -> Vec<Watched> {
        let faces_network = |proxy: &Proxy| !matches!(proxy.evidence.seen, Seen::Nothing(_));
        let proxied = |pod: &Pod| {
            self.started.proxies.iter().any(|proxy| proxy.pod == pod.name() && faces_network(proxy))
        };
        let application = |name: &str, role: Role, pod: &Pod, container: &Container| {
            watched(name, role, pod.name(), container, !proxied(pod))
        };
        let mut all = Vec::with_capacity(self.started.proxies.len() + 2);
        if let Some(generator) = &self.generator {
            all.push(application(GENERATOR, Role::Generator, &self.started.pods.client, generator));
        }
        for (index, proxy) in self.proxies() {
            let is_first = self.started.proxies[..index].iter().all(|nearer| nearer.pod != proxy.pod);
            let shows_network = is_first && faces_network(proxy);
            all.push(watched(&proxy.name, Role::Proxy, &proxy.pod, &proxy.container, shows_network));
        }
        all.push(application(SERVER, Role::App, &self.started.pods.server, &self.started.server));
        for other in &self.started.supporting {
            all.push(watched(&other.name, other.role, &other.pod, &other.container, other.shows_network));
        }
        all
    }

    /// Reads the proxies' counters until they hold every request that was sent, or [`SETTLED_WITHIN`] has passed: the
    /// generator may be gone while its last requests still lie in sockets.
    fn counters_after(
        &self,
        sent: &SentLoad,
        service: Option<&CountedService>,
    ) -> Vec<Result<BTreeMap<String, u64>, String>> {
        let deadline = Instant::now() + SETTLED_WITHIN;
        let none = BTreeMap::new();
        loop {
            let counters: Vec<_> = self.started.proxies.iter().map(counters_or_reason).collect();
            let settled = self.started.proxies.iter().enumerate().all(|(index, proxy)| {
                let before = self.counters_before.get(index).unwrap_or(&none);
                counters[index]
                    .as_ref()
                    .map_or(true, |after| proxy.evidence.has_settled(before, after, sent, service))
            });
            if settled || Instant::now() >= deadline {
                return counters;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What the service counted, where that is needed.
    fn counted_service(&self) -> Option<CountedService> {
        let after = self.service.as_ref()?.counters();
        let after = after.map_err(|error| {
            if matches!(error.cause, AdminCause::TimedOut(_)) {
                life::mark_silent(&self.started.server, None);
            }
            match self.started.server.failed() {
                Some(how) => format!("it {how}"),
                None => in_one_line(&error.cause),
            }
        });
        Some(CountedService { before: self.service_before.clone().unwrap_or_default(), after })
    }

    fn path(&mut self, sent: &SentLoad) -> PathProof {
        let service = self.counted_service();
        let after = self.counters_after(sent, service.as_ref());
        for (proxy, counters) in self.started.proxies.iter_mut().zip(&after) {
            if let Err(reason) = counters {
                // Whatever else it would be asked for would be as long in coming.
                proxy.counters = Box::new(Unresponsive { proxy: proxy.name.clone(), reason: reason.clone() });
            }
        }
        let counted: Vec<CountedProxy> = self
            .started
            .proxies
            .iter()
            .zip(after)
            .enumerate()
            .map(|(index, (proxy, after))| CountedProxy {
                name: proxy.name.clone(),
                side: proxy.side,
                evidence: proxy.evidence.clone(),
                before: self.counters_before.get(index).cloned().unwrap_or_default(),
                after,
            })
            .collect();
        let mut path = prove(&counted, sent, service.as_ref());
        if let Some(tracing) = &self.started.tracing {
            let is_over = || self.place.lab().stop_requested() || self.failed().is_some();
            tracing.prove(&self.started.proxies, &mut path, is_over);
        }
        path
    }

    fn all_failed(&self) -> impl Iterator<Item = (&str, &Container)> {
        self.supporting().filter(|(_, container)| container.failed().is_some())
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

/// What a proxy says that it takes, which must be what is claimed; absent where nothing is, or it cannot be asked.
fn takes_plain_text(proxy: &Proxy, reasons: &mut Vec<String>) -> Option<bool> {
    // One that has failed or does not answer was found out by its counters.
    let claimed = proxy.evidence.accepts.filter(|_| proxy.container.failed().is_none())?;
    let takes = proxy.counters.accepts_plaintext(claimed.port).ok()?;
    if takes != Some(claimed.plaintext) {
        let manner = if claimed.plaintext { "does not take plain text" } else { "takes plain text" };
        reasons.push(format!("{} {manner}, against what `proxy.mtls` says", proxy.name));
    }
    takes
}

/// The counters, or in words why not. A proxy that has failed is not asked: its answer would be long in coming, if it came.
fn counters_or_reason(proxy: &Proxy) -> Result<BTreeMap<String, u64>, String> {
    if let Some(how) = proxy.container.failed() {
        return Err(format!("it {how}"));
    }
    proxy.counters.counters().map_err(|error| match proxy.container.failed() {
        Some(how) => format!("it {how}"),
        None => in_one_line(&error.cause),
    })
}

impl Arrangement for PairArrangement<'_> {
    fn url(&self) -> String {
        self.started.url.clone()
    }

    fn client_arguments(&self) -> Vec<String> {
        self.started.client_arguments.clone()
    }

    fn start_generator(&mut self, arguments: &[String]) -> Result<ChildStderr, EnvironmentError> {
        let operation = "start the generator";
        self.check_alive(operation)?;
        self.counters_before = self
            .started
            .proxies
            .iter()
            .map(|proxy| proxy.counters.counters())
            .collect::<Result<_, _>>()
            .map_err(|error| EnvironmentError::new("read the proxies' counters before the trial", error))?;
        self.service_before =
            self.service.as_ref().map(CounterSource::counters).transpose().map_err(|error| {
                EnvironmentError::new("read the service's counters before the trial", error)
            })?;
        let proxies: Vec<&Proxy> = self.proxies().map(|(_, proxy)| proxy).collect();
        self.before_load = BeforeLoad::read(&proxies, &self.watched());
        let generator = self.started.pods.client.start(&ContainerSpec {
            name: GENERATOR.to_owned(),
            program: self.place.programs.meshmeter.clone(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            cpu_limit_cores: self.client_cpu_limit_cores,
            user: ContainerUser::Lab,
            working_directory: None,
            output_log: self.log_dir.join("generator.log"),
            error_output: ErrorOutput::Piped,
        })?;
        let events = generator.take_error_output();
        self.generator = Some(generator);
        events.ok_or_else(|| EnvironmentError::new(operation, "its standard error is no pipe"))
    }

    fn interrupt_generator(&mut self) {
        let Some(generator) = &self.generator else { return };
        if generator.stands_still().is_some() {
            // It can keep nothing that it has, and hears no request.
            generator.kill();
        } else {
            generator.interrupt();
        }
    }

    fn window_opened(&mut self) -> Result<(), EnvironmentError> {
        self.check_alive("read the components as the window opens")?;
        self.window = Some(observe::read(&self.watched(), &self.place.host_proc)?);
        Ok(())
    }

    fn window_closed(&mut self) -> Result<(), EnvironmentError> {
        let operation = "read the components as the window closes";
        let open = self
            .window
            .take()
            .ok_or_else(|| EnvironmentError::new(operation, "the window was never opened"))?;
        self.check_alive(operation)?;
        self.usage = Some(observe::read(&self.watched(), &self.place.host_proc)?.usage_since(&open));
        Ok(())
    }

    fn failed_component(&mut self) -> Option<(String, String)> {
        self.failed()
    }

    fn failed_or_silent_component(&mut self) -> Option<(String, String)> {
        if self.failed().is_none() {
            self.ask_for_signs_of_life();
        }
        self.failed()
    }

    fn wait_generator(&mut self, at_most: Duration) -> Result<Option<i32>, EnvironmentError> {
        let operation = "wait for the generator";
        let generator = self
            .generator
            .as_ref()
            .ok_or_else(|| EnvironmentError::new(operation, "it was never started"))?;
        if let Some(status) = generator.wait(at_most) {
            return Ok(status.code());
        }
        generator.stop(GENERATOR_GRACE)?;
        let waited = format!("it had not ended after {:.1} s and was stopped", at_most.as_secs_f64());
        Err(EnvironmentError::new(operation, waited))
    }

    fn finish(mut self: Box<Self>, sent: &SentLoad) -> Observation {
        let mut path = self.path(sent);
        path.reasons.extend(self.rules.changes(&Rules::of(&self.started.pods.all())));
        let last_lines = |(name, container): (&str, &Container)| (name.to_owned(), container.last_lines());
        let log_tails = self.all_failed().map(last_lines).collect();
        let hints = self.all_failed().map(|(_, container)| container.where_all_is_that_it_said()).collect();
        let (mut components, machine) = match self.usage.take() {
            Some(usage) => (usage.components, usage.machine),
            None => (Vec::new(), None),
        };
        let before_load = std::mem::take(&mut self.before_load);
        let proxies: Vec<&Proxy> = self.proxies().map(|(_, proxy)| proxy).collect();
        before_load.complete(&proxies, &self.watched(), &mut components, &self.log_dir);
        for (proxy, proof) in self.started.proxies.iter().zip(&mut path.proxies) {
            proof.takes_plain_text = takes_plain_text(proxy, &mut path.reasons);
        }
        path.proven = path.reasons.is_empty();
        let push = self.started.push.take();
        Observation { components, path, machine, log_tails, hints, push }
    }
}
