//! Parameters of built-in topologies.

use super::shape::Shape;
use results::units::{UnitError, format_fraction, parse_fraction};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Parameter of a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Key that users type.
    pub name: &'static str,
    /// Short description.
    pub summary: &'static str,
    /// Kind of value.
    pub kind: ParameterKind,
    /// Default: the number, or 0 or 1 for a switch.
    pub default: f64,
}

/// Kind of a parameter's value.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterKind {
    /// Integer in a range.
    Whole(RangeInclusive<u32>),
    /// Fraction, 0 to 1, such as `10%`.
    Fraction,
    /// Boolean: `true` or `false`.
    Switch,
}

/// Switch: drivers run in pods that belong to the mesh.
pub(super) const CLIENT_IN_MESH: Parameter = Parameter {
    name: "client-in-mesh",
    summary: "whether clients belong to the mesh",
    kind: ParameterKind::Switch,
    default: 1.0,
};

impl Parameter {
    /// Parses a value.
    ///
    /// # Errors
    /// Returns an error if the text is not a value of this parameter.
    pub fn parse(&self, text: &str) -> Result<f64, UnitError> {
        let refused = |quantity, expected: String, example| UnitError {
            given: results::units::shortened(text),
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

    /// Formats a value in the syntax of [`parse`](Self::parse).
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
    /// Default of every parameter of the shape.
    #[must_use]
    pub fn defaults(shape: &Shape) -> Self {
        Self(shape.parameters.iter().map(|parameter| (parameter.name, parameter.default)).collect())
    }

    /// Sets a value.
    pub fn set(&mut self, parameter: &Parameter, value: f64) {
        self.0.insert(parameter.name, value);
    }

    /// Value of a parameter, if the shape has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Value of an integer parameter.
    pub(super) fn whole(&self, parameter: &Parameter) -> usize {
        self.0.get(parameter.name).copied().unwrap_or(parameter.default) as usize
    }

    /// Value of a fraction.
    pub(super) fn fraction(&self, parameter: &Parameter) -> f64 {
        self.0.get(parameter.name).copied().unwrap_or(parameter.default)
    }

    /// Value of a switch.
    pub(super) fn is_on(&self, parameter: &Parameter) -> bool {
        self.fraction(parameter) != 0.0
    }
}
