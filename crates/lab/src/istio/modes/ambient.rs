//! `ambient` and `ambient-waypoint`: ztunnel on both sides; with a waypoint, HTTP is read between them.
//!
//! One ztunnel serves both pods, as on a node of a cluster, or each pod has its own (`istio.ztunnel`). The redirect rules
//! are Istio's own in both cases.

use super::waypoint::{self, Waypoint};
use super::{CLIENT, Memberships, SERVER, Trial};
use crate::arrangement::LocalLab;
use crate::arrangement::started::{Proxy, Started};
use crate::envoy::proof::{
    Count, Demand, Evidence, ProtocolCounters, RequestByteCounters, Seen, SideCounters,
};
use crate::istio::in_force::{Awaited, Expected};
use crate::istio::redirect::redirect_into_ambient;
use crate::istio::ztunnel::metrics::{Side, Stream};
use crate::istio::ztunnel::{NAME, Ztunnel, ZtunnelFactory};
use crate::pod::PodSpec;
use crate::redirect;
use experiment::Mode;
use experiment::Protocol;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::schema::HopProtocol;
use mesh::istio::objects::{extra, policy, waypoint as waypoint_objects};
use mesh::kubernetes::workloads::{Membership, Workload};
use mesh::names::{DISCOVERY_PORT, SYSTEM_NAMESPACE};
use std::net::SocketAddrV4;
use std::path::Path;

/// The components' names where each pod has its own.
const CLIENT_ZTUNNEL: &str = "client-ztunnel";
const SERVER_ZTUNNEL: &str = "server-ztunnel";

pub(super) fn can_run(place: &LocalLab, mode: Mode) -> Result<(), EnvironmentError> {
    let missing = |error: EnvironmentError| {
        let hint = error.hint.clone();
        let missing = EnvironmentError::new(format!("run mode {mode}"), error);
        hint.into_iter().fold(missing, EnvironmentError::with_hint)
    };
    place.ambient_programs().map_err(missing)?;
    place.istio_programs()?;
    redirect::programs()?;
    if mode == Mode::AmbientWaypoint { waypoint::can_run(place, mode) } else { Ok(()) }
}

pub(super) fn bring_up(
    place: &LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    let ambient = Memberships { client: Membership::Ambient, server: Membership::Ambient };
    let mut trial = Trial::begin(place, spec, log_dir, ambient)?;
    trial.write_settings()?;
    let ztunnels = Ztunnels::start(&mut trial)?;
    let waypoint = (spec.mode == Mode::AmbientWaypoint).then(|| Waypoint::start(&mut trial)).transpose()?;
    for ztunnel in ztunnels.all() {
        ztunnel.wait_until_ready(place.lab())?;
    }
    if let Some(waypoint) = &waypoint {
        waypoint.agent.wait_until_ready(place.lab())?;
    }
    let (written, _) = trial.write(&trial.service_objects())?;
    let mut awaited: Vec<Awaited<'_>> = ztunnels
        .all()
        .map(|ztunnel| Awaited {
            name: &ztunnel.name,
            known_as: None,
            admin: &ztunnel.admin,
            running: ztunnel,
            expected: expected(&trial, waypoint.is_some()),
        })
        .collect();
    awaited.extend(waypoint.as_ref().map(|waypoint| waypoint.awaited(&trial)));
    let in_force = trial.wait_until_propagated(&awaited, &written)?;
    drop(awaited);
    let proxies = ztunnels.on_the_path(waypoint, &trial);
    let started = trial.started()?;
    Ok(Started { proxies, push: Some(written.push(in_force)), ..started })
}

/// What a ztunnel must have been told.
fn expected(trial: &Trial<'_>, behind_waypoint: bool) -> Vec<Expected> {
    let workload = |name: &str| Expected::AmbientWorkload {
        namespace: trial.site.namespace.name().to_owned(),
        name: name.to_owned(),
    };
    let service = Expected::AmbientService { host: trial.site.namespace.host_of(SERVER), behind_waypoint };
    let mut expected = vec![workload(CLIENT), workload(SERVER), service];
    if !behind_waypoint {
        // Rules that a waypoint checks are no business of ztunnel's.
        let rules = trial.site.spec.istio.authorization.identities;
        let policy =
            |name| Expected::AmbientPolicy { namespace: trial.site.namespace.name().to_owned(), name };
        expected.extend(policy::policy_names(policy::IDENTITY_RULES, SERVER, rules).into_iter().map(policy));
    }
    let extra = trial.site.spec.istio.extra.as_ref();
    let own = extra::ztunnel_policies(extra, trial.site.namespace.name());
    expected.extend(own.into_iter().map(|(namespace, name)| Expected::AmbientPolicy { namespace, name }));
    expected
}

/// The ztunnels of a trial.
struct Ztunnels {
    /// The client's.
    client: Ztunnel,
    /// The server's; absent where they share one.
    server: Option<Ztunnel>,
}

impl Ztunnels {
    /// Starts them, with the pods' traffic redirected.
    fn start(trial: &mut Trial<'_>) -> Result<Self, EnvironmentError> {
        match trial.site.spec.istio.ztunnel {
            ZtunnelPlacement::Shared => Self::start_shared(trial),
            ZtunnelPlacement::PerPod => Self::start_per_pod(trial),
        }
    }

