//! Contradictions between a mesh, its modes and their settings. Unsupported settings are errors: otherwise
//! the mode would be measured without them and look cheaper than it is.

use super::components;
use super::given::Given;
use crate::definition::Experiment;
use crate::diagnostic::ExperimentError;
use crate::mesh_kind::MeshKind;
use crate::protocol::Protocol;
use crate::settings::proxy::{AccessLog, MutualTls};
use crate::yaml::section::Field;
use results::{BACKGROUND_SERVICES, Mode};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Runs every check in turn.
pub(super) fn contradictions(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    components::contradictions(experiment, &given.section("components")?)?;
    match experiment.mesh {
        MeshKind::Envoy => static_files(experiment, given),
        MeshKind::Linkerd => linkerd(experiment, given),
        MeshKind::Cilium => no_istio(experiment, given, "Cilium is not configured by istiod"),
        MeshKind::Istio => {
            proxy_cpu_time(given)?;
            requests_are_read(experiment, given)?;
            http2_upgrade(experiment, given)?;
            identities(experiment, given)?;
            mutual_tls(experiment, given)?;
            gateways(experiment, given)?;
            modes_apply_settings(experiment, given)?;
            scope_and_background_services(experiment, given)?;
            istiod(given)?;
            timeout(experiment, given)
        }
    }
}

/// Rejects the section `istio` without istiod: nothing would apply it.
fn no_istio(experiment: &Experiment, given: &Given<'_>, why: &'static str) -> Result<()> {
    match given.section("istio")?.first_key() {
        Some((path, place)) => Err(place
            .error(format!("`{path}` has no effect with mesh {}", experiment.mesh), why)
            .with_hint("with `mesh: istio` istiod configures the proxies")),
        None => Ok(()),
    }
}

/// Rejects settings that Linkerd lacks, or that have no mapping to its objects here.
fn linkerd(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    no_istio(experiment, given, "Linkerd is not configured by istiod")?;
    let refused = [
        ("proxy.mtls", experiment.proxy.mtls == MutualTls::Off, "Linkerd has no switch for it"),
        (
            "proxy.access-log",
            experiment.proxy.access_log != AccessLog::Off,
            "access logs of Linkerd's proxies are not switched on by runs",
        ),
        (
            "proxy.cpu-time",
            !experiment.proxy.cpu_time.is_zero(),
            "Linkerd's proxies have no filter that computes",
        ),
    ];
    for (key, _, why) in refused.into_iter().filter(|(_, is_set, _)| *is_set) {
        if let Some(field) = given.field(key)? {
            let what = format!("`{}: {}` is not supported with mesh linkerd", field.path, field.text()?);
            return Err(field.place().error(what, why).with_hint("leave it out, or use `mesh: istio`"));
        }
    }
    Ok(())
}

fn static_files(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    no_istio(experiment, given, "static files have no control plane")?;
    match given.field("load.protocol")? {
        Some(field) if experiment.load.protocol == Protocol::Tcp => Err(field
            .place()
            .error(
                "mesh envoy does not carry raw TCP",
                "expected `http/1.1`, `http/2` or `grpc`: its static files route requests",
            )
            .with_hint("`mesh: istio` does")),
        _ => Ok(()),
    }
}

/// Only static Envoy gets the filter that computes.
fn proxy_cpu_time(given: &Given<'_>) -> Result<()> {
    let Some(field) = given.field("proxy.cpu-time")? else { return Ok(()) };
    Err(field
        .key_place
        .error(format!("`{}` needs `mesh: envoy`", field.path), "istiod configures the proxies of this mesh")
        .with_hint("with `mesh: istio` a Lua script can compute: `istio.lua`"))
}

/// Settings that act on each request need a proxy that reads requests.
fn requests_are_read(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let blind = experiment
        .modes
        .iter()
        .find(|mode| **mode != Mode::None && !experiment.mesh.parts(**mode).reads_requests());
    for key in experiment.istio.that_read_requests() {
        let Some(field) = given.field(&format!("istio.{key}"))? else { continue };
        if !experiment.load.protocol.is_http() {
            return Err(field.key_place.error(
                format!("`{}` contradicts protocol `{}`", field.path, experiment.load.protocol),
                "expected with `http/1.1`, `http/2` or `grpc`: proxies see no requests in raw TCP",
            ));
        }
        if let Some(mode) = blind {
            let why = if mode.is_egress() {
                "the client's own TLS passes its proxies unread"
            } else {
                "ztunnel does not read requests"
            };
            return Err(field
                .key_place
                .error(format!("`{}` is not supported in mode `{mode}`", field.path), why)
                .with_hint(format!("leave `{mode}` to an experiment of its own without `{}`", field.path)));
        }
    }
    Ok(())
}

/// The HTTP/2 upgrade needs two proxies: behind a waypoint is a ztunnel, and then the service.
fn http2_upgrade(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let Some(field) = given.field("istio.http2-upgrade")?.filter(|_| experiment.istio.http2_upgrade) else {
        return Ok(());
    };
    if experiment.load.protocol.multiplexes() {
        return Err(field.key_place.error(
            format!("`{}` has no effect with protocol `{}`", field.path, experiment.load.protocol),
            "expected with `http/1.1`: this is HTTP/2 already",
        ));
    }
    let other = experiment
        .modes
        .iter()
        .find(|mode| !experiment.mesh.parts(**mode).has_two_readers() && **mode != Mode::None);
    match other {
        None => Ok(()),
        Some(mode) => Err(field
            .key_place
            .error(
                format!("`{}` is not supported in mode `{mode}`", field.path),
                "it has no two adjacent proxies that read requests",
            )
            .with_hint(format!("leave `{mode}` to an experiment of its own without `{}`", field.path))),
    }
}

