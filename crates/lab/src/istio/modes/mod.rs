//! The modes of `mesh: istio`: what each starts in its pods, writes to the API and expects of its proxies.
//!
//! One file for each family of modes. Each begins with [`Trial::begin`] (client and server in their pods, known to the API,
//! in a namespace of their own) and ends with a [`Started`]. [`can_run`] and [`bring_up`] are where a mode is entered.

mod ambient;
mod egress;
mod gateway;
mod ingress;
mod none;
mod sidecar;
mod waypoint;

use super::in_force::{Awaited, wait_until_propagated};
use super::namespace::MeshNamespace;
use super::refusal;
use super::site::Site;
use super::wasm_module;
use crate::arrangement::LocalLab;
use crate::arrangement::service::{SERVICE_PORT, sign_of_life, start_service, wait_for_service};
use crate::arrangement::started::{Pods, Started, create_log_dir};
use crate::arrangement::tracing::Tracing;
use crate::container::Container;
use crate::pod::{Pod, PodSpec};
use experiment::Mode;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::schema::ConfigurationPush;
use jiff::{SignedDuration, Timestamp};
use mesh::istio::configz::wait_until_processed;
use mesh::istio::objects::markers::{self, Markers};
use mesh::istio::objects::subject::{ServiceAccount, Subject};
use mesh::istio::objects::{self, extra, ingress as ingress_objects, waypoint as waypoint_objects};
use mesh::istio::token::TokenIssuer;
use mesh::istio::xds_status::wait_until_acknowledged;
use mesh::kubernetes::admission::name_admission_objects;
use mesh::kubernetes::workloads::{Membership, ServicePort, Workload};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The client's name: its pod's, its account's.
pub(super) const CLIENT: &str = "client";
/// The server's name: its pod's, its account's, its Service's.
pub(super) const SERVER: &str = "server";

/// Whether a mode can run with what is installed and allowed here.
///
/// # Errors
/// What is missing and how to get it.
pub(crate) fn can_run(place: &LocalLab, mode: Mode) -> Result<(), EnvironmentError> {
    match mode {
        Mode::None => none::can_run(place),
        Mode::Sidecar => sidecar::can_run(place, mode),
        Mode::Ambient | Mode::AmbientWaypoint => ambient::can_run(place, mode),
        Mode::Gateway => Err(EnvironmentError::new(
            format!("run mode {mode}"),
            "a single proxy without a mesh is not Istio's",
        )
        .with_hint("`mesh: envoy` runs it; Istio's own is `ingress`")),
        Mode::Ingress => ingress::can_run(place),
        Mode::EgressBypass
        | Mode::EgressSidecar
        | Mode::EgressGateway
        | Mode::EgressGatewayMtls
        | Mode::EgressSni => egress::can_run(place, mode),
    }
}

/// Starts everything that a trial needs and waits until it is ready to serve. What an error leaves is dropped, and so
/// taken down.
pub(crate) fn bring_up(
    place: &LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    let started = match spec.mode {
        Mode::None => none::bring_up(place, spec, log_dir),
        Mode::Sidecar => sidecar::bring_up(place, spec, log_dir),
        Mode::Ambient | Mode::AmbientWaypoint => ambient::bring_up(place, spec, log_dir),
        Mode::Ingress => ingress::bring_up(place, spec, log_dir),
        mode if mode.is_egress() => egress::bring_up(place, spec, log_dir),
        mode => Err(can_run(place, mode).err().unwrap_or_else(|| {
            EnvironmentError::new(
                format!("bring up mode {mode}"),
                "it was said to run here and cannot be brought up",
            )
        })),
    };
    let extra = spec.istio.extra.as_ref();
    started.map_err(|error| name_admission_objects(refusal::with_objects_behind(error, extra), extra))
}

/// A trial that is being brought up. Pods come first, so that they are dropped before the objects that describe them.
pub(super) struct Trial<'a> {
    pub pods: Pods,
    pub server: Container,
    /// A field of its own: things are started here while a pod changes.
    pub site: Site<'a>,
    /// The client as the API knows it.
    pub client_workload: Workload,
    /// The server as the API knows it.
    pub server_workload: Workload,
    /// Signs the tokens that requests show, where the experiment asks for them.
    pub tokens: Option<TokenIssuer>,
    /// Where its proxies find the module that they are to run.
    pub wasm_module: Option<PathBuf>,
}

/// The parts of a pair in the mesh.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memberships {
    pub client: Membership,
    pub server: Membership,
}

impl<'a> Trial<'a> {
    /// Makes the namespace and both pods, starts the service, and tells the API of the pods (not yet of Services).
    pub fn begin(
        place: &'a LocalLab,
        spec: &'a DeploymentSpec,
        log_dir: &'a Path,
        memberships: Memberships,
    ) -> Result<Self, EnvironmentError> {
        let (mut trial, ()) = Self::begin_with_server(place, spec, log_dir, memberships, |_, pod| {
            Ok(((), start_service(pod, spec, place.meshmeter(), log_dir)?))
        })?;
        tell_of_pods(&mut trial.site.namespace, &[&trial.client_workload, &trial.server_workload])?;
        Ok(trial)
    }

