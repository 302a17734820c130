//! Promises of benchmarks.

use std::fmt;

/// A promise, with the figures that it is checked by.
#[derive(Debug, PartialEq)]
pub struct Promise {
    pub text: String,
    pub kept: bool,
}

impl Promise {
    /// A promise about NaN is not kept.
    pub fn at_most(what: &str, figure: f64, most: f64) -> Self {
        Self { text: format!("{what}: {figure:.2}, at most {most}"), kept: figure <= most }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9} {}", if self.kept { "kept:" } else { "NOT KEPT:" }, self.text)
    }
}