    fn start_shared(trial: &mut Trial<'_>) -> Result<Self, EnvironmentError> {
        let programs = trial.site.place.ambient_programs()?;
        let names = trial.site.namespace.name_files();
        let mut pod = trial.site.lab().create_pod(&PodSpec::new(NAME).with_names(names))?;
        // It is no part of the mesh that it makes.
        let workload = Workload::single(NAME, SYSTEM_NAMESPACE, pod.address(), Membership::Outside);
        super::tell_of_pods(&mut trial.site.namespace, &[&workload])?;
        for pod in [&mut trial.pods.client, &mut trial.pods.server] {
            redirect_into_ambient(pod, programs, None, trial.site.log_dir)?;
        }
        let served =
            [(&trial.pods.client, &trial.client_workload), (&trial.pods.server, &trial.server_workload)];
        let factory = ZtunnelFactory { site: &trial.site, program: &programs.ztunnel.path };
        let ztunnel = factory.start_shared((&mut pod, &workload), &served)?;
        trial.pods.others.push(pod);
        Ok(Self { client: ztunnel, server: None })
    }

    fn start_per_pod(trial: &mut Trial<'_>) -> Result<Self, EnvironmentError> {
        let programs = trial.site.place.ambient_programs()?;
        let control_plane = SocketAddrV4::new(trial.site.namespace.control_plane().address(), DISCOVERY_PORT);
        for pod in [&mut trial.pods.client, &mut trial.pods.server] {
            redirect_into_ambient(pod, programs, Some(control_plane), trial.site.log_dir)?;
        }
        let factory = ZtunnelFactory { site: &trial.site, program: &programs.ztunnel.path };
        Ok(Self {
            client: factory.start_dedicated(
                CLIENT_ZTUNNEL,
                &mut trial.pods.client,
                &trial.client_workload,
            )?,
            server: Some(factory.start_dedicated(
                SERVER_ZTUNNEL,
                &mut trial.pods.server,
                &trial.server_workload,
            )?),
        })
    }

    fn all(&self) -> impl Iterator<Item = &Ztunnel> {
        std::iter::once(&self.client).chain(&self.server)
    }

    /// The proxies from client to server.
    fn on_the_path(self, waypoint: Option<Waypoint>, trial: &Trial<'_>) -> Vec<Proxy> {
        let (source, destination) =
            evidence(trial.site.spec.protocol, trial.site.namespace.name(), waypoint.is_some());
        let (before, after) = match self.server {
            Some(server) => {
                (self.client.on_the_path(vec![(None, source)]), server.on_the_path(vec![(None, destination)]))
            }
            None => {
                let places = vec![(Some("client"), source), (Some("server"), destination)];
                let mut places = self.client.on_the_path(places);
                let after = places.split_off(1);
                (places, after)
            }
        };
        let between = waypoint.map(|waypoint| waypoint.on_the_path(trial));
        before.into_iter().chain(between).chain(after).collect()
    }
}

/// What shows that requests passed the ztunnel of the client's side and that of the server's. A waypoint adds headers to
/// each request that it reads.
fn evidence(protocol: Protocol, namespace: &str, through_waypoint: bool) -> (Evidence, Evidence) {
    let is_added_to = through_waypoint && protocol.is_http();
    let peers = |from: &'static str, to: &'static str, side| Stream {
        side,
        from,
        to,
        namespaces: (namespace, namespace),
    };
    let (first, second) =
        if through_waypoint { (waypoint_objects::NAME, waypoint_objects::NAME) } else { (SERVER, CLIENT) };
    let source = peers(CLIENT, first, Side::Source);
    let destination = peers(second, SERVER, Side::Destination);
    let of = |stream: Stream<'_>, added_to: bool| Evidence {
        protocols: spoken(stream),
        handshakes: Some(stream.mutual_tls_connections()),
        tls_expected: true,
        demands: vec![Demand {
            counter: stream.side.plain_connections(),
            rises: false,
            otherwise: "passed connections in plain text, though mutual TLS is claimed",
        }],
        ..Evidence::new(Seen::RequestBytes(RequestByteCounters {
            bytes: stream.request_bytes(),
            response_bytes: stream.response_bytes(),
            connections: stream.mutual_tls_connections(),
            added_to,
            multiplexed: protocol.multiplexes(),
        }))
    };
    (of(source, false), of(destination, is_added_to))
}

/// Whatever it carries, it carries unread: by HBONE between the two sides of the mesh, as it came at their ends.
fn spoken(stream: Stream<'_>) -> ProtocolCounters {
    let carried = || Count::Connections(stream.mutual_tls_connections());
    let side = |hbone: bool| SideCounters {
        expected: None,
        counters: vec![(HopProtocol::Tcp, carried())],
        hbone: hbone.then(carried),
    };
    let is_source = stream.side == Side::Source;
    ProtocolCounters { received: side(!is_source), forwarded: side(is_source), grpc: None }
}
