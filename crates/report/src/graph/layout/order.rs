//! Order within layers: bands stay together, and items move to the mean position of the items that they are
//! connected to.

use super::Layered;

/// Sweeps over all layers; the best order found is used.
const SWEEPS: usize = 12;

pub(super) fn reduce_crossings(layered: &mut Layered) {
    layered.band_order = band_order(layered);
    let mut rank = vec![0; layered.band_order.len()];
    for (place, band) in layered.band_order.iter().enumerate() {
        rank[*band] = place;
    }
    initial_order(layered, &rank);
    let mut best = (crossings(layered), layered.layers.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let forward = sweep % 2 == 0;
        let count = layered.layers.len();
        for step in 1..count {
            order_layer(layered, if forward { step } else { count - 1 - step }, forward, &rank);
        }
        let found = crossings(layered);
        if found < best.0 {
            best = (found, layered.layers.clone());
        }
    }
    layered.layers = best.1;
}

/// Orders bands so that connected bands are close together.
fn band_order(layered: &Layered) -> Vec<usize> {
    let bands = layered.items.iter().map(|item| item.band + 1).max().unwrap_or(0);
    let mut joined: Vec<(usize, usize)> = layered
        .chains
        .iter()
        .map(|chain| (layered.items[chain[0]].band, layered.items[chain[chain.len() - 1]].band))
        .filter(|(one, other)| one != other)
        .collect();
    joined.sort_unstable();
    joined.dedup();
    let span = |order: &[usize]| -> usize {
        let mut place = vec![0; bands];
        order.iter().enumerate().for_each(|(index, band)| place[*band] = index);
        joined.iter().map(|(one, other)| place[*one].abs_diff(place[*other])).sum()
    };
    let mut order: Vec<usize> = (0..bands).collect();
    let mut best = (span(&order), order.clone());
    for _ in 0..SWEEPS {
        let mut sums = vec![(0.0, 0.0); bands];
        order.iter().enumerate().for_each(|(place, band)| sums[*band] = (place as f64, 1.0));
        let place: Vec<f64> = sums.iter().map(|(place, _)| *place).collect();
        for (one, other) in &joined {
            sums[*one] = (sums[*one].0 + place[*other], sums[*one].1 + 1.0);
            sums[*other] = (sums[*other].0 + place[*one], sums[*other].1 + 1.0);
        }
        order.sort_by(|one, other| {
            (sums[*one].0 / sums[*one].1).total_cmp(&(sums[*other].0 / sums[*other].1))
        });
        let found = span(&order);
        if found < best.0 {
            best = (found, order.clone());
        }
    }
    best.1
}

/// Orders items by depth-first search from the first layer, so that trees have no crossings.
fn initial_order(layered: &mut Layered, rank: &[usize]) {
    let mut is_seen = vec![false; layered.items.len()];
    let mut starts: Vec<usize> = (0..layered.items.len()).collect();
    starts.sort_by_key(|item| layered.items[*item].layer);
    for start in starts {
        let mut waiting = vec![start];
        while let Some(item) = waiting.pop() {
            if std::mem::replace(&mut is_seen[item], true) {
                continue;
            }
            layered.layers[layered.items[item].layer].push(item);
            waiting.extend(layered.items[item].after.iter().rev());
        }
    }
    let items = &layered.items;
    for layer in &mut layered.layers {
        layer.sort_by_key(|item| rank[items[*item].band]);
    }
}

/// Sorts a layer by the mean position of each item's neighbours in the adjacent layer.
fn order_layer(layered: &mut Layered, layer: usize, forward: bool, rank: &[usize]) {
    let neighbours = if forward { layer - 1 } else { layer + 1 };
    let mut position = vec![0.0; layered.items.len()];
    for (index, item) in layered.layers[neighbours].iter().enumerate() {
        position[*item] = index as f64;
    }
    let ratio = layered.layers[neighbours].len() as f64 / layered.layers[layer].len().max(1) as f64;
    let mut keyed: Vec<(usize, f64, usize)> = Vec::new();
    for (index, item) in layered.layers[layer].iter().enumerate() {
        let joined = if forward { &layered.items[*item].before } else { &layered.items[*item].after };
        let mean = if joined.is_empty() {
            index as f64 * ratio
        } else {
            joined.iter().map(|other| position[*other]).sum::<f64>() / joined.len() as f64
        };
        keyed.push((rank[layered.items[*item].band], mean, *item));
    }
    keyed.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    layered.layers[layer] = keyed.into_iter().map(|(.., item)| item).collect();
}

/// Number of crossings between adjacent layers.
pub(super) fn crossings(layered: &Layered) -> usize {
    let mut position = vec![0; layered.items.len()];
    for layer in &layered.layers {
        layer.iter().enumerate().for_each(|(index, item)| position[*item] = index);
    }
    let between = |pair: &[Vec<usize>]| {
        // Edges sorted by their left ends: each crosses those before it that end further down.
        let mut ends_at = vec![0; pair[1].len() + 1];
        let (mut count, mut total) = (0, 0);
        for item in &pair[0] {
            let mut ends: Vec<usize> = layered.items[*item].after.iter().map(|to| position[*to]).collect();
            ends.sort_unstable();
            count += ends.iter().map(|end| total - sum_to(&ends_at, *end)).sum::<usize>();
            ends.iter().for_each(|end| add(&mut ends_at, *end));
            total += ends.len();
        }
        count
    };
    layered.layers.windows(2).map(between).sum()
}

/// Increments a position of a Fenwick tree.
fn add(tree: &mut [usize], position: usize) {
    let mut index = position + 1;
    while index < tree.len() {
        tree[index] += 1;
        index += index & index.wrapping_neg();
    }
}

/// Sum of a Fenwick tree over positions up to and including `position`.
fn sum_to(tree: &[usize], position: usize) -> usize {
    let (mut index, mut sum) = (position + 1, 0);
    while index > 0 {
        sum += tree[index];
        index -= index & index.wrapping_neg();
    }
    sum
}
