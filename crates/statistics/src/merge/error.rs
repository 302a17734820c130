//! Why results cannot be added up.

use crate::histogram::DecodeError;
use experiment::schema::LOAD_SCHEMA;

/// Why results cannot be added up.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is none.
    #[error("there is no result to merge")]
    Nothing,
    /// Not a result, or one of a later schema.
    #[error("{name}: its schema is `{schema}`, and `{LOAD_SCHEMA}` is expected")]
    Schema {
        /// Which result.
        name: String,
        /// What it says.
        schema: String,
    },
    /// Its window is nowhere in time.
    #[error("{name}: {field} is `{value}`, which is no {expected}")]
    Window {
        /// Which result.
        name: String,
        /// Which field.
        field: &'static str,
        /// What it says.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A histogram cannot be read.
    #[error("{name}: read the histogram of {field}")]
    Histogram {
        /// Which result.
        name: String,
        /// Which field.
        field: String,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// A histogram is not of the requests that stand beside it.
    #[error("{name}: the histogram of {field} has {found} values, and {expected} are counted")]
    Count {
        /// Which result.
        name: String,
        /// Which field.
        field: String,
        /// In the histogram.
        found: u64,
        /// Beside it.
        expected: u64,
    },
    /// The same measurement is given twice.
    #[error("{one} and {other} are the same measurement: it would count twice")]
    Twice {
        /// One result.
        one: String,
        /// The other.
        other: String,
    },
}
