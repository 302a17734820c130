//! The section `fleet`: simulated proxies instead of a load.

use super::components;
use super::given::Given;
use super::named_files::NoFiles;
use super::overrides::Scale;
use super::sections::SECTIONS;
use super::topology;
use crate::definition::Experiment;
use crate::diagnostic::{ExperimentError, Source};
use crate::keys::settings::{self, read};
use crate::protocol::Protocol;
use crate::settings::fleet::{
    FleetContradiction, FleetSettings, HeldTopology, MAX_OBJECTS, MAX_PROXIES, SettingNames,
};
use crate::settings::service::ServerSettings;
use crate::topology::settings::TopologySettings;
use crate::yaml::document::{self, Node, Value};
use crate::yaml::section::{Field, Section};
use crate::yaml::written::Map;
use results::units::Churn;
use results::{FactorValue, Mode};
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Sections and keys about requests and the proxies that carry them.
const OF_REQUESTS: [&str; 8] =
    ["load", "objective", "resolve", "proxy", "ingress", "gateway", "server", "client"];

/// Keys that are taken from a topology, if there is one.
const OF_TOPOLOGY: [&str; 3] = ["services", "pods", "namespaces"];

/// True for a key that the fleet's topology makes superfluous.
pub(super) fn is_of_topology(fleet: &FleetSettings, dotted: &str) -> bool {
    fleet.topology.is_some() && OF_TOPOLOGY.iter().any(|key| dotted.strip_prefix("fleet.") == Some(key))
}

impl FleetSettings {
    /// Writes the settings as sections of an experiment file, `fleet` and `topology`, for [`Self::from_yaml`].
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let section = settings::written(self, "fleet", &|key| is_of_topology(self, key)).done();
        let topology = self.topology.as_deref().map(HeldTopology::view);
        document::write(&Map::default().with("fleet", section).with_some("topology", topology).done())
    }

    /// Reads settings of one fleet, which [`Self::check`] has not checked against each other.
    ///
    /// # Errors
    /// Returns the first error, with its place.
    pub fn from_yaml(text: &str, file_name: &str) -> Result<Self> {
        let source = Arc::new(Source { name: file_name.to_owned(), text: text.to_owned() });
        let root = document::read(&source)?;
        let fleet: Self = read(&Section::root(&root, &SECTIONS)?.section("fleet")?)?;
        let Some(graph) = topology::graph(&root, &NoFiles)? else { return Ok(fleet) };
        match HeldTopology::new(&graph) {
            Ok(held) => Ok(fleet.with_topology(held)),
            Err(reason) => Err(root.place.error(reason, "expected services that run in the mesh")),
        }
    }
}

/// Reads the section. Mode and section need each other.
pub(super) fn section(
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
    let mut fleet: FleetSettings = read(&section)?;
    scale_sizes(&mut fleet, scale)?;
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

fn scale_sizes(fleet: &mut FleetSettings, scale: &Scale) -> Result<()> {
    let Some(place) = &scale.place else { return Ok(()) };
    for (key, number) in fleet.sizes() {
        *number = scaled(*number, scale);
        let most = if key == "proxies" { MAX_PROXIES } else { MAX_OBJECTS as usize };
        if *number > most {
            return Err(
                place.error(format!("`fleet.{key}` would be {number}"), format!("expected at most {most}"))
            );
        }
    }
    Ok(())
}

/// A number multiplied by `--scale`, at least 1 unless it is 0.
fn scaled(given: usize, scale: &Scale) -> usize {
    ((given as f64 * scale.factor).round() as usize).max(given.min(1))
}

/// Value of a factor after `--scale`, which tables and charts show; `None` if the key is not scaled.
pub(super) fn scaled_factor(key: &str, text: &str, scale: &Scale) -> Option<FactorValue> {
    let is_scaled = key
        .strip_prefix("fleet.")
        .is_some_and(|key| FleetSettings::default().sizes().iter().any(|(size, _)| *size == key));
    // The reader of the key reports what is not a whole number.
    let given = text.trim().parse().ok().filter(|_| is_scaled && scale.place.is_some())?;
    Some(FactorValue::Number(scaled(given, scale).into()))
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

/// Runs every check in turn.
pub(super) fn contradictions(
    fleet: &FleetSettings,
    experiment: &Experiment,
    given: &Given<'_>,
) -> Result<()> {
    of_requests(given)?;
    components::contradictions(experiment, &given.section("components")?)?;
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
    Ok(error.with_some_hint(hint))
}

/// Rejects settings of requests and their proxies: a fleet does not measure them.
fn of_requests(given: &Given<'_>) -> Result<()> {
    for key in OF_REQUESTS {
        if let Some(field) = given.root.field(key)? {
            return Err(field.key_place.error(
                format!("`{key}` has no effect with a fleet"),
                "a control plane is measured without requests",
            ));
        }
    }
    let Some(istio) = given.root.field("istio")? else { return Ok(()) };
    match istio.node.entries().iter().find(|entry| entry.key != "istiod") {
        Some(entry) => Err(entry
            .key_place
            .error(format!("`istio.{}` has no effect with a fleet", entry.key), "expected `istiod` alone")
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
