//! The key `topology`: a built-in topology, a file, or an inline graph.

use super::given::Given;
use super::keys::{self, MAX_NAMESPACES, MAX_REPLICAS, SHAPE_KEYS};
use super::named_files::Files;
use super::sections::SECTIONS;
use crate::dataplane::{self, DataPlane, ModeParts};
use crate::definition::Experiment;
use crate::diagnostic::{ExperimentError, Place, Source};
use crate::keys::names;
use crate::mesh_kind::MeshKind;
use crate::protocol::Protocol;
use crate::settings::proxy::MutualTls;
use crate::settings::service::ServerSettings;
use crate::topology::file::{self, TopologyFile};
use crate::topology::settings::{TopologySettings, TopologySource};
use crate::topology::shapes::{Parameters, SHAPES, Shape};
use crate::topology::{Call, Topology, Workload, WorkloadId};
use crate::yaml::document::{Node, Value};
use crate::yaml::section::{Field, Section, alternatives};
use crate::yaml::suggestion::nearest;
use results::Mode;
use results::units::{format_size, shortened};
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Keys in addition to those of a topology file, for an inline graph.
const BESIDE_GRAPH: [&str; 1] = [keys::NAMESPACES.name];

/// True if the text is a file name.
pub(super) fn is_file(text: &str) -> bool {
    text.ends_with(".yaml") || text.ends_with(".yml")
}

/// True if the map is an inline graph.
fn is_graph(field: &Field<'_>) -> bool {
    let keys = || field.node.entries().iter().map(|entry| entry.key.as_str());
    !keys().any(|key| key == "shape" || key == "file")
        && keys().any(|key| file::root_keys().any(|own| own == key))
}

/// Graph of the tree's topology, read once for all combinations of factors; absent for a built-in topology.
pub(super) fn graph(root: &Node, files: &dyn Files) -> Result<Option<Arc<Topology>>> {
    let root = Section::root(root, &SECTIONS)?;
    let Some(field) = root.field("topology")? else { return Ok(None) };
    if is_graph(&field) {
        return Ok(Some(Arc::new(TopologyFile::read_inline(field.node, &BESIDE_GRAPH)?.topology)));
    }
    let section = if field.is_map() { Some(root.section("topology")?) } else { None };
    let named = match &section {
        Some(section) => section.field("file")?,
        None => matches!(&field.node.value, Value::Scalar(text) if is_file(text)).then_some(field),
    };
    let Some(named) = named else { return Ok(None) };
    let path = named.text()?;
    let text = files.text(path).map_err(|reason| {
        named.place().error(
            format!("`{}`: {reason}", named.path),
            "expected a file, its path from the folder of the experiment file on",
        )
    })?;
    Ok(Some(Arc::new(TopologyFile::read(&text, path)?.topology)))
}

/// Reads the key. `graph` is the result of [`graph()`].
pub(super) fn settings(root: &Section<'_>, graph: Option<&Arc<Topology>>) -> Result<TopologySettings> {
    let Some(field) = root.field("topology")? else { return Ok(TopologySettings::default()) };
    if !field.is_map() {
        let source = match graph {
            Some(graph) => TopologySource::Graph(Arc::clone(graph)),
            None => TopologySource::shape(shape(&field)?),
        };
        return Ok(TopologySettings { source, namespaces: 1 });
    }
    let section = root.section("topology")?;
    let namespaces = section.field("namespaces")?.map_or(Ok(1), |field| field.whole(1..=MAX_NAMESPACES))?;
    let source = match graph {
        Some(graph) => {
            if !is_graph(&field) {
                check_keys(&field, &format!("topology `{}`", graph.name), &const { names(&keys::FILE) })?;
            }
            TopologySource::Graph(Arc::clone(graph))
        }
        None => built_in(&field, &section)?,
    };
    Ok(TopologySettings { source, namespaces })
}

fn built_in(field: &Field<'_>, section: &Section<'_>) -> Result<TopologySource> {
    let shape = section.field("shape")?.map_or(Ok(SHAPES[0]), |field| shape(&field))?;
    let names: Vec<&str> =
        SHAPE_KEYS.into_iter().chain(shape.parameters.iter().map(|parameter| parameter.name)).collect();
    check_keys(field, &format!("topology `{}`", shape.name), &names)?;
    let mut parameters = Parameters::defaults(shape);
    for parameter in shape.parameters {
        if let Some(field) = section.field(parameter.name)? {
            parameters.set(parameter, field.quantity(|text| parameter.parse(text))?);
        }
    }
    let replicas = section.field("replicas")?.map_or(Ok(1), |field| field.whole(1..=MAX_REPLICAS))?;
    Ok(TopologySource::Shape { shape, parameters, replicas })
}

