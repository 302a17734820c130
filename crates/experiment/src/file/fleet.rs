//! The section `fleet`: simulated proxies instead of a load.

use super::components;
use super::given::Given;
use super::keys::fleet::{MAX_OBJECTS, MAX_THREADS, MAX_WITNESSES};
use super::overrides::Scale;
use crate::definition::Experiment;
use crate::diagnostic::ExperimentError;
use crate::keys::SWITCH;
use crate::protocol::Protocol;
use crate::settings::fleet::{
    ChangeKind, FleetContradiction, FleetSecurity, FleetSettings, HeldTopology, MAX_DURATION, MAX_NAMESPACES,
    MAX_PROXIES, RepeatedChange, SettingNames, XdsVariant,
};
use crate::settings::service::ServerSettings;
use crate::topology::settings::TopologySettings;
use crate::yaml::document::{Node, Value};
use crate::yaml::section::{Field, Item, Section, alternatives};
use crate::yaml::suggestion::nearest;
use results::units::{Churn, parse_duration, parse_rate};
use results::{FactorValue, Mode};
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const MAX_SETTLE: Duration = Duration::from_secs(3600);

/// Sections and keys about requests and the proxies that carry them.
const OF_REQUESTS: [&str; 8] =
    ["load", "objective", "resolve", "proxy", "ingress", "gateway", "server", "client"];

/// Keys that are taken from a topology, if there is one.
const OF_TOPOLOGY: [&str; 3] = ["services", "pods", "namespaces"];

/// Keys of the section that `--scale` multiplies.
const SCALED: [&str; 7] =
    ["proxies", "services", "pods", "virtual-services", "destination-rules", "gateways", "policies"];

/// Reads the section. Mode and section need each other.
pub(super) fn settings(
    root: &Section<'_>,
    topology: &TopologySettings,
    modes: &[Mode],
    scale: &Scale,
) -> Result<Option<FleetSettings>> {
    let has_mode = modes.contains(&Mode::ControlPlane);
    let section = root.section("fleet")?;
    let Some(field) = root.field("fleet")? else {
        let modes = root.field("modes")?.filter(|_| has_mode);
        return modes.map_or(Ok(None), |modes| {
            Err(modes.key_place.error("mode `control-plane` has no fleet", "expected with the section `fleet`").with_hint(
                "`fleet: {proxies: 100, services: 100, pods: 200}` holds 100 simulated sidecars against istiod",
            ))
        });
    };
    if let Some(load) = root.field("load")? {
        return Err(load
            .key_place
            .error("`load` and `fleet` contradict each other", "expected one of the two")
            .with_hint("`load` sends requests, `fleet` holds simulated proxies against the control plane"));
    }
    if !has_mode || modes.len() > 1 {
        let place = root.field("modes")?.map_or(field.key_place, |modes| modes.key_place);
        return Err(place.error(
            "a fleet is measured in mode `control-plane` alone",
            "expected `modes: [control-plane]` with `mesh: istio`",
        ));
    }
    let fleet = read(&section, scale)?;
    match root.field("topology")? {
        Some(field) => with_topology(fleet, &field, topology, &section).map(Some),
        None => Ok(Some(fleet)),
    }
}

/// Takes services, pods and namespaces from the topology.
fn with_topology(
    fleet: FleetSettings,
    field: &Field<'_>,
    topology: &TopologySettings,
    section: &Section<'_>,
) -> Result<FleetSettings> {
    for key in OF_TOPOLOGY {
        if let Some(number) = section.field(key)? {
            return Err(number.key_place.error(
                format!("`{}` and `topology` contradict each other", number.path),
                "expected one of the two",
            ));
        }
    }
    let made = topology.topology(Mode::None, Protocol::default(), &ServerSettings::default(), None);
    match made.and_then(|made| HeldTopology::new(&made)) {
        Ok(held) => Ok(fleet.with_topology(held)),
        Err(reason) => Err(field.key_place.error(reason, "expected services that run in the mesh")),
    }
}

