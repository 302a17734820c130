//! `random`: a random acyclic graph. The same parameters always give the same graph.

use super::draft::{Draft, MAX_SERVICES, call};
use super::parameter::{CLIENT_IN_MESH, Parameter, ParameterKind};
use super::shape::Shape;
use crate::topology::WorkloadId;
use results::random::SplitMix64;
use std::collections::BTreeSet;

const SERVICES: Parameter = Parameter {
    name: "services",
    summary: "number of services",
    kind: ParameterKind::Whole(1..=MAX_SERVICES as u32),
    default: 10.0,
};

const DENSITY: Parameter = Parameter {
    name: "density",
    summary: "fraction of the calls that a graph without cycles may have, beyond those that connect it",
    kind: ParameterKind::Fraction,
    default: 0.1,
};

const SEED: Parameter = Parameter {
    name: "seed",
    summary: "draws the graph",
    kind: ParameterKind::Whole(0..=u32::MAX),
    default: 1.0,
};

/// Maximum number of calls in a topology.
const MAX_CALLS: usize = 50_000;

pub(super) static RANDOM: Shape = Shape {
    name: "random",
    summary: "a random graph of services without cycles, each reached from the first",
    parameters: &[SERVICES, DENSITY, SEED, CLIENT_IN_MESH],
    is_plain: true,
    make: |settings| {
        let services = settings.parameters.whole(&SERVICES);
        let further = (services * services.saturating_sub(1) / 2).saturating_sub(services.saturating_sub(1));
        let further = (further as f64 * settings.parameters.fraction(&DENSITY)).round() as usize;
        if further + services > MAX_CALLS {
            return Err(format!("the graph has more than {MAX_CALLS} calls"));
        }
        let mut random = SplitMix64::new(settings.parameters.whole(&SEED) as u64);
        let mut below = |bound: usize| random.below(bound as u64) as usize;
        // Calls go from lower to higher IDs: first one to each service, then the others.
        let mut calls: BTreeSet<(WorkloadId, WorkloadId)> = (1..services).map(|to| (below(to), to)).collect();
        let count = calls.len() + further;
        while calls.len() < count {
            let (one, other) = (below(services), below(services));
            if one != other {
                calls.insert((one.min(other), one.max(other)));
            }
        }
        let mut draft = Draft::new("random", settings);
        for number in 0..services {
            draft.plain(format!("s{number}"), Vec::new());
        }
        calls.into_iter().for_each(|(from, to)| draft.push_step(from, call(to)));
        draft.driver(0, "/");
        let topology = draft.done();
        topology.expected_of_all().map_err(|endless| format!("{endless}: expected a lower density"))?;
        Ok(topology)
    },
};
