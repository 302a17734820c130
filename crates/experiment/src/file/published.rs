//! The list `published`: figures of others.

use super::section::{Field, Section};
use crate::Mode;
use crate::diagnostic::ExperimentError;
use crate::published::{PublishedPercentile, PublishedSource, ReferenceFigure, ReferenceValue};
use crate::units::{parse_cores, parse_duration, parse_rate, parse_size};
use PublishedPercentile::{P50, P90, P99};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const LONGEST_TEXT: usize = 500;
const MOST_FIGURES: usize = 1000;

/// A kind of figure.
#[derive(Clone, Copy)]
enum Figure {
    Cpu,
    Memory,
    ResponseTime(PublishedPercentile),
    Added(PublishedPercentile),
}

const FIGURES: [(&str, Figure); 8] = [
    ("cpu", Figure::Cpu),
    ("memory", Figure::Memory),
    ("p50", Figure::ResponseTime(P50)),
    ("p90", Figure::ResponseTime(P90)),
    ("p99", Figure::ResponseTime(P99)),
    ("added-p50", Figure::Added(P50)),
    ("added-p90", Figure::Added(P90)),
    ("added-p99", Figure::Added(P99)),
];

/// Reads the list.
pub(super) fn sources(root: &Section<'_>) -> Result<Vec<PublishedSource>> {
    let Some(field) = root.field("published")? else { return Ok(Vec::new()) };
    field.sections("published")?.iter().map(source).collect()
}

fn source(section: &Section<'_>) -> Result<PublishedSource> {
    let figures = section.required("figures", "figures: [{figure: cpu, mode: sidecar, value: 0.2}]")?;
    let list = figures.sections("published.figures")?;
    if list.len() > MOST_FIGURES {
        return Err(figures.place().error("too many figures", format!("expected at most {MOST_FIGURES}")));
    }
    Ok(PublishedSource {
        source: text(&section.required("source", "source: Istio 1.24")?)?,
        differs: section.field("differs")?.map_or(Ok(String::new()), |field| text(&field))?,
        figures: list.iter().map(figure).collect::<Result<_>>()?,
    })
}

fn text(field: &Field<'_>) -> Result<String> {
    let words = field.text()?.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() || words.chars().count() > LONGEST_TEXT {
        return Err(field.place().error(
            format!("`{}` will not do", field.path),
            format!("expected some words, at most {LONGEST_TEXT} characters"),
        ));
    }
    Ok(words)
}

fn figure(section: &Section<'_>) -> Result<ReferenceFigure> {
    let kind = section.required("figure", "figure: cpu")?.choice(&FIGURES)?;
    let value = section.required("value", "value: 0.2")?;
    let value = match kind {
        Figure::Cpu => ReferenceValue::Cpu(value.quantity(parse_cores)?),
        Figure::Memory => ReferenceValue::Memory(value.quantity(parse_size)?),
        Figure::ResponseTime(percentile) => {
            ReferenceValue::ResponseTime(percentile, value.quantity(parse_duration)?)
        }
        Figure::Added(percentile) => ReferenceValue::Added(percentile, value.quantity(parse_duration)?),
    };
    let component = section.field("component")?;
    if let Some(field) = component.as_ref().filter(|_| !value.is_resource()) {
        return Err(field
            .key_place
            .error("a response time is of no component", "expected with `cpu` and `memory` alone"));
    }
    Ok(ReferenceFigure {
        mode: section
            .required("mode", "mode: sidecar")?
            .choice(&Mode::ALL.map(|mode| (mode.name(), mode)))?,
        rate: section.field("rate")?.map(|field| field.quantity(parse_rate)).transpose()?,
        component: component.map(|field| text(&field)).transpose()?,
        value,
    })
}
