//! Reads an experiment from the tree: every key with its meaning, default and valid values.

use super::checks;
use super::components;
use super::fleet;
use super::given::Given;
use super::ingress;
use super::istio;
use super::keys::load::{MAX_CONNECTIONS, MAX_GENERATORS, MAX_REQUESTS_PER_CONNECTION, MAX_THREADS};
use super::named_files::Files;
use super::overrides::Scale;
use super::published;
use super::sections::SECTIONS;
use super::topology::{self, Entry};
use crate::definition::{Arrival, Experiment, Fresh, LoadLevels, LoadSettings, Resolve};
use crate::diagnostic::ExperimentError;
use crate::keys::MAX_VALUES;
use crate::mesh_kind::MeshKind;
use crate::objective::Objective;
use crate::protocol::Protocol;
use crate::settings::proxy::{AccessLog, MutualTls, ProxySettings};
use crate::settings::service::{MAX_CPU_TIME, ServerSettings};
use crate::topology::Topology;
use crate::yaml::document::Node;
use crate::yaml::section::{Field, Item, Section, alternatives};
use crate::yaml::suggestion::nearest;
use results::units::{parse_cores, parse_duration, parse_fraction, parse_rate, parse_size};
use results::{ExpectedStatuses, InvalidStatus, Mode, Pacing};
use std::sync::Arc;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const DEFAULT_CONNECTIONS: usize = 4;
const DEFAULT_WARMUP: Duration = Duration::from_secs(1);
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_THREADS: usize = 1;
const DEFAULT_REPEATS: usize = 5;
const MAX_PAYLOAD_BYTES: u64 = 1 << 30;

/// Reads and validates the whole tree, after factors are expanded. `varied` are the keys of those factors;
/// `graph` is a topology that is not built in.
pub(super) fn experiment(
    root: &Node,
    varied: &[&str],
    graph: Option<&Arc<Topology>>,
    scale: &Scale,
    files: &dyn Files,
) -> Result<Experiment> {
    let root = Section::root(root, &SECTIONS)?;
    let name = name(&root.required("name", "name: my-study")?)?;
    let question = root.field("question")?.map_or(Ok(String::new()), |field| question(&field))?;
    let topology = topology::settings(&root, graph)?;
    // A fleet does not send requests into it.
    let entry = if root.field("fleet")?.is_none() { topology::entry(&root, &topology)? } else { None };
    let mesh = root.field("mesh")?.map_or(Ok(MeshKind::Envoy), |field| mesh(&field))?;
    let modes = modes(&root.required("modes", "modes: [none, sidecar]")?, mesh)?;
    let fleet = fleet::settings(&root, &topology, &modes, scale)?;
    let load_section = root.section("load")?;
    let load = match &fleet {
        Some(fleet) => LoadSettings::of_fleet(fleet),
        None => load(&load_section, entry.as_ref(), scale)?,
    };
    let payload_bytes = topology::payload(load_section.field("payload")?, entry.as_ref(), payload)?;
    let objective_section = root.section("objective")?;
    let server_section = root.section("server")?;
    let proxy_section = root.section("proxy")?;
    let components_section = root.section("components")?;
    let istio_section = root.section("istio")?;
    let ingress_section = root.section("ingress")?;
    let gateway_section = root.section("gateway")?;
    let experiment = Experiment {
        name,
        question,
        topology,
        mesh,
        modes,
        fleet: fleet.map(Arc::new),
        repeats: root.field("repeats")?.map_or(Ok(DEFAULT_REPEATS), |field| field.whole(1..=1000))?,
        retakes: root.field("retakes")?.map_or(Ok(0), |field| field.whole(0..=10))?,
        seed: root.field("seed")?.map(|field| seed(&field)).transpose()?,
        objective: objective(&objective_section)?,
        resolve: resolve(&root.section("resolve")?)?,
        published: published::sources(&root)?,
        proxy: proxy(&proxy_section)?,
        components: components::settings(&components_section, files)?,
        istio: istio::settings(&istio_section, files)?.into(),
        ingress: ingress::estate(&ingress_section)?.into(),
        gateway: ingress::gateway(&gateway_section)?,
        server: server(&server_section, payload_bytes)?,
        client_cpu_limit_cores: cores(&root.section("client")?)?,
        fresh: root
            .field("fresh")?
            .map(|field| field.choice(&[("trial", Fresh::Trial), ("mode", Fresh::Mode)]))
            .transpose()?,
        factors: Vec::new(),
        combinations: Vec::new(),
        left_out: Vec::new(),
        load,
    };
    let given = Given {
        root: &root,
        load: &load_section,
        objective: &objective_section,
        server: &server_section,
        proxy: &proxy_section,
        components: &components_section,
        istio: &istio_section,
        ingress: &ingress_section,
        gateway: &gateway_section,
        varied,
        scale,
    };
    match &experiment.fleet {
        Some(settings) => fleet::contradictions(settings, &experiment, &given)?,
        None => checks::contradictions(&experiment, &given)?,
    }
    Ok(experiment)
}

