//! Coordinates: layers become columns. Within each column, items are placed as close to their neighbours as
//! the minimum distances allow.

use super::{Area, Graph, Item, ItemKind, Layered, Layout, Route, Size, Stop};

/// Minimum distance between two nodes of a column.
const NODE_DISTANCE: f64 = 16.0;
/// Minimum distance between other items of a column.
const SEGMENT_DISTANCE: f64 = 9.0;
/// Minimum distance between two columns.
const COLUMN_DISTANCE: f64 = 22.0;
/// Distance between a band's edge and its contents.
const BAND_PADDING: f64 = 12.0;
/// Distance between two bands.
const BAND_DISTANCE: f64 = 18.0;
const SWEEPS: usize = 10;
/// Weight of segments: straight edges matter more between segments than between nodes.
const SEGMENT_WEIGHT: f64 = 4.0;

pub(super) fn place(graph: &Graph, layered: &Layered) -> Layout {
    let mut centres = vec![0.0; layered.items.len()];
    let mut layout = Layout { bands: vec![None; layered.band_order.len()], ..Layout::default() };
    let columns = columns(layered);
    let is_framed = graph.caption_height > 0.0;
    let padding = if is_framed { BAND_PADDING } else { 0.0 };
    let mut bottom = 0.0;
    for band in &layered.band_order {
        let own: Vec<Vec<usize>> = layered
            .layers
            .iter()
            .map(|layer| layer.iter().copied().filter(|item| layered.items[*item].band == *band).collect())
            .collect();
        if own.iter().all(Vec::is_empty) {
            continue;
        }
        let top = if bottom > 0.0 { bottom + BAND_DISTANCE } else { 0.0 };
        let height = place_band(layered, &own, &mut centres, top + graph.caption_height + padding);
        bottom = top + graph.caption_height + height + 2.0 * padding;
        layout.bands[*band] = frame(layered, &own, &columns, padding).map(|(left, right)| Area {
            left,
            top,
            width: right - left,
            height: bottom - top,
        });
    }
    let last = columns.last().map_or(0.0, |(left, width)| left + width);
    layout.size = Size { width: last + padding, height: bottom };
    layout.nodes = (0..graph.nodes.len())
        .map(|node| {
            let (item, (left, width)) = (&layered.items[node], columns[layered.items[node].layer]);
            Area { left, top: centres[node] - item.above, width, height: item.above + item.below }
        })
        .collect();
    layout.routes = routes(layered, &columns, &centres, &layout.nodes);
    if is_framed {
        layout.shift(BAND_PADDING);
    }
    layout
}

impl Layout {
    /// Moves everything to the right, to make room for the frames of the first column.
    fn shift(&mut self, by: f64) {
        self.size.width += by;
        let labels = self.routes.iter_mut().filter_map(|route| route.label.as_mut());
        for area in self.nodes.iter_mut().chain(self.bands.iter_mut().flatten()).chain(labels) {
            area.left += by;
        }
        for stop in self.routes.iter_mut().flat_map(|route| &mut route.stops) {
            stop.left += by;
            stop.right += by;
        }
    }
}

/// Left edge and width of each column.
fn columns(layered: &Layered) -> Vec<(f64, f64)> {
    let mut left = 0.0;
    let mut columns = Vec::new();
    for (index, layer) in layered.layers.iter().enumerate() {
        let width = layer.iter().map(|item| layered.items[*item].width).fold(0.0, f64::max);
        if index > 0 {
            // Many parallel edges need space to bend.
            let edges: usize = layer.iter().map(|item| layered.items[*item].before.len()).sum();
            left += COLUMN_DISTANCE + (edges as f64).sqrt() * 5.0;
        }
        columns.push((left, width));
        left += width;
    }
    columns
}

/// Left and right edge of a band's nodes; `None` if it has none.
fn frame(layered: &Layered, own: &[Vec<usize>], columns: &[(f64, f64)], padding: f64) -> Option<(f64, f64)> {
    let has_node = |layer: &Vec<usize>| layer.iter().any(|item| layered.items[*item].kind == ItemKind::Node);
    let first = own.iter().position(has_node)?;
    let last = own.iter().rposition(has_node)?;
    Some((columns[first].0 - padding, columns[last].0 + columns[last].1 + padding))
}

