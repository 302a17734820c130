//! Writes an experiment as a file with every default visible.

use super::fleet;
use super::keys::load::LoadSection;
use super::overrides::split_key;
use crate::definition::{Experiment, Factor};
use crate::diagnostic::Source;
use crate::keys::settings::{self, Settings};
use crate::mesh_kind::MeshKind;
use crate::published::{PublishedSource, ReferenceFigure, ReferenceValue};
use crate::topology::file::view;
use crate::topology::settings::TopologySource;
use crate::topology::shapes::ParameterKind;
use crate::yaml::document;
use crate::yaml::written::{Map, Yaml};
use results::FactorValue;
use results::units::{format_cores, format_duration, format_fraction, format_size};
use std::sync::Arc;

/// Writes the file.
pub(super) fn experiment(experiment: &Experiment) -> String {
    let text = |text: &str| Yaml::Text(text.to_owned());
    let modes = Yaml::List(experiment.modes.iter().map(|mode| text(mode.name())).collect());
    let load = LoadSection { load: experiment.load.clone(), payload_bytes: experiment.server.payload_bytes };
    let is_written = |section: &str| !is_hidden(experiment, section);
    let map = Map::default()
        .text("name", &experiment.name)
        .text("question", &experiment.question)
        .with_some("topology", is_written("topology").then(|| topology(experiment)))
        .text("mesh", experiment.mesh.name())
        .with("modes", modes)
        .with_some("load", section(experiment, "load", &load))
        .with_some("fleet", experiment.fleet.as_deref().and_then(|fleet| section(experiment, "fleet", fleet)))
        .number("repeats", experiment.repeats)
        .number("retakes", experiment.retakes)
        .with_some("seed", experiment.seed.map(Yaml::Number))
        .with_some("headline", experiment.headline.map(|figure| text(figure.name())))
        .with_some("objective", section(experiment, "objective", &experiment.objective))
        .with_some("resolve", section(experiment, "resolve", &experiment.resolve))
        .with_some("proxy", section(experiment, "proxy", &experiment.proxy))
        .with_some("components", section(experiment, "components", &experiment.components))
        .with_some("istio", section(experiment, "istio", &*experiment.istio))
        .with_some("ingress", section(experiment, "ingress", &*experiment.ingress))
        .with_some("gateway", section(experiment, "gateway", &experiment.gateway))
        .with_some("server", section(experiment, "server", &experiment.server));
    let client =
        experiment.client_cpu_limit_cores.map(|cores| Map::default().text("cpu", format_cores(cores)));
    let published = experiment.published.iter().map(published).collect();
    let map = map
        .with_some("client", client.map(Map::done))
        .with_some("fresh", experiment.fresh.map(|fresh| text(fresh.name())))
        .with_some("published", (!experiment.published.is_empty()).then_some(Yaml::List(published)));
    with_factors(document::write(&map.done()), &experiment.factors)
}

/// A section, unless it is hidden or would be empty.
fn section(experiment: &Experiment, path: &'static str, settings: &(impl Settings + Clone)) -> Option<Yaml> {
    let is_hidden = |key: &str| is_hidden(experiment, key);
    if is_hidden(path) { None } else { settings::written(settings, path, &is_hidden).some() }
}

/// True for sections and keys that apply to nothing in this experiment: most would be refused when read.
fn is_hidden(experiment: &Experiment, key: &str) -> bool {
    let settings = &experiment.istio;
    let touches_none = || !experiment.touches_any_mode(key);
    match (key, &experiment.fleet) {
        ("topology", fleet) => fleet.as_ref().is_some_and(|fleet| fleet.topology.is_none()),
        ("load" | "proxy" | "server", fleet) => fleet.is_some(),
        ("load.protocol", _) => !is_common(experiment, key, |one| one.load.protocol),
        ("load.payload", _) if experiment.load.stream.declared => true,
        ("load.payload", _) => !is_common(experiment, key, |one| one.server.payload_bytes),
        ("load.stream", _) => !experiment.load.stream.declared,
        (key, Some(fleet)) if key.starts_with("fleet.") => fleet::is_of_topology(fleet, key),
        ("istio", _) => experiment.mesh != MeshKind::Istio,
        ("ingress", _) => !experiment.ingress.declared,
        (key, Some(_)) if key.starts_with("istio.") => !key.starts_with("istio.istiod"),
        ("istio.istiod", None) => true,
        ("istio.telemetry" | "istio.ingress" | "istio.ztunnel", None) => touches_none(),
        ("istio.sidecar-scope", None) => settings.sidecar_scope && touches_none(),
        ("istio.background-services.endpoints", None) => {
            experiment.each_combination().all(|(_, one)| one.istio.background_services.services == 0)
        }
        _ => false,
    }
}

/// True if the experiment, and not each topology, defines the value. If values differ although the key is not
/// a factor, topologies with values of their own are compared.
fn is_common<T: PartialEq>(experiment: &Experiment, key: &str, value: impl Fn(&Experiment) -> T) -> bool {
    let own = value(experiment);
    experiment.factor(key).is_some() || experiment.each_combination().all(|(_, one)| value(one) == own)
}

