//! Reads an experiment from the tree: every key with its meaning, default and valid values.

use super::checks;
use super::components;
use super::fleet;
use super::given::Given;
use super::ingress;
use super::istio;
use super::load;
use super::named_files::Files;
use super::overrides::Scale;
use super::published;
use super::sections::SECTIONS;
use super::topology;
use crate::definition::{Experiment, Fresh, HeadlineFigure, LoadLevels, LoadSettings};
use crate::diagnostic::ExperimentError;
use crate::keys::settings::read;
use crate::keys::words::Words as _;
use crate::mesh_kind::MeshKind;
use crate::settings::service::ServerSettings;
use crate::topology::Topology;
use crate::yaml::document::Node;
use crate::yaml::section::{Field, Item, Section, alternatives};
use crate::yaml::suggestion::nearest;
use results::Mode;
use results::units::parse_cores;
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const DEFAULT_REPEATS: usize = 5;

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
    let fleet = fleet::section(&root, &topology, &modes, scale)?;
    let load_section = root.section("load")?;
    let load = match &fleet {
        Some(fleet) => LoadSettings::of_fleet(fleet),
        None => load::load(&load_section, entry.as_ref(), scale)?,
    };
    let payload_bytes = topology::payload(load_section.field("payload")?, entry.as_ref(), load::payload)?;
    let experiment = Experiment {
        name,
        question,
        headline: headline(&root, &load.levels, &modes)?,
        topology,
        mesh,
        modes,
        fleet: fleet.map(Arc::new),
        repeats: root.field("repeats")?.map_or(Ok(DEFAULT_REPEATS), |field| field.whole(1..=1000))?,
        retakes: root.field("retakes")?.map_or(Ok(0), |field| field.whole(0..=10))?,
        seed: root.field("seed")?.map(|field| seed(&field)).transpose()?,
        objective: read(&root.section("objective")?)?,
        resolve: read(&root.section("resolve")?)?,
        published: published::sources(&root)?,
        proxy: read(&root.section("proxy")?)?,
        components: components::settings(&root.section("components")?, files)?,
        istio: istio::settings(&root.section("istio")?, files)?.into(),
        ingress: ingress::estate(&root.section("ingress")?)?.into(),
        gateway: read(&root.section("gateway")?)?,
        server: ServerSettings { payload_bytes, ..read(&root.section("server")?)? },
        client_cpu_limit_cores: cores(&root.section("client")?)?,
        fresh: root.field("fresh")?.map(|field| field.choice(Fresh::WORDS)).transpose()?,
        factors: Vec::new(),
        combinations: Vec::new(),
        left_out: Vec::new(),
        load,
    };
    let given = Given { root: &root, varied, scale };
    match &experiment.fleet {
        Some(settings) => fleet::contradictions(settings, &experiment, &given)?,
        None => checks::contradictions(&experiment, &given)?,
    }
    Ok(experiment)
}

/// A figure that the run does not have is refused: its headline would state another one.
fn headline(root: &Section<'_>, levels: &LoadLevels, modes: &[Mode]) -> Result<Option<HeadlineFigure>> {
    let Some(field) = root.field("headline")? else { return Ok(None) };
    let refused = match (field.choice(HeadlineFigure::WORDS)?, levels) {
        (_, LoadLevels::Fleet) => (
            "no request has a response time here",
            "leave `headline` out: that of a fleet states its convergence",
        ),
        (HeadlineFigure::Throughput, LoadLevels::Open { .. }) => (
            "the throughput of an open loop is the rate of its requests",
            "expected `load.clients` with it, or `p50`, `p90`, `p99` or `cpu`",
        ),
        (HeadlineFigure::Cpu, _) if modes.iter().all(|mode| mode.floor().is_none()) => (
            "no mode here has a proxy whose CPU is compared",
            "expected a mode with proxies, or `p50`, `p90` or `p99`",
        ),
        (figure, _) => return Ok(Some(figure)),
    };
    Err(field.place().error(refused.0, refused.1))
}

fn name(field: &Field<'_>) -> Result<String> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.len() > 64 || text.starts_with('.') || !text.chars().all(fits) {
        return Err(field.place().error(
            "this is not a valid name",
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
    field.choice(MeshKind::WORDS)
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
            Err(error.did_you_mean(nearest(item.text, available)))
        }
    }
}

fn seed(field: &Field<'_>) -> Result<u64> {
    field.text()?.trim().parse().map_err(|_| {
        field.place().error("`seed` is not valid", format!("expected a whole number from 0 to {}", u64::MAX))
    })
}

/// The key `cpu` of a section: CPU limit in cores.
fn cores(section: &Section<'_>) -> Result<Option<f64>> {
    section.field("cpu")?.map(|field| field.quantity(parse_cores)).transpose()
}