fn read(section: &Section<'_>, scale: &Scale) -> Result<FleetSettings> {
    let defaults = FleetSettings::default();
    let number =
        |key: &'static str, default: usize, least: usize, most: usize| {
            let given = section.field(key)?.map_or(Ok(default), |field| field.whole(least..=most))?;
            let scaled = if SCALED.contains(&key) { scaled(given, scale) } else { given };
            match &scale.place {
                Some(place) if scaled > most => Err(place
                    .error(format!("`fleet.{key}` would be {scaled}"), format!("expected at most {most}"))),
                _ => Ok(scaled),
            }
        };
    let switch = |key| section.field(key)?.map_or(Ok(false), |field| field.choice(&SWITCH));
    let defaults_of = FleetSettings::default;
    Ok(FleetSettings {
        proxies: number("proxies", defaults.proxies, 1, MAX_PROXIES)?,
        kinds: section.field("kind")?.map_or(Ok(defaults_of().kinds), |field| field.quantity(str::parse))?,
        xds: section.field("xds")?.map_or(Ok(defaults.xds), |field| {
            field.choice(&XdsVariant::ALL.map(|variant| (variant.name(), variant)))
        })?,
        security: section.field("security")?.map_or(Ok(defaults.security), |field| {
            field.choice(&FleetSecurity::ALL.map(|security| (security.name(), security)))
        })?,
        topology: None,
        services: number("services", defaults.services, 1, MAX_OBJECTS)?,
        pods: number("pods", defaults.pods, 1, MAX_OBJECTS)?,
        namespaces: number("namespaces", defaults.namespaces, 1, MAX_NAMESPACES)?,
        virtual_services: number("virtual-services", defaults.virtual_services, 0, MAX_OBJECTS)?,
        destination_rules: number("destination-rules", defaults.destination_rules, 0, MAX_OBJECTS)?,
        gateways: number("gateways", defaults.gateways, 0, MAX_OBJECTS)?,
        policies: number("policies", defaults.policies, 0, MAX_OBJECTS)?,
        scope: switch("scope")?,
        on_demand: switch("on-demand")?,
        witnesses: number("witnesses", 0, 0, MAX_WITNESSES)?,
        churn: section.field("churn")?.map_or(Ok(Churn::None), |field| churn(&field))?,
        changes: section.field("changes")?.map_or(Ok(defaults_of().changes), |field| changes(&field))?,
        between: span(section, "between", defaults.between, MAX_SETTLE)?,
        duration: span(section, "duration", defaults.duration, MAX_DURATION)?,
        settle: span(section, "settle", defaults.settle, MAX_SETTLE)?,
        connect_rate: section.field("connect-rate")?.map(|field| field.quantity(parse_rate)).transpose()?,
        threads: section.field("threads")?.map(|field| field.whole(1..=MAX_THREADS)).transpose()?,
    })
}

/// A number multiplied by `--scale`, at least 1 unless it is 0.
fn scaled(given: usize, scale: &Scale) -> usize {
    ((given as f64 * scale.factor).round() as usize).max(given.min(1))
}

/// Value of a factor after `--scale`, which tables and charts show; `None` if the key is not scaled.
pub(super) fn scaled_factor(key: &str, text: &str, scale: &Scale) -> Option<FactorValue> {
    let is_scaled = key.strip_prefix("fleet.").is_some_and(|key| SCALED.contains(&key));
    // The reader of the key reports what is not a whole number.
    let given = text.trim().parse().ok().filter(|_| is_scaled && scale.place.is_some())?;
    Some(FactorValue::Number(scaled(given, scale).into()))
}

/// Duration that may be 0.
fn span(section: &Section<'_>, key: &'static str, default: Duration, most: Duration) -> Result<Duration> {
    let Some(field) = section.field(key)? else { return Ok(default) };
    let duration = field.quantity(parse_duration)?;
    if duration > most {
        let most = results::units::format_duration(most);
        return Err(field
            .place()
            .error(format!("`{}` is too long", field.path), format!("expected at most {most}")));
    }
    Ok(duration)
}

fn churn(field: &Field<'_>) -> Result<Churn> {
    field.quantity(str::parse)
}

