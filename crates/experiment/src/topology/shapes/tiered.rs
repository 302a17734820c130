//! `tiered`: three tiers, A > B1,B2 > C, as in the study of fifty tenants (STUDIES: `tiered-50`).
//!
//! Pods have the study's resource requests: 700m and 500 Mi, the generator 500m and 300 Mi. In the study
//! these are also the limits; here only `server.cpu` and `client.cpu` set limits.

use super::draft::{Draft, at_once, call};
use super::parameter::{CLIENT_IN_MESH, Parameter, ParameterKind};
use super::shape::Shape;

const PARALLEL: Parameter = Parameter {
    name: "parallel",
    summary: "whether a calls b1 and b2 at once",
    kind: ParameterKind::Switch,
    default: 1.0,
};

const MIB: u64 = 1 << 20;

pub(super) static TIERED: Shape = Shape {
    name: "tiered",
    summary: "three tiers: a calls b1 and b2, each of which calls c",
    parameters: &[PARALLEL, CLIENT_IN_MESH],
    is_plain: true,
    make: |settings| {
        let mut draft = Draft::new("tiered", settings);
        let (b1, b2, c) = (1, 2, 3);
        let calls = vec![call(b1), call(b2)];
        draft.plain("a", if settings.parameters.is_on(&PARALLEL) { at_once(calls) } else { calls });
        draft.plain("b1", vec![call(c)]);
        draft.plain("b2", vec![call(c)]);
        draft.plain("c", Vec::new());
        for service in draft.services() {
            draft.reserve(service, 0.7, 500 * MIB);
        }
        let client = draft.driver(0, "/");
        draft.reserve(client, 0.5, 300 * MIB);
        Ok(draft.done())
    },
};
