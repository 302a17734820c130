//! Layers: breaks cycles, puts each node one layer after the last of its callers, and splits long edges.

use super::{Graph, Item, ItemKind, Layered, Size};

pub(super) fn layered(graph: &Graph) -> Layered {
    let reversed = reversed_edges(graph);
    let ends: Vec<(usize, usize)> = graph
        .edges
        .iter()
        .zip(&reversed)
        .map(|(edge, reversed)| if *reversed { (edge.to, edge.from) } else { (edge.from, edge.to) })
        .collect();
    let mut layer_of = longest_paths(graph, &ends);
    // Labels have their own layers between those of nodes.
    if graph.edges.iter().any(|edge| edge.label.width > 0.0) {
        layer_of.iter_mut().for_each(|layer| *layer *= 2);
    }
    let nodes = graph.nodes.iter().zip(&layer_of).map(|(node, layer)| Item {
        kind: ItemKind::Node,
        layer: *layer,
        band: node.band,
        width: node.size.width,
        above: node.size.height / 2.0,
        below: node.size.height / 2.0,
        before: Vec::new(),
        after: Vec::new(),
    });
    let count = layer_of.iter().max().map_or(0, |last| last + 1);
    let mut layered = Layered {
        items: nodes.collect(),
        layers: vec![Vec::new(); count],
        chains: Vec::new(),
        reversed,
        band_order: Vec::new(),
    };
    for (edge, (from, to)) in graph.edges.iter().zip(ends) {
        layered.add_chain(from, to, edge.label);
    }
    layered
}

impl Layered {
    fn add_chain(&mut self, from: usize, to: usize, label: Size) {
        let (first, last) = (self.items[from].layer, self.items[to].layer);
        let mut chain = vec![from];
        for layer in first + 1..last {
            let labelled = layer == first + 1 && label.width > 0.0;
            let label = if labelled { label } else { Size::default() };
            self.items.push(Item {
                kind: ItemKind::Segment { labelled },
                layer,
                band: self.items[to].band,
                width: label.width,
                // A label sits on top of its edge.
                above: label.height,
                below: 0.0,
                before: Vec::new(),
                after: Vec::new(),
            });
            chain.push(self.items.len() - 1);
        }
        chain.push(to);
        for pair in chain.windows(2) {
            self.items[pair[0]].after.push(pair[1]);
            self.items[pair[1]].before.push(pair[0]);
        }
        self.chains.push(chain);
    }
}

/// Edges that close a cycle, found by depth-first search from the sources.
fn reversed_edges(graph: &Graph) -> Vec<bool> {
    let mut outgoing = vec![Vec::new(); graph.nodes.len()];
    let mut is_called = vec![false; graph.nodes.len()];
    for (index, edge) in graph.edges.iter().enumerate() {
        outgoing[edge.from].push(index);
        is_called[edge.to] = true;
    }
    let mut starts: Vec<usize> = (0..graph.nodes.len()).collect();
    starts.sort_by_key(|node| (!graph.nodes[*node].is_source, is_called[*node]));
    let (mut is_open, mut is_seen) = (vec![false; graph.nodes.len()], vec![false; graph.nodes.len()]);
    let mut reversed = vec![false; graph.edges.len()];
    for start in starts {
        // Nodes on the current path, each with the number of its edges already followed. Iterative, because a
        // chain may be long.
        let mut path = if is_seen[start] { vec![] } else { vec![(start, 0)] };
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            (is_seen[node], is_open[node]) = (true, true);
            let Some(edge) = outgoing[node].get(*followed) else {
                is_open[node] = false;
                path.pop();
                continue;
            };
            *followed += 1;
            let to = graph.edges[*edge].to;
            if is_open[to] {
                reversed[*edge] = true;
            } else if !is_seen[to] {
                path.push((to, 0));
            }
        }
    }
    reversed
}

/// Layer of each node: the length of the longest path to it. Nodes without callers that are not sources are
/// placed directly before what they call.
fn longest_paths(graph: &Graph, ends: &[(usize, usize)]) -> Vec<usize> {
    let count = graph.nodes.len();
    let mut outgoing = vec![Vec::new(); count];
    let mut waiting_for = vec![0; count];
    for (from, to) in ends {
        outgoing[*from].push(*to);
        waiting_for[*to] += 1;
    }
    let is_called: Vec<bool> = waiting_for.iter().map(|callers| *callers > 0).collect();
    let mut layers = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|node| !is_called[*node]).collect();
    while let Some(node) = ready.pop() {
        for to in &outgoing[node] {
            layers[*to] = layers[*to].max(layers[node] + 1);
            waiting_for[*to] -= 1;
            if waiting_for[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    for node in (0..count).filter(|node| !is_called[*node] && !graph.nodes[*node].is_source) {
        let first_called = outgoing[node].iter().map(|to| layers[*to]).min();
        layers[node] = first_called.map_or(0, |layer| layer - 1);
    }
    layers
}