    /// The same with a service that is started as the caller has it, and gives what else there is of it. Of the pods the
    /// API is not told.
    pub fn begin_with_server<T>(
        place: &'a LocalLab,
        spec: &'a DeploymentSpec,
        log_dir: &'a Path,
        memberships: Memberships,
        start_server: impl FnOnce(&MeshNamespace, &mut Pod) -> Result<(T, Container), EnvironmentError>,
    ) -> Result<(Self, T), EnvironmentError> {
        create_log_dir(log_dir)?;
        let programs = place.istio_programs()?;
        let control_plane = place.control_plane()?;
        let labels = waypoint_objects::namespace_labels(spec.mode.parts(spec.mesh).data_plane);
        control_plane.provide(place.lab(), place.meshmeter(), &spec.istio, place.progress())?;
        let tokens = spec.istio.authorization.jwt.then(TokenIssuer::create).transpose()?;
        let wasm_file = spec.istio.wasm.as_ref();
        let wasm_module =
            wasm_file.map(|file| wasm_module::give_to_proxies(place.lab(), file)).transpose()?;
        let namespace =
            MeshNamespace::create(place.lab(), Rc::clone(&control_plane), place.next_arrangement(), labels)?;
        let create =
            |name: &str| place.lab().create_pod(&PodSpec::new(name).with_names(namespace.name_files()));
        let mut pods = Pods { client: create(CLIENT)?, server: create(SERVER)?, others: Vec::new() };
        let (made, server) = start_server(&namespace, &mut pods.server)?;
        let client_workload =
            Workload::single(CLIENT, namespace.name(), pods.client.address(), memberships.client);
        let server_workload =
            Workload::single(SERVER, namespace.name(), pods.server.address(), memberships.server);
        let site = Site { place, spec, log_dir, programs, namespace };
        Ok((Self { pods, server, site, client_workload, server_workload, tokens, wasm_module }, made))
    }

    /// The objects that lead to the server by its Service.
    pub fn service_objects(&self) -> Vec<Value> {
        self.server_workload
            .service_objects(&[ServicePort::for_protocol(self.site.spec.protocol, SERVICE_PORT)])
    }

    /// The objects that the experiment's switches ask for.
    pub fn objects_of_settings(&self) -> Vec<Value> {
        let keys = self.tokens.as_ref().map(TokenIssuer::public_keys);
        let (spec, namespace) = (self.site.spec, self.site.namespace.name());
        let mut objects = objects::for_namespace(spec, namespace, self.wasm_module.as_deref());
        self.with_subject(|subject| objects.extend(objects::for_service(spec, subject, keys.as_deref())));
        objects.extend(extra::objects(spec.istio.extra.as_ref(), namespace));
        objects
    }

    /// Writes what the experiment's switches ask for, and waits until istiod knows of it. This comes before the proxies, as it
    /// would be there before them in a cluster: whatever they are told first agrees with it.
    pub fn write_settings(&mut self) -> Result<(), EnvironmentError> {
        let settings = self.objects_of_settings();
        let made = self.site.namespace.apply(&settings)?;
        wait_until_processed(&self.site.namespace.control_plane().istiod(), &made, || self.check_goes_on())
    }

