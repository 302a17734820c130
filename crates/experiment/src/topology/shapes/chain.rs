//! `chain`: services in a row, where each calls the next.

use super::draft::{Draft, call};
use super::parameter::{CLIENT_IN_MESH, Parameter, ParameterKind};
use super::shape::Shape;

const HOPS: Parameter = Parameter {
    name: "hops",
    summary: "services in a row",
    kind: ParameterKind::Whole(1..=1000),
    default: 2.0,
};

pub(super) static CHAIN: Shape = Shape {
    name: "chain",
    summary: "services in a row, each of which calls the next",
    parameters: &[HOPS, CLIENT_IN_MESH],
    is_plain: true,
    make: |settings| {
        let mut draft = Draft::new("chain", settings);
        let hops = settings.parameters.whole(&HOPS);
        for number in 1..=hops {
            // The next service has the next ID.
            draft.plain(format!("s{number}"), if number < hops { vec![call(number)] } else { Vec::new() });
        }
        draft.driver(0, "/");
        Ok(draft.done())
    },
};
