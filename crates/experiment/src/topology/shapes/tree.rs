//! `tree`: every service calls its children in parallel; names as in isotope's trees.

use super::draft::{Draft, MAX_SERVICES, at_once, call};
use super::parameter::{CLIENT_IN_MESH, Parameter, ParameterKind};
use super::shape::Shape;

const DEPTH: Parameter = Parameter {
    name: "depth",
    summary: "levels of services",
    kind: ParameterKind::Whole(1..=12),
    default: 3.0,
};

const FAN_OUT: Parameter = Parameter {
    name: "fan-out",
    summary: "services that each service above the last level calls",
    kind: ParameterKind::Whole(1..=1000),
    default: 2.0,
};

pub(super) static TREE: Shape = Shape {
    name: "tree",
    summary: "a tree of services: each calls its children at once",
    parameters: &[DEPTH, FAN_OUT, CLIENT_IN_MESH],
    is_plain: true,
    make: |settings| {
        let (depth, fan_out) = (settings.parameters.whole(&DEPTH), settings.parameters.whole(&FAN_OUT));
        let level_sizes = (0..depth as u32).map(|level| fan_out.saturating_pow(level));
        let services = level_sizes.fold(0, usize::saturating_add);
        if services > MAX_SERVICES {
            return Err(format!(
                "a tree of depth {depth} and fan-out {fan_out} has more than {MAX_SERVICES} services"
            ));
        }
        let mut draft = Draft::new("tree", settings);
        let mut names = vec!["svc-0".to_owned()];
        // Level order: the children of the service at position p start at p × fan-out + 1.
        for position in 0..services {
            let first = position * fan_out + 1;
            let children = if first < services { first..first + fan_out } else { 0..0 };
            let name = names[position].clone();
            names.extend((0..children.len()).map(|child| format!("{name}-{child}")));
            draft.plain(name, at_once(children.map(call).collect()));
        }
        draft.driver(0, "/");
        Ok(draft.done())
    },
};