/// Rejects keys that this topology does not have.
fn check_keys(field: &Field<'_>, owner: &str, known: &[&str]) -> Result<()> {
    let unknown = field.node.entries().iter().find(|entry| !known.contains(&entry.key.as_str()));
    let Some(entry) = unknown else { return Ok(()) };
    let error = entry.key_place.error(
        format!("`topology.{}` is not a key of {owner}", entry.key),
        format!("expected {}", alternatives(known)),
    );
    let having: Vec<&str> =
        SHAPES.iter().filter(|shape| shape.parameter(&entry.key).is_some()).map(|shape| shape.name).collect();
    Err(match having.as_slice() {
        [] => error,
        _ => {
            error.with_hint(format!("{} has it, as in `--set topology={}`", alternatives(&having), having[0]))
        }
    })
}

fn shape(field: &Field<'_>) -> Result<&'static Shape> {
    let text = field.text()?;
    Shape::find(text).ok_or_else(|| {
        let names = SHAPES.map(|shape| shape.name);
        let error = field.place().error(
            format!("`{}`: `{}` is not a built-in topology", field.path, shortened(text)),
            format!("expected {}, or a file `*.yaml`", alternatives(&names)),
        );
        error.did_you_mean(nearest(text, names))
    })
}

/// Protocol and response size of the entry service, for a topology that defines its own; absent if the
/// experiment defines them.
pub(super) struct Entry {
    pub(super) protocol: Protocol,
    pub(super) response_bytes: u64,
    /// Experiment file whose topology the command line replaced: its `load` values were for the old topology.
    replaced: Option<Arc<Source>>,
}

impl Entry {
    /// True if this value was for the replaced topology.
    pub(super) fn replaces(&self, field: &Field<'_>) -> bool {
        self.replaced.as_ref().is_some_and(|file| Arc::ptr_eq(file, &field.place().source))
    }
}

/// Entry of the load. All drivers must use one protocol.
pub(super) fn entry(root: &Section<'_>, settings: &TopologySettings) -> Result<Option<Entry>> {
    let Some(field) = root.field("topology")?.filter(|_| !settings.is_plain()) else { return Ok(None) };
    let server = ServerSettings::default();
    let topology = made(&field, settings, Mode::None, Protocol::default(), &server)?;
    let targets = || topology.drivers.iter().map(|driver| &topology.workloads[driver.target]);
    let Some(first) = targets().next() else { return Ok(None) };
    if let Some(other) = targets().find(|target| target.protocol != first.protocol) {
        return Err(field.key_place.error(
            "the drivers speak different protocols",
            format!(
                "expected one: `{}` of {}, `{}` of {}",
                first.protocol,
                first.qualified_name(),
                other.protocol,
                other.qualified_name()
            ),
        ));
    }
    let path = topology.drivers.first().map_or("", |driver| driver.endpoint.as_str());
    let endpoint = first.script().and_then(|script| script.endpoint(path));
    let response_bytes = endpoint.map_or(0.0, |endpoint| endpoint.response_bytes.mean());
    let file = &root.place().source;
    let replaced = (!Arc::ptr_eq(file, &field.place().source)).then(|| Arc::clone(file));
    Ok(Some(Entry { protocol: first.protocol, response_bytes: response_bytes.round() as u64, replaced }))
}

fn made(
    field: &Field<'_>,
    settings: &TopologySettings,
    mode: Mode,
    protocol: Protocol,
    server: &ServerSettings,
) -> Result<Topology> {
    settings.topology(mode, protocol, server, None).map_err(|reason| {
        field.key_place.error(reason, format!("expected a smaller topology `{}`", settings.name()))
    })
}

/// Checks the topology against the rest of the experiment.
pub(super) fn contradictions(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let Some(field) = given.root.field("topology")? else { return Ok(()) };
    let (settings, load) = (&experiment.topology, &experiment.load);
    let topology = made(&field, settings, Mode::None, load.protocol, &experiment.server)?;
    let egress = experiment.modes.iter().find(|mode| mode.is_egress());
    if let Some(mode) = egress
        && !settings.follows_mode()
        && !topology.workloads.iter().any(Workload::is_external)
    {
        return Err(field
            .place()
            .error(
                format!("topology `{}` has nothing outside the mesh for mode `{mode}`", settings.name()),
                "expected `databases` in the topology",
            )
            .with_hint("`pair` has its server outside in the egress modes, `booking` a database"));
    }
    let opaque =
        topology.workloads.iter().find(|one| one.protocol == Protocol::Tcp && one.script().is_some());
    if let Some(workload) = opaque.filter(|_| experiment.mesh == MeshKind::Envoy && !settings.is_plain()) {
        return Err(field
            .place()
            .error(
                format!("mesh envoy does not carry raw TCP, which {} speaks", workload.qualified_name()),
                "expected `http/1.1`, `http/2` or `grpc`: its static files route requests",
            )
            .with_hint("`mesh: istio` does"));
    }
    callers_have_identities(experiment, given, &topology)?;
    callers_are_accepted(experiment, given, &topology, &field)?;
    services_own_settings(experiment, given)
}

/// Rejects rules that allow callers by identity if a caller is outside the mesh: it shows none, and would be denied.
fn callers_have_identities(experiment: &Experiment, given: &Given<'_>, topology: &Topology) -> Result<()> {
    let Some(field) = given
        .field("istio.authorization.identities")?
        .filter(|_| experiment.istio.authorization.identities > 0)
    else {
        return Ok(());
    };
    let Some([from, to]) = call_from_outside(experiment, topology) else { return Ok(()) };
    Err(field.key_place.error(
        format!("`{}` is not supported with callers outside the mesh", field.path),
        format!("expected every caller in the mesh: {from} calls {to} in plaintext and shows no identity"),
    ))
}

/// Rejects a caller outside the mesh if Istio's proxies accept mutual TLS alone: it speaks none.
fn callers_are_accepted(
    experiment: &Experiment,
    given: &Given<'_>,
    topology: &Topology,
    named: &Field<'_>,
) -> Result<()> {
    if experiment.proxy.mtls != MutualTls::Strict {
        return Ok(());
    }
    let Some([from, to]) = call_from_outside(experiment, topology) else { return Ok(()) };
    let refused = |place: &Place| {
        place.error(
            "`proxy.mtls: strict` is not supported with callers outside the mesh",
            format!("expected `permissive`, or every caller in the mesh: {from} calls {to} in plaintext"),
        )
    };
    Err(match given.field("proxy.mtls")? {
        Some(field) => refused(field.place()),
        None => refused(named.key_place).with_hint("`strict` is the default of `proxy.mtls`"),
    })
}

/// Ends of a call to a member from a caller outside the mesh, in a mode whose members have proxies of Istio. The direct path of a
/// gateway's scenarios has none.
fn call_from_outside(experiment: &Experiment, topology: &Topology) -> Option<[String; 2]> {
    use DataPlane::{Sidecar, Ztunnel, ZtunnelWaypoint};

    let scenario = experiment.ingress.scenario;
    let modes = experiment.modes.iter().map(|mode| experiment.mesh.parts_in(*mode, scenario));
    let modes: Vec<ModeParts> =
        modes.filter(|parts| matches!(parts.data_plane, Sidecar | Ztunnel | ZtunnelWaypoint)).collect();
    if modes.is_empty() {
        return None;
    }
    let is_direct = modes.iter().any(|parts| parts.entry == dataplane::Entry::Direct);
    let is_member = |id: WorkloadId| topology.workloads[id].in_mesh && !topology.workloads[id].is_external();
    // A gateway calls in place of the drivers before it.
    let arrives = |call: &&Call| is_direct || topology.workloads[call.from].serves();
    let mut calls = topology.calls.iter().filter(arrives);
    let call = calls.find(|call| is_member(call.to) && !is_member(call.from))?;
    Some([call.from, call.to].map(|id| topology.workloads[id].qualified_name()))
}

/// Rejects service settings of the experiment if the topology has its own scripts.
fn services_own_settings(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let name = experiment.topology.name();
    if experiment.topology.is_plain() {
        return Ok(());
    }
    let defaults = ServerSettings::default();
    let server = &experiment.server;
    let says = |key: &str, differs: bool| {
        let field = given.field(&format!("server.{}", key))?.filter(|_| differs);
        field.map_or(Ok(()), |field| {
            Err(field.key_place.error(
                format!("`{}` has no effect with topology `{name}`", field.path),
                "its endpoints have scripts and error rates of their own",
            ))
        })
    };
    says("delay", server.delay != defaults.delay)?;
    says("cpu-time", server.cpu_time != defaults.cpu_time)?;
    says("error-rate", server.error_fraction != defaults.error_fraction)
}

/// Error for a `load` value that the topology defines itself.
pub(super) fn contradiction(field: &Field<'_>, entry: &str) -> Box<ExperimentError> {
    field.place().error(
        format!("`{}` contradicts the topology", field.path),
        format!("expected none: where load enters it is `{entry}`"),
    )
}

/// Payload, from the experiment or the topology.
pub(super) fn payload(
    field: Option<Field<'_>>,
    entry: Option<&Entry>,
    read: impl Fn(&Field<'_>) -> Result<u64>,
) -> Result<u64> {
    match (field, entry) {
        (None, None) => Ok(ServerSettings::default().payload_bytes),
        (None, Some(entry)) => Ok(entry.response_bytes),
        (Some(field), entry) => {
            let bytes = read(&field)?;
            match entry {
                Some(entry) if entry.replaces(&field) => Ok(entry.response_bytes),
                Some(entry) if entry.response_bytes != bytes => {
                    Err(contradiction(&field, &format_size(entry.response_bytes)))
                }
                _ => Ok(bytes),
            }
        }
    }
}