fn identities(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let Some(field) = given.field("istio.authorization.identities")? else { return Ok(()) };
    if experiment.istio.authorization.identities == 0 {
        return Ok(());
    }
    if experiment.proxy.mtls != MutualTls::Strict {
        return Err(field.key_place.error(
            format!("`{}` contradicts `proxy.mtls: {}`", field.path, experiment.proxy.mtls.name()),
            "expected with `strict` alone: without mutual TLS a caller shows no identity",
        ));
    }
    let outside = experiment.modes.iter().find(|mode| mode.is_egress() || **mode == Mode::Ingress);
    match outside {
        Some(Mode::Ingress) | None => Ok(()),
        Some(mode) => Err(field.key_place.error(
            format!("`{}` is not supported in mode `{mode}`", field.path),
            "the server is outside the mesh, and no proxy before it checks callers",
        )),
    }
}

fn mutual_tls(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let Some(field) = given.field("proxy.mtls")?.filter(|_| experiment.proxy.mtls == MutualTls::Off) else {
        return Ok(());
    };
    for mode in &experiment.modes {
        let why = match mode {
            Mode::Ambient | Mode::AmbientWaypoint => "ztunnels speak mutual TLS always",
            Mode::EgressGatewayMtls => "mutual TLS with the gateway is what this mode is",
            Mode::EgressSni => "its gateway is reached by mutual TLS",
            _ => continue,
        };
        return Err(field
            .place()
            .error(format!("mode `{mode}` is not supported without mutual TLS"), why)
            .with_hint(format!("leave `{mode}` to an experiment of its own")));
    }
    Ok(())
}

fn gateways(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let has_ingress = experiment.modes.contains(&Mode::Ingress);
    if let Some((path, place)) = given.section("istio.ingress")?.first_key().filter(|_| !has_ingress) {
        return Err(place.error(
            format!("`{path}` has no effect without mode `ingress`"),
            "expected only where `ingress` is among the `modes`",
        ));
    }
    Ok(())
}

/// Keys that only some modes apply, with the expected modes.
const OF_SOME_MODES: [(&str, &str); 3] = [
    ("istio.ztunnel", "expected only where `ambient` or `ambient-waypoint` is among the `modes`"),
    (
        "istio.workload-keys",
        "expected with a mode that has sidecars, waypoints or gateways: the keys of ztunnels are always ECDSA",
    ),
    (
        "istio.telemetry",
        "expected with a mode that has sidecars, waypoints, gateways or a fleet: ztunnel has no such switch",
    ),
];

fn modes_apply_settings(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    for (key, expected) in OF_SOME_MODES {
        if experiment.touches_any_mode(key) {
            continue;
        }
        if let Some(field) = given.field(key)? {
            return Err(says_nothing(&field, expected));
        }
    }
    Ok(())
}

fn says_nothing(field: &Field<'_>, expected: &str) -> Box<ExperimentError> {
    field.key_place.error(format!("`{}` has no effect here", field.path), expected)
}

fn scope_and_background_services(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let has_sidecars = experiment.modes.iter().any(|mode| experiment.mesh.parts(*mode).has_sidecars());
    if let Some(field) =
        given.field("istio.sidecar-scope")?.filter(|_| experiment.istio.sidecar_scope && !has_sidecars)
    {
        return Err(says_nothing(
            &field,
            "expected with a mode that has sidecars: it scopes their configuration",
        ));
    }
    if let Some(field) = given
        .field("istio.dns-auto-allocate")?
        .filter(|_| experiment.istio.dns_auto_allocate && !experiment.istio.dns_capture)
    {
        return Err(says_nothing(
            &field,
            "expected with `istio.dns-capture`: the addresses are for names that proxies answer",
        ));
    }
    // Among several mesh sizes one may be zero.
    let has_services =
        experiment.istio.background_services.services > 0 || given.varied.contains(&BACKGROUND_SERVICES);
    match given.field("istio.background-services.endpoints")? {
        Some(field) if !has_services => Err(field.key_place.error(
            "there are no background services to have endpoints",
            "expected with `istio.background-services.services`",
        )),
        _ => Ok(()),
    }
}

/// In modes with requests, the control plane is shared by a whole run.
fn istiod(given: &Given<'_>) -> Result<()> {
    match given.section("istio.istiod")?.first_key() {
        Some((path, place)) => Err(place.error(
            format!("`{path}` has no effect without a fleet"),
            "expected with `fleet` in mode `control-plane`",
        )),
        None => Ok(()),
    }
}

fn timeout(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    match (given.field("istio.timeout")?, experiment.istio.timeout) {
        (Some(field), Some(timeout)) if timeout <= experiment.server.delay => Err(field
            .place()
            .error("the route would give up before the server answers", "expected more than `server.delay`")),
        _ => Ok(()),
    }
}
