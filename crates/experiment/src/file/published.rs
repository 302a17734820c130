//! The list `published`: published figures.

use super::keys::published::{FIGURES, Figure, MAX_CLIENTS};
use crate::diagnostic::ExperimentError;
use crate::published::{PublishedSource, ReferenceFigure, ReferenceValue, Relation, RelativeQuantity};
use crate::yaml::section::{Field, Section};
use results::units::{
    UnitError, parse_change, parse_cores, parse_duration, parse_fraction, parse_rate, parse_size,
};
use results::{Mode, ResourceGroup};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const MAX_TEXT_CHARACTERS: usize = 500;
const MAX_FIGURES: usize = 1000;

/// Reads the list.
pub(super) fn sources(root: &Section<'_>) -> Result<Vec<PublishedSource>> {
    let Some(field) = root.field("published")? else { return Ok(Vec::new()) };
    field.sections("published")?.iter().map(source).collect()
}

fn source(section: &Section<'_>) -> Result<PublishedSource> {
    let figures = section.required("figures", "figures: [{figure: cpu, mode: sidecar, value: 0.2}]")?;
    let list = figures.sections("published.figures")?;
    if list.len() > MAX_FIGURES {
        return Err(figures.place().error("too many figures", format!("expected at most {MAX_FIGURES}")));
    }
    Ok(PublishedSource {
        source: text(&section.required("source", "source: Istio 1.24")?)?,
        differs: section.field("differs")?.map_or(Ok(String::new()), |field| text(&field))?,
        margin: section.field("margin")?.map(|field| margin(&field)).transpose()?,
        figures: list.iter().map(figure).collect::<Result<_>>()?,
    })
}

fn margin(field: &Field<'_>) -> Result<f64> {
    let margin = field.quantity(parse_fraction)?;
    if margin > 0.0 {
        return Ok(margin);
    }
    Err(field
        .place()
        .error(format!("`{}` is not valid", field.path), "expected more than 0, such as 20%".to_owned()))
}

fn text(field: &Field<'_>) -> Result<String> {
    let words = field.text()?.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() || words.chars().count() > MAX_TEXT_CHARACTERS {
        return Err(field.place().error(
            format!("`{}` is not valid", field.path),
            format!("expected some words, at most {MAX_TEXT_CHARACTERS} characters"),
        ));
    }
    Ok(words)
}

fn figure(section: &Section<'_>) -> Result<ReferenceFigure> {
    let mode = mode(&section.required("mode", "mode: sidecar")?)?;
    let value = value(section, mode)?;
    if value.is_of_fleet() != (mode == Mode::ControlPlane) {
        return Err(section.required("figure", "figure: cpu")?.place().error(
            format!("`{}` is not a figure of mode `{mode}`", value.name()),
            "expected `istiod-cpu`, `istiod-memory` and `istiod-memory-per-proxy` with `control-plane`, and no others",
        ));
    }
    let component = section.field("component")?;
    if let Some(field) = component.as_ref().filter(|_| !value.is_resource()) {
        return Err(field.key_place.error(
            format!("`{}` here is of no component", value.name()),
            "expected with CPU, memory and `throughput-per-cpu` alone, and without `to`",
        ));
    }
    if value.is_reserved() {
        let groups = [ResourceGroup::App, ResourceGroup::Generators, ResourceGroup::Mesh];
        section
            .required("component", "component: app")?
            .choice(&groups.map(|group| (group.name(), group)))?;
    }
    Ok(ReferenceFigure {
        mode,
        rate: section.field("rate")?.map(|field| field.quantity(parse_rate)).transpose()?,
        prompt_bytes: section.field("prompt")?.map(|field| field.quantity(parse_size)).transpose()?,
        gateway_cpu_cores: section
            .field("gateway-cpu")?
            .map(|field| field.quantity(parse_cores))
            .transpose()?,
        clients: section.field("clients")?.map(|field| field.whole(1..=MAX_CLIENTS)).transpose()?,
        component: component.map(|field| text(&field)).transpose()?,
        value,
    })
}

fn value(section: &Section<'_>, mode: Mode) -> Result<ReferenceValue> {
    let kind = section.required("figure", "figure: cpu")?.choice(&FIGURES)?;
    let value = section.required("value", "value: 0.2")?;
    if let Some(to) = section.field("to")? {
        let quantity = match kind {
            Figure::Throughput => RelativeQuantity::Throughput,
            Figure::Cpu => RelativeQuantity::Cpu,
            _ => {
                return Err(to
                    .key_place
                    .error("this figure is not relative", "expected with `throughput` and `cpu` alone"));
            }
        };
        return Ok(ReferenceValue::Relative(quantity, other_mode(&to, mode)?, value.quantity(relation)?));
    }
    Ok(match kind {
        Figure::Cpu => ReferenceValue::Cpu(value.quantity(parse_cores)?),
        Figure::Memory(kind) => ReferenceValue::Memory(kind, value.quantity(parse_size)?),
        Figure::Time(metric) => ReferenceValue::Time(metric, value.quantity(str::parse)?),
        Figure::ReservedCpu => ReferenceValue::ReservedCpu(value.quantity(parse_cores)?),
        Figure::ReservedMemory => ReferenceValue::ReservedMemory(value.quantity(parse_size)?),
        Figure::IstiodCpu => ReferenceValue::IstiodCpu(value.quantity(parse_cores)?),
        Figure::IstiodMemory => ReferenceValue::IstiodMemory(value.quantity(parse_size)?),
        Figure::IstiodMemoryPerProxy => ReferenceValue::IstiodMemoryPerProxy(value.quantity(parse_size)?),
        Figure::Added(percentile) => ReferenceValue::Added(percentile, value.quantity(parse_duration)?),
        Figure::Throughput => ReferenceValue::Throughput(value.quantity(parse_rate)?),
        Figure::ThroughputPerCpu => ReferenceValue::ThroughputPerCpu(value.quantity(parse_rate)?),
    })
}

fn mode(field: &Field<'_>) -> Result<Mode> {
    field.choice(&Mode::ALL.map(|mode| (mode.name(), mode)))
}

/// Mode that a figure is relative to: a different mode with the same server.
fn other_mode(field: &Field<'_>, mode: Mode) -> Result<Mode> {
    let to = self::mode(field)?;
    if to == mode || !to.compares_with(mode) {
        return Err(field.place().error(
            format!("`{mode}` is not compared with `{to}`"),
            "expected another mode that leads to the same server, both egress modes or neither",
        ));
    }
    Ok(to)
}

/// Parses a percentage or a word.
fn relation(text: &str) -> std::result::Result<Relation, UnitError> {
    match Relation::WORDS.iter().find(|(word, _)| *word == text.trim()) {
        Some((_, relation)) => Ok(*relation),
        None => parse_change(text).map(Relation::Change).map_err(|error| UnitError {
            expected: format!("{}, or alike, higher or lower", error.expected),
            ..error
        }),
    }
}
