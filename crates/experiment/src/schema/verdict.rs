//! Whether a measurement may be used.

use serde::{Deserialize, Serialize};

/// Whether a measurement may be used, and if not, why not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Its figures may enter estimates.
    pub valid: bool,
    /// The target (or the generator, see `reasons`) did not keep up with the offered rate.
    pub saturated: bool,
    /// Why it is not valid; empty where it is. Each reason opens with its kind and a colon, such as `saturated: …`.
    pub reasons: Vec<String>,
    /// What a reader should know of valid figures too, such as a service time that hides a stall.
    #[serde(default)]
    pub notes: Vec<String>,
}
