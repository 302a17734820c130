//! The sections `ingress` and `gateway`: domains behind a gateway, and the gateway's resources.

use super::given::Given;
use crate::definition::Experiment;
use crate::diagnostic::ExperimentError;
use crate::keys::settings::read;
use crate::protocol::Protocol;
use crate::settings::ingress::{Estate, Scenario};
use crate::settings::istio::IngressTls;
use crate::yaml::section::Section;
use results::Mode;
use results::units::format_size;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Maximum number of routes over all domains: an Envoy needs about 7 kB per route.
const MAX_ROUTES: usize = 200_000;
/// Maximum size of a body that the firewall reads, as its own settings have it: it refuses larger ones.
const MAX_FIREWALL_BYTES: u64 = 128 << 10;

/// Reads the section `ingress`.
pub(super) fn estate(section: &Section<'_>) -> Result<Estate> {
    Ok(Estate { declared: section.first_key().is_some(), ..read(section)? })
}

/// Checks both sections against each other and the rest of the experiment.
pub(super) fn contradictions(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let has_gateway = experiment.modes.iter().any(|mode| matches!(mode, Mode::Ingress | Mode::Gateway));
    let first_key = given.section("ingress")?.first_key().or(given.section("gateway")?.first_key());
    if let Some((path, place)) = first_key.filter(|_| !has_gateway) {
        return Err(place.error(
            format!("`{path}` has no effect without a gateway"),
            "expected only where `ingress` (mesh istio) or `gateway` (mesh envoy) is among the `modes`",
        ));
    }
    if !experiment.ingress.declared {
        return Ok(());
    }
    protocol(experiment, given)?;
    sizes(&experiment.ingress, given)?;
    requests_per_connection(experiment, given)?;
    firewall(experiment, given)?;
    tls(experiment, given)
}

fn protocol(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let protocol = experiment.load.protocol;
    match given.section("ingress")?.first_key() {
        Some((path, place)) if matches!(protocol, Protocol::Grpc | Protocol::Tcp) => Err(place.error(
            format!("`{path}` contradicts protocol `{protocol}`"),
            "expected with `http/1.1` or `http/2`: domains are requested by their paths",
        )),
        _ => Ok(()),
    }
}

fn sizes(estate: &Estate, given: &Given<'_>) -> Result<()> {
    let at_most = |key: &'static str, value: Option<usize>, most: Option<usize>, of: &str| match (
        given.field(&format!("ingress.{key}"))?,
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
    match given.field("ingress.domains")? {
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
    let Some(field) = given.field("load.requests-per-connection")? else { return Ok(()) };
    Err(field.key_place.error(
        format!("scenario `{}` opens a connection for each request", scenario.name()),
        "leave out one of both",
    ))
}

/// The firewall refuses long prompts.
fn firewall(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let (scenario, prompt) = (experiment.ingress.scenario, experiment.load.stream.prompt_bytes);
    let is_refused = matches!(scenario, Scenario::Waf | Scenario::AllFilters) && prompt > MAX_FIREWALL_BYTES;
    let Some(field) = given.field("load.stream.prompt")?.filter(|_| is_refused) else { return Ok(()) };
    Err(field.place().error(
        format!("the firewall of scenario `{}` refuses prompts of {}", scenario.name(), format_size(prompt)),
        format!("expected at most {}", format_size(MAX_FIREWALL_BYTES)),
    ))
}

/// A scenario about TLS requires TLS, and its change must not be set already.
fn tls(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let scenario = experiment.ingress.scenario;
    let Some(field) = given.field("ingress.scenario")? else { return Ok(()) };
    let tls = experiment.istio.ingress.tls;
    if tls != IngressTls::Simple && scenario.is_about_tls() && experiment.modes.contains(&Mode::Ingress) {
        return Err(field.place().error(
            format!("scenario `{}` contradicts `istio.ingress.tls: {}`", scenario.name(), tls.name()),
            "expected with `simple`: the scenario says what clients speak with the gateway",
        ));
    }
    Ok(())
}
