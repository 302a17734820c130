//! The drivers of one trial: their results as that of the trial.

use super::{MergeError, merge};
use experiment::schema::{LoadResult, MergedPart, MergedResults};

/// The sum of the results of a trial's drivers; absent where none has a result. The parts are left out: a trial stores
/// them with its drivers.
///
/// # Errors
/// A result cannot be read, or two are the same.
pub fn merge_drivers(parts: Vec<MergedPart>) -> Result<Option<LoadResult>, MergeError> {
    if parts.is_empty() {
        return Ok(None);
    }
    let result = merge(parts)?;
    let merged = result.merged.map(|merged| MergedResults { parts: Vec::new(), ..merged });
    Ok(Some(LoadResult { merged, ..result }))
}