fn name(field: &Field<'_>) -> Result<String> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.len() > 64 || text.starts_with('.') || !text.chars().all(fits) {
        return Err(field.place().error(
            "this will not do as a name",
            "expected at most 64 letters, digits, `-`, `_` and `.`, for example `sidecar-cost`",
        ));
    }
    Ok(text.to_owned())
}

fn question(field: &Field<'_>) -> Result<String> {
    let text = field.text()?.trim();
    if text.chars().count() > 500 {
        return Err(field.place().error("the question is too long", "expected at most 500 characters"));
    }
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn mesh(field: &Field<'_>) -> Result<MeshKind> {
    field.choice(&MeshKind::ALL.map(|mesh| (mesh.name(), mesh)))
}

fn modes(field: &Field<'_>, mesh: MeshKind) -> Result<Vec<Mode>> {
    let mut modes = Vec::new();
    for item in field.one_or_list()? {
        let mode = mode(&item, mesh)?;
        if modes.contains(&mode) {
            return Err(item.place.error(format!("mode `{mode}` is given twice"), "expected each mode once"));
        }
        modes.push(mode);
    }
    Ok(modes)
}

fn mode(item: &Item<'_>, mesh: MeshKind) -> Result<Mode> {
    let available: Vec<&str> = mesh.modes().map(Mode::name).collect();
    let expected = format!("expected {}", alternatives(&available));
    match Mode::ALL.into_iter().find(|mode| mode.name() == item.text) {
        Some(mode) if mesh.makes(mode) => Ok(mode),
        Some(mode) => {
            let error = item.place.error(format!("mesh {mesh} has no mode `{mode}`"), expected);
            Err(match MeshKind::Istio.makes(mode) {
                true => error.with_hint(format!("`mesh: istio` has `{mode}`")),
                false => error.with_hint("`mesh: envoy` has it; Istio's own is `ingress`"),
            })
        }
        None => {
            let error = item.place.error(
                format!("`modes`: `{}` is not a mode", results::units::shortened(item.text)),
                expected,
            );
            Err(match nearest(item.text, available) {
                Some(name) => error.with_hint(format!("did you mean `{name}`?")),
                None => error,
            })
        }
    }
}

fn load(section: &Section<'_>, entry: Option<&Entry>, scale: &Scale) -> Result<LoadSettings> {
    let protocol = match section.field("protocol")? {
        Some(field) => {
            let protocol = field.choice(&Protocol::ALL.map(|protocol| (protocol.name(), protocol)))?;
            match entry {
                Some(entry) if entry.replaces(&field) => entry.protocol,
                Some(entry) if entry.protocol != protocol => {
                    return Err(topology::contradiction(&field, entry.protocol.name()));
                }
                _ => protocol,
            }
        }
        None => entry.map_or_else(Protocol::default, |entry| entry.protocol),
    };
    let levels = levels(section, scale)?;
    let expected_status =
        section.field("expect-status")?.map(|field| expected_status(&field, protocol)).transpose()?;
    let connections = match (section.field("connections")?, &levels) {
        (Some(field), _) => Some(field.whole(1..=MAX_CONNECTIONS)?),
        (None, LoadLevels::Open { .. }) => Some(DEFAULT_CONNECTIONS),
        (None, LoadLevels::Closed { .. } | LoadLevels::Fleet) => None,
    };
    let span = |key, default| section.field(key)?.map_or(Ok(default), |field| field.positive_duration());
    Ok(LoadSettings {
        protocol,
        connections,
        requests_per_connection: section
            .field("requests-per-connection")?
            .map(|field| field.whole(1..=MAX_REQUESTS_PER_CONNECTION))
            .transpose()?,
        levels,
        warmup: span("warmup", DEFAULT_WARMUP)?,
        duration: span("duration", DEFAULT_DURATION)?,
        timeout: span("timeout", DEFAULT_TIMEOUT)?,
        expected_status,
        threads: section
            .field("threads")?
            .map_or(Ok(DEFAULT_THREADS), |field| field.whole(1..=MAX_THREADS))?,
        generators: section.field("generators")?.map_or(Ok(1), |field| field.whole(1..=MAX_GENERATORS))?,
        pacing: section.field("pacing")?.map(|field| pacing(&field)).transpose()?,
    })
}

fn expected_status(field: &Field<'_>, protocol: Protocol) -> Result<ExpectedStatuses> {
    if !protocol.has_http_statuses() {
        return Err(field.key_place.error(
            format!("`{}` says nothing with `load.protocol: {protocol}`", field.path),
            "expected only with HTTP, whose responses have such statuses",
        ));
    }
    let patterns = distinct(field, "status", None, |item| {
        item.text.parse().map_err(|error: InvalidStatus| {
            let given = results::units::shortened(item.text);
            item.place.error(format!("`{}`: `{given}` is not a status", field.path), error.to_string())
        })
    })?;
    Ok(ExpectedStatuses::new(patterns).expect("a list in a file is not empty"))
}

fn pacing(field: &Field<'_>) -> Result<Pacing> {
    if field.text()?.trim() == Pacing::Auto.name() {
        return Err(field
            .place()
            .error(
                "`load.pacing: auto` follows the load of the machine, which differs between modes",
                "expected `economical` or `precise`",
            )
            .with_hint("leave it out: the run then chooses one pacing for all of its trials"));
    }
    field.choice(&[Pacing::Economical, Pacing::Precise].map(|pacing| (pacing.name(), pacing)))
}

/// Rates or clients, and the arrival process of rates.
fn levels(section: &Section<'_>, scale: &Scale) -> Result<LoadLevels> {
    let arrival = section.field("arrival")?;
    match (section.field("rate")?, section.field("clients")?) {
        (Some(_), Some(clients)) => Err(clients
            .key_place
            .error("`load.rate` and `load.clients` contradict each other", "expected one of the two")
            .with_hint("`rate` is open loop (requests are due at fixed times), `clients` is closed loop (each sends again when answered)")),
        (None, None) => Err(section.missing("`load.rate` or `load.clients`", "rate: [500, 1000]")),
        (Some(rate), None) => {
            let read = |item: &Item<'_>| Ok(item.quantity(&rate.path, parse_rate)? * scale.factor);
            let rates = distinct(&rate, "level", Some(scale), read)?;
            let arrival = arrival.map_or(Ok(Arrival::Uniform), |field| {
                field.choice(&[("uniform", Arrival::Uniform), ("poisson", Arrival::Poisson)])
            })?;
            Ok(LoadLevels::Open { rates, arrival })
        }
        (None, Some(clients)) => {
            if let Some(arrival) = arrival {
                return Err(arrival.key_place.error(
                    "`load.arrival` says nothing with `load.clients`",
                    "expected only with `rate`: clients send when they were answered",
                ));
            }
            let read = |item: &Item<'_>| {
                let clients = item.whole(&clients.path, 1..=MAX_CONNECTIONS)?;
                Ok((clients as f64 * scale.factor).round().max(1.0) as usize)
            };
            Ok(LoadLevels::Closed { clients: distinct(&clients, "level", Some(scale), read)? })
        }
    }
}

