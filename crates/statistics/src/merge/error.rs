//! Errors of merging results.

use results::{DecodeError, LOAD_SCHEMA};

/// Reason why results cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There are no results.
    #[error("there is no result to merge")]
    Nothing,
    /// Not a load result, or one with a newer schema.
    #[error("{name}: its schema is `{schema}`, and `{LOAD_SCHEMA}` is expected")]
    Schema {
        /// Name of the result.
        name: String,
        /// Schema found in the result.
        schema: String,
    },
    /// The measurement window is not a valid period of time.
    #[error("{name}: {field} is `{value}`, which is not a {expected}")]
    Window {
        /// Name of the result.
        name: String,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: String,
        /// What the field should contain.
        expected: &'static str,
    },
    /// A histogram cannot be decoded.
    #[error("{name}: read the histogram of {field}")]
    Histogram {
        /// Name of the result.
        name: String,
        /// Name of the field.
        field: String,
        /// Cause of the failure.
        #[source]
        source: DecodeError,
    },
    /// A histogram does not match the request count beside it.
    #[error("{name}: the histogram of {field} has {found} values, and {expected} are counted")]
    Count {
        /// Name of the result.
        name: String,
        /// Name of the field.
        field: String,
        /// Number of values in the histogram.
        found: u64,
        /// Number that the result states.
        expected: u64,
    },
    /// The same measurement is given twice.
    #[error("{one} and {other} are the same measurement: it would count twice")]
    Twice {
        /// Name of the first result.
        one: String,
        /// Name of the second result.
        other: String,
    },
}
