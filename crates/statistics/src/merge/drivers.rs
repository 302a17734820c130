//! The drivers of one trial: their results as that of the trial.

use super::{MergeError, merge};
use experiment::schema::{DriverRecord, LoadResult, MergedPart};

/// The result of a trial and its drivers, as a trial stores them. The result of a single driver becomes the trial's; those
/// of several stay theirs, and the trial has their sum: that of the drivers that have a result.
///
/// # Errors
/// If the results of several cannot be added up.
pub fn merge_drivers(
    mut drivers: Vec<DriverRecord>,
) -> Result<(Option<LoadResult>, Vec<DriverRecord>), MergeError> {
    if let [driver] = drivers.as_mut_slice() {
        return Ok((driver.result.take(), drivers));
    }
    let part = |driver: &DriverRecord| {
        Some(MergedPart { name: driver.name.clone(), result: driver.result.clone()? })
    };
    let parts: Vec<MergedPart> = drivers.iter().filter_map(part).collect();
    if parts.is_empty() {
        return Ok((None, drivers));
    }
    // The parts are the drivers' own results, which stand beside it.
    Ok((Some(LoadResult { merged: None, ..merge(parts)? }), drivers))
}
