//! The sections `ingress` and `gateway`: domains behind a gateway, and the gateway's resources.

use super::given::Given;
use super::keys::{MAX_DOMAINS, MAX_PATHS, MAX_WORKERS};
use crate::definition::Experiment;
use crate::diagnostic::ExperimentError;
use crate::protocol::Protocol;
use crate::settings::ingress::{Estate, GatewaySettings, Scenario};
use crate::settings::istio::IngressTls;
use crate::yaml::section::{Field, Section};
use results::Mode;
use results::units::{parse_cores, parse_size};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Maximum number of routes over all domains: an Envoy needs about 7 kB per route.
const MAX_ROUTES: usize = 200_000;
/// Minimum memory limit: Envoy does not start with less.
const MIN_MEMORY_BYTES: u64 = 32 << 20;

/// Reads the section `ingress`.
pub(super) fn estate(section: &Section<'_>) -> Result<Estate> {
    let number = |key, most| section.field(key)?.map(|field| field.whole(1..=most)).transpose();
    let defaults = Estate::default();
    Ok(Estate {
        declared: section.first_key().is_some(),
        domains: number("domains", MAX_DOMAINS)?.unwrap_or(defaults.domains),
        paths: number("paths", MAX_PATHS)?,
        credentials: number("credentials", MAX_DOMAINS)?,
        requested_paths: number("requested-paths", MAX_PATHS)?,
        requested_domains: number("requested-domains", MAX_DOMAINS)?,
        scenario: section.field("scenario")?.map_or(Ok(defaults.scenario), |field| scenario(&field))?,
    })
}

fn scenario(field: &Field<'_>) -> Result<Scenario> {
    field.choice(&Scenario::ALL.map(|scenario| (scenario.name(), scenario)))
}

/// Reads the section `gateway`.
pub(super) fn gateway(section: &Section<'_>) -> Result<GatewaySettings> {
    Ok(GatewaySettings {
        cpu_limit_cores: section.field("cpu")?.map(|field| field.quantity(parse_cores)).transpose()?,
        memory_limit_bytes: section.field("memory")?.map(|field| memory(&field)).transpose()?,
        workers: section.field("workers")?.map(|field| field.whole(1..=MAX_WORKERS)).transpose()?,
    })
}

fn memory(field: &Field<'_>) -> Result<u64> {
    let bytes = field.quantity(parse_size)?;
    if bytes < MIN_MEMORY_BYTES {
        return Err(field
            .place()
            .error(format!("`{}` is too small for a gateway", field.path), "expected at least 32MiB"));
    }
    Ok(bytes)
}

/// Checks both sections against each other and the rest of the experiment.
pub(super) fn contradictions(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let has_gateway = experiment.modes.iter().any(|mode| matches!(mode, Mode::Ingress | Mode::Gateway));
    let first_key = given.ingress.first_key().or_else(|| given.gateway.first_key());
    if let Some((path, place)) = first_key.filter(|_| !has_gateway) {
        return Err(place.error(
            format!("`{path}` says nothing without a gateway"),
            "expected only where `ingress` (mesh istio) or `gateway` (mesh envoy) is among the `modes`",
        ));
    }
    if !experiment.ingress.declared {
        return Ok(());
    }
    protocol(experiment, given)?;
    sizes(&experiment.ingress, given)?;
    requests_per_connection(experiment, given)?;
    tls(experiment, given)
}

fn protocol(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let protocol = experiment.load.protocol;
    match given.ingress.first_key() {
        Some((path, place)) if matches!(protocol, Protocol::Grpc | Protocol::Tcp) => Err(place.error(
            format!("`{path}` contradicts protocol `{protocol}`"),
            "expected with `http/1.1` or `http/2`: domains are requested by their paths",
        )),
        _ => Ok(()),
    }
}

fn sizes(estate: &Estate, given: &Given<'_>) -> Result<()> {
    let at_most = |key: &'static str, value: Option<usize>, most: Option<usize>, of: &str| match (
        given.ingress.field(key)?,
        value,
    ) {
        (Some(field), Some(value)) if most.is_none_or(|most| value > most) => Err(field.place().error(
            format!("`{}` is {value} and there {}", field.path, counted(most, of)),
            most.map_or_else(
                || format!("expected with `ingress.{of}s`"),
                |most| format!("expected at most {most}"),
            ),
        )),
        _ => Ok(()),
    };
    at_most("credentials", estate.credentials, Some(estate.domains), "domain")?;
    at_most("requested-domains", estate.requested_domains, Some(estate.domains), "domain")?;
    at_most("requested-paths", estate.requested_paths, estate.paths, "path")?;
    match given.ingress.field("domains")? {
        Some(field) if estate.routes() > MAX_ROUTES => Err(field.place().error(
            format!(
                "{} domains of {} paths are {} routes",
                estate.domains,
                estate.paths.unwrap_or(1),
                estate.routes()
            ),
            format!("expected at most {MAX_ROUTES} in all"),
        )),
        _ => Ok(()),
    }
}

/// Formats a count, such as `is 1 domain`, `are 20 paths`, `are no exact paths`.
fn counted(count: Option<usize>, noun: &str) -> String {
    match count {
        None => format!("are no exact {noun}s"),
        Some(1) => format!("is 1 {noun}"),
        Some(count) => format!("are {count} {noun}s"),
    }
}

/// Some scenarios set the requests of each connection themselves.
fn requests_per_connection(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let scenario = experiment.ingress.scenario;
    if !matches!(scenario, Scenario::Resumption | Scenario::FullHandshakes) {
        return Ok(());
    }
    let Some(field) = given.load.field("requests-per-connection")? else { return Ok(()) };
    Err(field.key_place.error(
        format!("scenario `{}` opens a connection for each request", scenario.name()),
        "leave out one of both",
    ))
}

/// A scenario about TLS requires TLS, and its change must not be set already.
fn tls(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let scenario = experiment.ingress.scenario;
    let Some(field) = given.ingress.field("scenario")? else { return Ok(()) };
    let tls = match experiment.istio.ingress.tls {
        IngressTls::Off => "off",
        IngressTls::Mutual => "mutual",
        IngressTls::Simple => return Ok(()),
    };
    if scenario.is_about_tls() && experiment.modes.contains(&Mode::Ingress) {
        return Err(field.place().error(
            format!("scenario `{}` contradicts `istio.ingress.tls: {tls}`", scenario.name()),
            "expected with `simple`: the scenario says what clients speak with the gateway",
        ));
    }
    Ok(())
}