/// A single built-in topology without parameters is written as its name. If shapes are compared, only their
/// common parameters can have been given.
fn topology(experiment: &Experiment) -> Yaml {
    let settings = &experiment.topology;
    let is_factor = |key: &str| experiment.factor(&format!("topology.{key}")).is_some();
    let number = |key: &str, value: usize| (key.to_owned(), Yaml::Number(value as u64));
    let namespaces = number("namespaces", settings.namespaces);
    match &settings.source {
        TopologySource::Graph(graph) => match view(graph) {
            Yaml::Map(entries) => Yaml::Map([namespaces].into_iter().chain(entries).collect()),
            other => other,
        },
        TopologySource::Shape { shape, .. }
            if shape.parameters.is_empty()
                && settings.source == TopologySource::shape(shape)
                && settings.namespaces == 1
                && !experiment.factors.iter().any(|factor| factor.key.starts_with("topology.")) =>
        {
            Yaml::Text(shape.name.to_owned())
        }
        TopologySource::Shape { shape, parameters, replicas } => {
            let name = ("shape".to_owned(), Yaml::Text(shape.name.to_owned()));
            let mut entries = vec![name, namespaces, number("replicas", *replicas)];
            for parameter in shape.parameters {
                let value = parameters.get(parameter.name).unwrap_or(parameter.default);
                if !is_factor("shape") || value != parameter.default || is_factor(parameter.name) {
                    let value = match parameter.kind {
                        ParameterKind::Whole(_) => Yaml::Number(value as u64),
                        ParameterKind::Switch => Yaml::Switch(value != 0.0),
                        ParameterKind::Fraction => Yaml::Text(parameter.format(value)),
                    };
                    entries.push((parameter.name.to_owned(), value));
                }
            }
            Yaml::Map(entries)
        }
    }
}

/// Replaces the first value of each factor with the factor's list.
fn with_factors(mut text: String, factors: &[Factor]) -> String {
    for factor in factors {
        let source = Arc::new(Source { name: String::new(), text: text.clone() });
        let root = document::read(&source).expect("what was just written can be read");
        let (section, key) = split_key(&factor.key);
        let names = section.split('.').filter(|name| !name.is_empty());
        let map = names.fold(&root, |node, name| {
            &node.entries().iter().find(|entry| entry.key == name).expect("sections are written").node
        });
        let list = flow_list(&factor.values);
        match map.entries().iter().find(|entry| entry.key == key) {
            Some(entry) => text.replace_range(entry.node.place.span.clone(), &list),
            // The first value turns something off, and is not written.
            None => {
                let start = map.entries().first().map_or(0, |entry| entry.key_place.span.start);
                let indent = start - text[..start].rfind('\n').map_or(0, |newline| newline + 1);
                text.insert_str(start, &format!("{key}: {list}\n{}", " ".repeat(indent)));
            }
        }
    }
    text
}

/// Formats a flow sequence, such as `[250m, 1]`. Text that YAML could read as something else is quoted.
fn flow_list(values: &[FactorValue]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '%');
    let value = |value: &FactorValue| match value {
        FactorValue::Text(text)
            if text.is_empty() || !text.chars().all(is_plain) || text.starts_with(['-', '%']) =>
        {
            serde_json::Value::from(text.as_str()).to_string()
        }
        other => other.to_string(),
    };
    format!("[{}]", values.iter().map(value).collect::<Vec<_>>().join(", "))
}

fn published(source: &PublishedSource) -> Yaml {
    let differs = (!source.differs.is_empty()).then(|| Yaml::Text(source.differs.clone()));
    Map::default()
        .text("source", &source.source)
        .with_some("differs", differs)
        .with_some("margin", source.margin.map(|margin| Yaml::Text(format_fraction(margin))))
        .with("figures", Yaml::List(source.figures.iter().map(figure).collect()))
        .done()
}

fn figure(figure: &ReferenceFigure) -> Yaml {
    let to = match figure.value {
        ReferenceValue::Relative(_, to, _) => Some(Yaml::Text(to.name().to_owned())),
        _ => None,
    };
    let value = match figure.value {
        ReferenceValue::Throughput(rate) | ReferenceValue::ThroughputPerCpu(rate) => Yaml::rate(rate),
        ReferenceValue::Cpu(cores)
        | ReferenceValue::ReservedCpu(cores)
        | ReferenceValue::IstiodCpu(cores) => Yaml::Text(format_cores(cores)),
        ReferenceValue::Memory(_, bytes)
        | ReferenceValue::ReservedMemory(bytes)
        | ReferenceValue::IstiodMemory(bytes)
        | ReferenceValue::IstiodMemoryPerProxy(bytes) => Yaml::Text(format_size(bytes)),
        ReferenceValue::Time(_, range) => Yaml::Text(range.to_string()),
        ReferenceValue::Added(_, time) => Yaml::Text(format_duration(time)),
        ReferenceValue::Relative(.., relation) => Yaml::Text(relation.to_string()),
    };
    Map::default()
        .text("figure", figure.value.name())
        .text("mode", figure.mode.name())
        .with_some("to", to)
        .with_some("component", figure.component.clone().map(Yaml::Text))
        .with_some("rate", figure.rate.map(Yaml::rate))
        .with_some("clients", figure.clients.map(|clients| Yaml::Number(clients as u64)))
        .with_some("prompt", figure.prompt_bytes.map(|bytes| Yaml::Text(format_size(bytes))))
        .with_some("gateway-cpu", figure.gateway_cpu_cores.map(|cores| Yaml::Text(format_cores(cores))))
        .with("value", value)
        .done()
}
