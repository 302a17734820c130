//! A layered layout from left to right, after Sugiyama: cycles are broken, nodes get layers, edges over several layers are
//! split into segments, the order within layers is chosen to avoid crossings, then heights are.
//!
//! Every node belongs to a band, and bands lie below each other without overlap. The label of an edge is an item of a
//! layer of its own, so that no label lies on another or on a node.

mod layers;
mod order;
mod place;

/// What is laid out.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// Ends differ, and no two edges have the same.
    pub edges: Vec<Edge>,
    /// Room above each band's first node, for a caption.
    pub caption_height: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub size: Size,
    /// From 0; bands without nodes take no room.
    pub band: usize,
    /// Whether paths begin here even where it lies on a cycle.
    pub is_source: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    /// No extent where it has no label.
    pub label: Size,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    pub width: f64,
    pub height: f64,
}

/// Where everything goes; the corner of all is (0, 0).
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub size: Size,
    /// By node. Nodes of a layer have the same width.
    pub nodes: Vec<Area>,
    /// By edge.
    pub routes: Vec<Route>,
    /// By band; absent where it has no nodes.
    pub bands: Vec<Option<Area>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// An edge from left to right: it is straight across each of its stops, and bends between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    pub stops: Vec<Stop>,
    /// Whether its arrow points to the left: it closes a cycle.
    pub reversed: bool,
    /// Where its label goes.
    pub label: Option<Area>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub left: f64,
    pub right: f64,
    pub y: f64,
}

/// Lays out a graph.
pub(super) fn layout(graph: &Graph) -> Layout {
    let mut layered = layers::layered(graph);
    order::reduce_crossings(&mut layered);
    place::place(graph, &layered)
}

/// What takes room in a layer: a node, or a segment of an edge.
#[derive(Clone, Debug)]
struct Item {
    kind: ItemKind,
    layer: usize,
    band: usize,
    width: f64,
    /// Room above the point where its edges end.
    above: f64,
    /// Room below that point.
    below: f64,
    /// Items of the layer before that are joined to it.
    before: Vec<usize>,
    /// Items of the layer after it.
    after: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ItemKind {
    Node,
    /// A segment; whether it carries the label of its edge.
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
    /// By edge: its items from left to right, nodes included.
    chains: Vec<Vec<usize>>,
    /// By edge.
    reversed: Vec<bool>,
    /// Bands from top to bottom.
    band_order: Vec<usize>,
}

#[cfg(test)]
mod tests;
