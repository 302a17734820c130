//! A layered layout from left to right, after Sugiyama. Cycles are broken, nodes are assigned to layers, and
//! edges across several layers are split into segments. The order within layers is chosen to avoid crossings,
//! and the heights follow from it.
//!
//! Every node belongs to a band, and bands are stacked without overlap. The label of an edge is an item in
//! its own layer, so that no label overlaps another one or a node.

mod layers;
mod order;
mod place;

/// Input of the layout.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// No self-loops, and no two edges between the same nodes.
    pub edges: Vec<Edge>,
    /// Space above each band's first node, for a caption.
    pub caption_height: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub size: Size,
    /// Numbered from 0; bands without nodes take no space.
    pub band: usize,
    /// True if paths begin here, even if the node is on a cycle.
    pub is_source: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    /// Zero size if the edge has no label.
    pub label: Size,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    pub width: f64,
    pub height: f64,
}

/// Output of the layout; the top left corner is (0, 0).
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub size: Size,
    /// Area of each node. Nodes of a layer have the same width.
    pub nodes: Vec<Area>,
    /// Route of each edge.
    pub routes: Vec<Route>,
    /// Area of each band; `None` if it has no nodes.
    pub bands: Vec<Option<Area>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// An edge from left to right: straight across each of its stops, and curved between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    pub stops: Vec<Stop>,
    /// True if the arrow points to the left, because the edge closes a cycle.
    pub reversed: bool,
    /// Area of the label.
    pub label: Option<Area>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub left: f64,
    pub right: f64,
    pub y: f64,
}

pub(super) fn layout(graph: &Graph) -> Layout {
    let mut layered = layers::layered(graph);
    order::reduce_crossings(&mut layered);
    place::place(graph, &layered)
}

/// An item that takes space in a layer: a node, or a segment of an edge.
#[derive(Clone, Debug)]
struct Item {
    kind: ItemKind,
    layer: usize,
    band: usize,
    width: f64,
    /// Space above the point where its edges end.
    above: f64,
    /// Space below that point.
    below: f64,
    /// Connected items of the previous layer.
    before: Vec<usize>,
    /// Connected items of the next layer.
    after: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ItemKind {
    Node,
    /// A segment of an edge; `labelled` if it carries the edge's label.
    Segment {
        labelled: bool,
    },
}

/// Items by layer; the first items are the nodes.
#[derive(Debug)]
struct Layered {
    items: Vec<Item>,
    /// Items of each layer from top to bottom.
    layers: Vec<Vec<usize>>,
    /// The items of each edge from left to right, including the nodes.
    chains: Vec<Vec<usize>>,
    /// True for each edge that is reversed.
    reversed: Vec<bool>,
    /// Bands from top to bottom.
    band_order: Vec<usize>,
}

#[cfg(test)]
mod tests;
