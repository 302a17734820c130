//! `star`: one service calls all others in parallel.

use super::draft::{Draft, at_once, call};
use super::parameter::{CLIENT_IN_MESH, Parameter, ParameterKind};
use super::shape::Shape;

const WIDTH: Parameter = Parameter {
    name: "width",
    summary: "services that the first one calls",
    kind: ParameterKind::Whole(1..=1000),
    default: 4.0,
};

pub(super) static STAR: Shape = Shape {
    name: "star",
    summary: "one service that calls all others at once",
    parameters: &[WIDTH, CLIENT_IN_MESH],
    is_plain: true,
    make: |settings| {
        let mut draft = Draft::new("star", settings);
        let width = settings.parameters.whole(&WIDTH);
        draft.plain("hub", at_once((1..=width).map(call).collect()));
        for number in 1..=width {
            draft.plain(format!("leaf-{number}"), Vec::new());
        }
        draft.driver(0, "/");
        Ok(draft.done())
    },
};
