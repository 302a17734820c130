//! Parameters of built-in topologies.

use super::Shape;
use crate::units::{UnitError, format_fraction, parse_fraction};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A parameter of a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The key that users type.
    pub name: &'static str,
    /// A few words.
    pub summary: &'static str,
    /// Kind of its values.
    pub kind: ParameterKind,
    /// Value where none is given: the number, or 0 and 1 of a switch.
    pub default: f64,
}

/// Kinds of parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterKind {
    /// A whole number in a range.
    Whole(RangeInclusive<u32>),
    /// 0 to 1, as in `10%`.
    Fraction,
    /// `true` or `false`.
    Switch,
}

/// Drivers run in pods that belong to the mesh.
pub(super) const CLIENT_IN_MESH: Parameter = Parameter {
    name: "client-in-mesh",
    summary: "whether clients belong to the mesh",
    kind: ParameterKind::Switch,
    default: 1.0,
};

impl Parameter {
    /// Reads a value.
    ///
    /// # Errors
    /// The text is not a value of this parameter.
    pub fn parse(&self, text: &str) -> Result<f64, UnitError> {
        let refused = |quantity, expected: String, example| UnitError {
            given: crate::units::shortened(text),
            quantity,
            expected,
            example,
        };
        match &self.kind {
            ParameterKind::Fraction => parse_fraction(text),
            ParameterKind::Switch => match text.trim() {
                "true" | "on" => Ok(1.0),
                "false" | "off" => Ok(0.0),
                _ => Err(refused("switch", "expected `true` or `false`".into(), "true")),
            },
            ParameterKind::Whole(range) => {
                let number = text.trim().parse::<u32>().ok().filter(|number| range.contains(number));
                number.map(f64::from).ok_or_else(|| {
                    let expected = format!("expected {} to {}", range.start(), range.end());
                    refused("number that will do", expected, "4")
                })
            }
        }
    }

    /// Writes a value as [`parse`](Self::parse) reads it.
    #[must_use]
    pub fn format(&self, value: f64) -> String {
        match self.kind {
            ParameterKind::Fraction => format_fraction(value),
            ParameterKind::Switch => (value != 0.0).to_string(),
            ParameterKind::Whole(_) => value.to_string(),
        }
    }
}

/// Values of the parameters of a shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters(BTreeMap<&'static str, f64>);

impl Parameters {
    /// Every parameter of the shape with its default.
    #[must_use]
    pub fn defaults(shape: &Shape) -> Self {
        Self(shape.parameters.iter().map(|parameter| (parameter.name, parameter.default)).collect())
    }

    /// Sets a value.
    pub fn set(&mut self, parameter: &Parameter, value: f64) {
        self.0.insert(parameter.name, value);
    }

    /// The value of a parameter that the shape has.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// A whole number.
    pub(super) fn whole(&self, parameter: &Parameter) -> usize {
        self.0.get(parameter.name).copied().unwrap_or(parameter.default) as usize
    }

    /// A fraction.
    pub(super) fn fraction(&self, parameter: &Parameter) -> f64 {
        self.0.get(parameter.name).copied().unwrap_or(parameter.default)
    }

    /// A switch.
    pub(super) fn is_on(&self, parameter: &Parameter) -> bool {
        self.fraction(parameter) != 0.0
    }
}
