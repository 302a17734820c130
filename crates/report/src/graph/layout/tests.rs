use super::*;

const NODE: Size = Size { width: 80.0, height: 30.0 };

fn graph(bands: &[usize], edges: &[(usize, usize)], label: Size) -> Graph {
    let node = |(index, band): (usize, &usize)| Node { size: NODE, band: *band, is_source: index == 0 };
    let edge = |(from, to): &(usize, usize)| Edge { from: *from, to: *to, label };
    Graph {
        nodes: bands.iter().enumerate().map(node).collect(),
        edges: edges.iter().map(edge).collect(),
        caption_height: 18.0,
    }
}

fn overlap(one: &Area, other: &Area) -> bool {
    one.left < other.left + other.width
        && other.left < one.left + one.width
        && one.top < other.top + other.height
        && other.top < one.top + one.height
}

#[test]
fn chain_is_straight() {
    let layout = layout(&graph(&[0; 4], &[(0, 1), (1, 2), (2, 3)], Size { width: 60.0, height: 32.0 }));
    assert!(layout.nodes.windows(2).all(|pair| pair[0].left < pair[1].left && pair[0].top == pair[1].top));
    let stops = layout.routes.iter().flat_map(|route| &route.stops);
    assert!(stops.clone().all(|stop| (stop.y - layout.routes[0].stops[0].y).abs() < 1e-6));
}

#[test]
fn diamond_is_symmetric_and_has_no_crossing() {
    let layout = layout(&graph(&[0; 4], &[(0, 1), (0, 2), (1, 3), (2, 3)], Size::default()));
    assert_eq!(layout.nodes[0].top, layout.nodes[3].top);
    let (upper, lower) = (layout.nodes[1].top, layout.nodes[2].top);
    assert!(upper < lower && (f64::midpoint(upper, lower) - layout.nodes[0].top).abs() < 1e-6);
}

#[test]
fn avoidable_crossings_are_avoided() {
    // Sorted by name, all edges between the second and the third layer would cross.
    let edges = [(0, 1), (0, 2), (0, 3), (1, 6), (2, 5), (3, 4)];
    let mut layered = layers::layered(&graph(&[0; 7], &edges, Size::default()));
    order::reduce_crossings(&mut layered);
    assert_eq!(order::crossings(&layered), 0);
}

#[test]
fn cycle_has_one_reversed_edge() {
    let layout = layout(&graph(&[0; 3], &[(0, 1), (1, 2), (2, 1)], Size::default()));
    let reversed: Vec<bool> = layout.routes.iter().map(|route| route.reversed).collect();
    assert_eq!(reversed, [false, false, true]);
}

#[test]
fn bands_labels_and_nodes_do_not_overlap() {
    // Three bands with calls between all of them, across several layers and backwards.
    let bands: Vec<usize> = (0..30).map(|node| node % 3).collect();
    let edges: Vec<(usize, usize)> = (1..30)
        .flat_map(|node| [(node / 2, node), (node / 3, node), (node, (node * 7) % 30)])
        .filter(|(from, to)| from != to)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let layout = layout(&graph(&bands, &edges, Size { width: 60.0, height: 32.0 }));
    let frames: Vec<Area> = layout.bands.iter().flatten().copied().collect();
    assert_eq!(frames.len(), 3);
    let labels = layout.routes.iter().filter_map(|route| route.label);
    let boxes: Vec<Area> = layout.nodes.iter().copied().chain(labels).collect();
    for areas in [&frames, &boxes] {
        for (index, one) in areas.iter().enumerate() {
            for other in &areas[index + 1..] {
                assert!(!overlap(one, other), "{one:?} {other:?}");
            }
            assert!(one.left >= 0.0 && one.top >= 0.0);
            assert!(one.left + one.width <= layout.size.width && one.top + one.height <= layout.size.height);
        }
    }
    for (node, area) in layout.nodes.iter().enumerate() {
        let frame = layout.bands[bands[node]].unwrap();
        assert!(frame.top < area.top && area.top + area.height < frame.top + frame.height);
    }
}