/// Chooses the centres of a band's items and returns its height.
fn place_band(layered: &Layered, own: &[Vec<usize>], centres: &mut [f64], top: f64) -> f64 {
    let gaps: Vec<Vec<f64>> = own
        .iter()
        .map(|layer| layer.windows(2).map(|pair| distance(layered, pair[0], pair[1])).collect())
        .collect();
    for (layer, gaps) in own.iter().zip(&gaps) {
        let mut centre = 0.0;
        for (index, item) in layer.iter().enumerate() {
            centre += if index > 0 { gaps[index - 1] } else { 0.0 };
            centres[*item] = centre;
        }
    }
    for sweep in 0..SWEEPS {
        let (uses_before, uses_after) =
            (sweep % 2 == 0 || sweep + 2 > SWEEPS, sweep % 2 == 1 || sweep + 2 > SWEEPS);
        for step in 0..own.len() {
            let layer = if sweep % 2 == 0 { step } else { own.len() - 1 - step };
            let band = own[layer].first().map_or(0, |item| layered.items[*item].band);
            let wanted: Vec<(f64, f64)> = own[layer]
                .iter()
                .map(|item| wanted(layered, *item, band, centres, (uses_before, uses_after)))
                .collect();
            for (item, centre) in own[layer].iter().zip(nearest(&wanted, &gaps[layer])) {
                centres[*item] = centre;
            }
        }
    }
    let items = || own.iter().flatten().copied();
    let top_of = |item: usize| centres[item] - layered.items[item].above;
    let bottom_of = |item: usize| centres[item] + layered.items[item].below;
    let highest = items().map(top_of).fold(f64::INFINITY, f64::min);
    let lowest = items().map(bottom_of).fold(f64::NEG_INFINITY, f64::max);
    items().for_each(|item| centres[item] += top - highest);
    lowest - highest
}

fn distance(layered: &Layered, upper: usize, lower: usize) -> f64 {
    let (upper, lower) = (&layered.items[upper], &layered.items[lower]);
    let gap = if upper.kind == ItemKind::Node && lower.kind == ItemKind::Node {
        NODE_DISTANCE
    } else {
        SEGMENT_DISTANCE
    };
    upper.below + gap + lower.above
}

/// The preferred centre of an item, and its weight.
fn wanted(
    layered: &Layered,
    item: usize,
    band: usize,
    centres: &[f64],
    (before, after): (bool, bool),
) -> (f64, f64) {
    let Item { before: callers, after: callees, kind, .. } = &layered.items[item];
    let (mut sum, mut weight) = (0.0, 0.0);
    let joined = callers.iter().filter(|_| before).chain(callees.iter().filter(|_| after));
    for other in joined.filter(|other| layered.items[**other].band == band) {
        let is_straight = *kind != ItemKind::Node && layered.items[*other].kind != ItemKind::Node;
        let pull = if is_straight { SEGMENT_WEIGHT } else { 1.0 };
        sum += pull * centres[*other];
        weight += pull;
    }
    if weight == 0.0 { (centres[item], 0.1) } else { (sum / weight, weight) }
}

/// Centres with at least these gaps, and the least weighted squared distance from the preferred ones. This is
/// isotonic regression: neighbours that would violate the order are pooled.
fn nearest(wanted: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    let mut offset = 0.0;
    let offsets: Vec<f64> = std::iter::once(0.0)
        .chain(gaps.iter().map(|gap| {
            offset += gap;
            offset
        }))
        .collect();
    // Weighted sum, weight and size of each pool.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for ((centre, weight), offset) in wanted.iter().zip(&offsets) {
        let mut pool = ((centre - offset) * weight, *weight, 1);
        while let Some(last) = pools.pop_if(|last| last.0 / last.1 >= pool.0 / pool.1) {
            pool = (pool.0 + last.0, pool.1 + last.1, pool.2 + last.2);
        }
        pools.push(pool);
    }
    let levels = pools.into_iter().flat_map(|(sum, weight, count)| std::iter::repeat_n(sum / weight, count));
    levels.zip(offsets).map(|(level, offset)| level + offset).collect()
}

fn routes(layered: &Layered, columns: &[(f64, f64)], centres: &[f64], nodes: &[Area]) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for (chain, reversed) in layered.chains.iter().zip(&layered.reversed) {
        let mut route = Route { reversed: *reversed, ..Route::default() };
        for item in chain {
            let Item { layer, kind, above, .. } = layered.items[*item];
            let ((left, width), y) = (columns[layer], centres[*item]);
            if kind == (ItemKind::Segment { labelled: true }) {
                route.label = Some(Area { left, top: y - above, width, height: above });
            }
            route.stops.push(Stop { left, right: left + width, y });
        }
        routes.push(route);
    }
    spread_ends(layered, nodes, &mut routes);
    routes
}

/// Spreads the ends of a node's edges along its side, in the order of their targets.
fn spread_ends(layered: &Layered, nodes: &[Area], routes: &mut [Route]) {
    for is_start in [true, false] {
        let mut by_node: Vec<Vec<(f64, usize)>> = vec![Vec::new(); nodes.len()];
        for (index, chain) in layered.chains.iter().enumerate() {
            let stops = &routes[index].stops;
            let (node, next) =
                if is_start { (chain[0], 1) } else { (chain[chain.len() - 1], stops.len() - 2) };
            by_node[node].push((stops[next].y, index));
        }
        for (area, mut ends) in nodes.iter().zip(by_node) {
            ends.sort_by(|one, other| one.0.total_cmp(&other.0));
            let step = (area.height * 0.6 / ends.len() as f64).min(12.0);
            for (place, (_, index)) in ends.iter().enumerate() {
                let shift = (place as f64 - (ends.len() - 1) as f64 / 2.0) * step;
                let stops = &mut routes[*index].stops;
                let stop = if is_start { 0 } else { stops.len() - 1 };
                stops[stop].y = area.top + area.height / 2.0 + shift;
            }
        }
    }
}
