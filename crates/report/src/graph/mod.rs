//! Drawings of a topology: SVG for a report page or a file, Mermaid and DOT text.
//!
//! [`draw`] and [`Figures`] put a drawing with figures on a page. [`fold`] draws identical namespaces once.
//! `layout` computes positions: layers from left to right by the longest path from the drivers, one band per
//! namespace. All output is deterministic. There is no manual layout, and no interaction except tooltips.

mod fold;
mod layout;
mod svg;
mod text;

pub use fold::Folding;
pub use text::{dot, mermaid};

use experiment::topology::{Call, Topology, WorkloadId};
use std::collections::BTreeMap;

/// Figures on a drawing. With folded namespaces, the figures of the drawn copy are shown: see [`Folding`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Figures by workload.
    pub workloads: BTreeMap<WorkloadId, WorkloadFigures>,
    /// Figures by edge.
    pub calls: BTreeMap<Call, CallFigures>,
}

/// Figures of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadFigures {
    /// Short lines, such as `0.05 cores`.
    pub lines: Vec<String>,
    /// Draws the workload in the warning colour.
    pub emphasised: bool,
}

/// Figures of an edge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallFigures {
    /// Short lines, such as `120/s` and `p99 1.2 ms`.
    pub lines: Vec<String>,
    /// Width of the edge, from 0 (thin) to 1 (wide).
    pub weight: f64,
    /// Draws the edge in the warning colour.
    pub emphasised: bool,
}

/// Id and title of a drawing within a page.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// Id of the element, unique in the page.
    pub id: &'a str,
    /// Title for screen readers.
    pub title: &'a str,
}

/// The drawing as an element for a page with the report's style sheet. Its width is fixed, so its parent must
/// scroll.
#[must_use]
pub fn draw(topology: &Topology, folding: &Folding, figures: &Figures, labels: Labels<'_>) -> String {
    svg::element(topology, folding, figures, labels)
}

/// The drawing as a file with its own style sheet for light and dark mode.
#[must_use]
pub fn draw_file(topology: &Topology, folding: &Folding, figures: &Figures) -> String {
    svg::file(topology, folding, figures)
}

#[cfg(test)]
mod tests;