/// All values of a churn factor must have the same unit.
pub(super) fn check_churn_factor(items: &[Node]) -> Result<()> {
    let churn = |item: &Node| match &item.value {
        Value::Scalar(text) => text.parse::<Churn>().ok(),
        _ => None,
    };
    let is_share = |item: &&Node| matches!(churn(item), Some(Churn::FractionPerMinute(_)));
    let pods = items.iter().find(|item| matches!(churn(item), Some(Churn::PodsPerSecond(_))));
    match pods.filter(|_| items.iter().any(|item| is_share(&item))) {
        Some(pods) => Err(pods.place.error(
            "`fleet.churn` has percentages and numbers of pods",
            "expected one of the two: `[0, 25%/m, 50%/m]` or `[0, 5/s, 10/s]`",
        )),
        None => Ok(()),
    }
}

/// One or several changes; an empty list means none.
fn changes(field: &Field<'_>) -> Result<Vec<RepeatedChange>> {
    if matches!(&field.node.value, Value::List(items) if items.is_empty()) {
        return Ok(Vec::new());
    }
    field.one_or_list()?.iter().map(|item| change(field, item)).collect()
}

fn change(field: &Field<'_>, item: &Item<'_>) -> Result<RepeatedChange> {
    let word = item.text.split('=').next().unwrap_or_default().trim();
    let names = ChangeKind::ALL.map(ChangeKind::name);
    if names.contains(&word) {
        return item.quantity(&field.path, str::parse);
    }
    let error = item.place.error(
        format!("`{}`: `{}` is not a kind of change", field.path, results::units::shortened(word)),
        format!("expected {}", alternatives(&names)),
    );
    Err(match nearest(word, names) {
        Some(name) => error.with_hint(format!("did you mean `{name}`?")),
        None => error,
    })
}

/// Runs every check in turn.
pub(super) fn contradictions(
    fleet: &FleetSettings,
    experiment: &Experiment,
    given: &Given<'_>,
) -> Result<()> {
    of_requests(given)?;
    components::contradictions(experiment, given.components)?;
    let section = given.root.section("fleet")?;
    match fleet.check(experiment.istio.istiod.replicas, SettingNames::Keys) {
        Ok(()) => something_happens(fleet, &section),
        Err(contradiction) => Err(located(contradiction, &section)?),
    }
}

/// A contradiction at the place of its setting.
fn located(contradiction: FleetContradiction, section: &Section<'_>) -> Result<Box<ExperimentError>> {
    let FleetContradiction { key, other, change, is_any_value, message, expected, hint } = contradiction;
    let field = match (section.field(key)?, other) {
        (None, Some(other)) => section.field(other)?,
        (field, _) => field,
    };
    let place = field.map_or_else(
        || section.place().clone(),
        |field| {
            let changes = change.map(|_| field.one_or_list().unwrap_or_default());
            let item = changes.zip(change).and_then(|(items, change)| Some(items.get(change)?.place.clone()));
            let whole = if is_any_value { field.key_place } else { field.place() };
            item.unwrap_or_else(|| whole.clone())
        },
    );
    let error = place.error(message, expected);
    Ok(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}

/// Rejects settings of requests and their proxies: a fleet does not measure them.
fn of_requests(given: &Given<'_>) -> Result<()> {
    for key in OF_REQUESTS {
        if let Some(field) = given.root.field(key)? {
            return Err(field.key_place.error(
                format!("`{key}` says nothing with a fleet"),
                "a control plane is measured without requests",
            ));
        }
    }
    let Some(istio) = given.root.field("istio")? else { return Ok(()) };
    match istio.node.entries().iter().find(|entry| entry.key != "istiod") {
        Some(entry) => Err(entry
            .key_place
            .error(format!("`istio.{}` says nothing with a fleet", entry.key), "expected `istiod` alone")
            .with_hint("the mesh that a fleet holds is described by the keys of `fleet`")),
        None => Ok(()),
    }
}

/// An experiment whose fleet only connects would have nothing to compare.
fn something_happens(fleet: &FleetSettings, section: &Section<'_>) -> Result<()> {
    let is_still = fleet.changes.is_empty() && fleet.churn == Churn::None && fleet.duration.is_zero();
    match section.field("changes")?.filter(|_| is_still) {
        Some(field) => Err(field
            .key_place
            .error("nothing would change", "expected a change, `fleet.churn` or `fleet.duration`")),
        None => Ok(()),
    }
}
