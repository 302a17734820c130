//! Drivers: calls that no request causes. Callers outside the mesh, workloads that only send, calls that a service makes on its own,
//! and calls that close a circle which nothing enters.

use crate::mesh::Mesh;
use crate::scripts::Flows;
use experiment::topology::file::MAX_DRIVERS;
use std::collections::BTreeMap;

/// Reason for a driver.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Reason {
    /// No proxy identifies the caller.
    Outside,
    /// The caller receives no requests.
    Sender,
    /// The caller sends more than belongs to its requests.
    OnItsOwn,
    /// The call closes a circle.
    Circle,
}

/// Edges that drivers make, by index.
pub(crate) type Driven = BTreeMap<usize, Reason>;

/// Chooses the edges that drivers make. With `break_circles`, no circle is left; otherwise those that nothing enters are broken,
/// since their requests would never begin.
pub(crate) fn choose(mesh: &Mesh, flows: &Flows, break_circles: bool) -> Driven {
    let mut driven = Driven::new();
    for (index, edge) in mesh.edges.iter().enumerate() {
        let reason = match edge.from {
            None => Reason::Outside,
            Some(from) if flows.arriving[from] <= 0.0 => Reason::Sender,
            Some(_) if flows.per_request(edge).is_none() => Reason::OnItsOwn,
            Some(_) => continue,
        };
        driven.insert(index, reason);
    }
    let mut search = Search { mesh, flows, state: vec![State::New; mesh.nodes.len()], circles: Vec::new() };
    let entries: Vec<usize> = driven.keys().map(|edge| mesh.edges[*edge].to).collect();
    let skip = |edge: usize| driven.contains_key(&edge);
    entries.into_iter().for_each(|node| search.from(node, &skip));
    if !break_circles {
        search.circles.clear();
    }
    let mut others: Vec<usize> = (0..mesh.nodes.len()).filter(|node| flows.arriving[*node] > 0.0).collect();
    others.sort_by(|one, other| flows.arriving[*other].total_cmp(&flows.arriving[*one]));
    others.into_iter().for_each(|node| search.from(node, &skip));
    let circles = search.circles;
    driven.extend(circles.into_iter().map(|edge| (edge, Reason::Circle)));
    driven
}

/// The drivers with the highest rates that a file can have, and the others.
pub(crate) fn limited(mesh: &Mesh, driven: &Driven) -> (Vec<usize>, Vec<usize>) {
    let mut edges: Vec<usize> = driven.keys().copied().collect();
    edges.sort_by(|one, other| mesh.edges[*other].rate.total_cmp(&mesh.edges[*one].rate));
    let others = edges.split_off(edges.len().min(MAX_DRIVERS));
    edges.sort_unstable();
    (edges, others)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    New,
    Open,
    Done,
}

/// Depth-first search for edges back to a node that leads to them; iterative, since chains may be long.
struct Search<'a> {
    mesh: &'a Mesh,
    flows: &'a Flows,
    state: Vec<State>,
    circles: Vec<usize>,
}

impl Search<'_> {
    fn from(&mut self, node: usize, skip: &dyn Fn(usize) -> bool) {
        if self.state[node] != State::New {
            return;
        }
        self.state[node] = State::Open;
        let mut path = vec![(node, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(edge) = self.flows.out_of[*node].get(*next).copied() else {
                self.state[*node] = State::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = self.mesh.edges[edge].to;
            match self.state[to] {
                _ if skip(edge) => {}
                State::New => {
                    self.state[to] = State::Open;
                    path.push((to, 0));
                }
                State::Open => self.circles.push(edge),
                State::Done => {}
            }
        }
    }
}