/// Values of a list, which must be distinct. Scaling can make values equal.
fn distinct<T: PartialEq>(
    field: &Field<'_>,
    kind: &str,
    scale: Option<&Scale>,
    read: impl Fn(&Item<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let items = field.one_or_list()?;
    if items.len() > MAX_VALUES {
        return Err(field.place().error(
            format!("`{}` has {} {kind}s", field.path, items.len()),
            format!("expected at most {MAX_VALUES}"),
        ));
    }
    let mut levels = Vec::new();
    for item in items {
        let level = read(&item)?;
        if levels.contains(&level) {
            let error = item.place.error(
                format!("`{}` has the same {kind} twice", field.path),
                format!("expected each {kind} once"),
            );
            return Err(match scale {
                Some(scale) => scale.explain(error),
                None => error,
            });
        }
        levels.push(level);
    }
    Ok(levels)
}

fn payload(field: &Field<'_>) -> Result<u64> {
    let bytes = field.quantity(parse_size)?;
    if bytes > MAX_PAYLOAD_BYTES {
        return Err(field.place().error(format!("`{}` is too large", field.path), "expected at most 1GiB"));
    }
    Ok(bytes)
}

fn seed(field: &Field<'_>) -> Result<u64> {
    field.text()?.trim().parse().map_err(|_| {
        field.place().error("`seed` will not do", format!("expected a whole number from 0 to {}", u64::MAX))
    })
}

fn resolve(section: &Section<'_>) -> Result<Resolve> {
    let difference = |key| section.field(key)?.map(|field| field.positive_duration()).transpose();
    Ok(Resolve { p50: difference("p50")?, p99: difference("p99")? })
}

fn objective(section: &Section<'_>) -> Result<Objective> {
    let bound = |key| section.field(key)?.map(|field| field.positive_duration()).transpose();
    Ok(Objective {
        mean: bound("mean")?,
        p50: bound("p50")?,
        p75: bound("p75")?,
        p90: bound("p90")?,
        p95: bound("p95")?,
        p99: bound("p99")?,
        p99_9: bound("p99.9")?,
        p99_99: bound("p99.99")?,
        max: bound("max")?,
        errors: section.field("errors")?.map(|field| field.quantity(parse_fraction)).transpose()?,
        ..Objective::default()
    })
}

fn proxy(section: &Section<'_>) -> Result<ProxySettings> {
    let defaults = ProxySettings::default();
    Ok(ProxySettings {
        workers: section.field("workers")?.map_or(Ok(defaults.workers), |field| field.whole(1..=128))?,
        mtls: section.field("mtls")?.map_or(Ok(defaults.mtls), |field| {
            field.choice(&[
                ("strict", MutualTls::Strict),
                ("permissive", MutualTls::Permissive),
                ("off", MutualTls::Off),
                ("on", MutualTls::Strict),
                ("true", MutualTls::Strict),
                ("false", MutualTls::Off),
            ])
        })?,
        access_log: section.field("access-log")?.map_or(Ok(defaults.access_log), |field| {
            field.choice(&[("off", AccessLog::Off), ("text", AccessLog::Text), ("json", AccessLog::Json)])
        })?,
        cpu_limit_cores: cores(section)?,
        cpu_time: cpu_time(section)?,
    })
}

fn server(section: &Section<'_>, payload_bytes: u64) -> Result<ServerSettings> {
    Ok(ServerSettings {
        payload_bytes,
        delay: section.field("delay")?.map_or(Ok(Duration::ZERO), |field| field.quantity(parse_duration))?,
        cpu_time: cpu_time(section)?,
        error_fraction: section
            .field("error-rate")?
            .map_or(Ok(0.0), |field| field.quantity(parse_fraction))?,
        cpu_limit_cores: cores(section)?,
    })
}

/// The key `cpu-time` of a section.
fn cpu_time(section: &Section<'_>) -> Result<Duration> {
    let Some(field) = section.field("cpu-time")? else { return Ok(Duration::ZERO) };
    let time = field.quantity(parse_duration)?;
    if time > MAX_CPU_TIME {
        return Err(field.place().error(format!("`{}` is too long", field.path), "expected at most 1s"));
    }
    Ok(time)
}

/// The key `cpu` of a section: CPU limit in cores.
fn cores(section: &Section<'_>) -> Result<Option<f64>> {
    section.field("cpu")?.map(|field| field.quantity(parse_cores)).transpose()
}
