//! Drawings of a topology: SVG for the page of a report and for a file, Mermaid and DOT text.
//!
//! Read [`draw`] and [`Figures`] to put a drawing with figures on a page, [`fold`] for namespaces that are drawn once, and
//! `layout` for where things go: layers from left to right by the longest path from the drivers, one band per namespace.
//! All output is deterministic. There is no layout by hand and no interaction beyond tips.

mod fold;
mod layout;
mod svg;
mod text;

pub use fold::Folding;
pub use text::{dot, mermaid};

use experiment::topology::{Call, Topology, WorkloadId};
use std::collections::BTreeMap;

/// Figures on a drawing. With folded namespaces those of the copy that is drawn are shown: see [`Folding`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// By workload.
    pub workloads: BTreeMap<WorkloadId, WorkloadFigures>,
    /// By edge.
    pub calls: BTreeMap<Call, CallFigures>,
}

/// Figures of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadFigures {
    /// Short lines, such as `0.05 cores`.
    pub lines: Vec<String>,
    /// Draws the workload in the colour of warnings.
    pub emphasised: bool,
}

/// Figures of an edge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallFigures {
    /// Short lines, such as `120/s` and `p99 1.2 ms`.
    pub lines: Vec<String>,
    /// Width of the edge, from 0 (thin) to 1 (wide).
    pub weight: f64,
    /// Draws the edge in the colour of warnings.
    pub emphasised: bool,
}

/// A drawing's place in a page.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// Id of the element, unique in the page.
    pub id: &'a str,
    /// Read by screen readers.
    pub title: &'a str,
}

/// The drawing as an element of a page with the report's style sheet. It has a width of its own: its parent scrolls.
#[must_use]
pub fn draw(topology: &Topology, folding: &Folding, figures: &Figures, labels: Labels<'_>) -> String {
    svg::element(topology, folding, figures, labels)
}

/// The drawing as a file, with a style sheet for light and dark mode in it.
#[must_use]
pub fn draw_file(topology: &Topology, folding: &Folding, figures: &Figures) -> String {
    svg::file(topology, folding, figures)
}

#[cfg(test)]
mod tests;