    /// Passes what the trial's objects are about.
    pub fn with_subject<T>(&self, use_it: impl FnOnce(&Subject<'_>) -> T) -> T {
        let namespace = self.site.namespace.name();
        let caller = if self.site.spec.mode == Mode::Ingress { ingress_objects::NAME } else { CLIENT };
        use_it(&Subject {
            namespace,
            service: SERVER,
            port: SERVICE_PORT,
            callers: &[ServiceAccount { namespace, name: caller }],
            path: self.site.spec.protocol.path(),
        })
    }

    /// The markers of the trial's settings.
    pub fn markers(&self) -> Markers {
        self.with_subject(|subject| markers::for_service(self.site.spec, subject))
    }

    /// What the generator has to send for the mesh to let it pass.
    pub fn client_arguments(&self) -> Result<Vec<String>, EnvironmentError> {
        let Some(tokens) = &self.tokens else { return Ok(Vec::new()) };
        let issued_at = Timestamp::now() - CLOCKS_DIFFER;
        let token = tokens.token(issued_at, TOKEN_LIFE)?;
        Ok(vec!["--header".to_owned(), format!("authorization: Bearer {token}")])
    }

    /// Writes objects while the proxies are connected, lets the server's Service resolve in the pods, and gives its
    /// address with how long the writing took.
    pub fn write(&mut self, objects: &[Value]) -> Result<(Written, Ipv4Addr), EnvironmentError> {
        let (written, made) = self.write_without_service(objects)?;
        let service = service_address(&made, SERVER)?;
        self.site.namespace.add_service_names(service, SERVER)?;
        Ok((written, service))
    }

    /// Writes objects while the proxies are connected; gives them as the API has them, with how long the writing took.
    pub fn write_without_service(
        &mut self,
        objects: &[Value],
    ) -> Result<(Written, Vec<Value>), EnvironmentError> {
        let begun_at = Instant::now();
        let made = self.site.namespace.apply(objects)?;
        Ok((Written { objects: objects.len(), begun_at, written_at: Instant::now() }, made))
    }

    /// Waits until every proxy shows all that is expected of it, and then until it has taken all that istiod sent it: what
    /// objects of the experiment's own mean for it is in that. Gives for each proxy the seconds until it showed what is
    /// expected.
    pub fn wait_until_propagated(
        &self,
        awaited: &[Awaited<'_>],
        written: &Written,
    ) -> Result<BTreeMap<String, f64>, EnvironmentError> {
        let in_force = wait_until_propagated(awaited, written.written_at, || self.check_goes_on())?;
        let proxies: Vec<(&str, &str)> =
            awaited.iter().filter_map(|proxy| Some((proxy.name, proxy.known_as?))).collect();
        let istiod = self.site.namespace.control_plane().istiod();
        wait_until_acknowledged(&istiod, &proxies, || self.check_goes_on())?;
        Ok(in_force)
    }

    fn check_goes_on(&self) -> Result<(), EnvironmentError> {
        self.site.lab().check_not_stopped()?;
        self.check_control_plane()
    }

    /// The server's socket address, where the endpoints of its Service lead.
    pub fn server_endpoint(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.pods.server.address(), SERVICE_PORT)
    }

    /// What a client requests, as a user would write it.
    pub fn url(&self) -> String {
        let (scheme, path) = (self.site.spec.protocol.scheme(false), self.site.spec.protocol.path());
        format!("{scheme}://{}:{SERVICE_PORT}{path}", self.site.namespace.host_of(SERVER))
    }

    /// An error where a part of the control plane has died or stands still.
    pub fn check_control_plane(&self) -> Result<(), EnvironmentError> {
        self.site.namespace.control_plane().check("configure the proxies")
    }

    /// The trial as an arrangement without proxies, once its service listens.
    pub fn started(self) -> Result<Started, EnvironmentError> {
        self.started_listening_at(SERVICE_PORT)
    }

    /// The same where the service listens at another port.
    pub fn started_listening_at(self, port: u16) -> Result<Started, EnvironmentError> {
        wait_for_service(&self.pods.server, &self.server, port)?;
        let (url, client_arguments) = (self.url(), self.client_arguments()?);
        let control_plane = self.site.namespace.control_plane();
        let supporting = control_plane.supporting();
        let tracing = self.site.spec.istio.tracing_fraction.zip(control_plane.trace_collector());
        Ok(Started {
            server_sign_of_life: sign_of_life(&self.pods.server, self.site.spec),
            pods: self.pods,
            server: self.server,
            proxies: Vec::new(),
            supporting,
            tracing: tracing.map(|(fraction, collector)| Tracing { fraction, collector }),
            url,
            client_arguments,
            push: None,
            _folders: Vec::new(),
            namespace: Some(self.site.namespace),
        })
    }
}

/// How far the clocks of whoever issues a token and of whoever verifies it may be apart.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(60);

/// Tokens outlive any trial.
const TOKEN_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Objects that were written.
pub(super) struct Written {
    objects: usize,
    begun_at: Instant,
    /// When the API had answered for the last.
    pub written_at: Instant,
}

impl Written {
    /// How long writing them and bringing them into force took.
    pub fn push(&self, in_force_s: BTreeMap<String, f64>) -> ConfigurationPush {
        let written: Duration = self.written_at - self.begun_at;
        ConfigurationPush { objects: self.objects, written_s: written.as_secs_f64(), in_force_s }
    }
}

/// Tells the API of pods that run.
pub(super) fn tell_of_pods(
    namespace: &mut MeshNamespace,
    workloads: &[&Workload],
) -> Result<(), EnvironmentError> {
    namespace.objects().create_pods(workloads, &|_| ())
}

/// The address that the API gave a Service.
fn service_address(made: &[Value], name: &str) -> Result<Ipv4Addr, EnvironmentError> {
    let service =
        made.iter().find(|object| object["kind"] == "Service" && object["metadata"]["name"] == name);
    let address = service.and_then(|service| service["spec"]["clusterIP"].as_str()?.parse().ok());
    address.ok_or_else(|| {
        EnvironmentError::new(format!("find the address of Service {name}"), "it was given none")
    })
}
