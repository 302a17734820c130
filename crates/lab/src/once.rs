//! Values that are found when they are first needed, which may fail.

use crate::Result;
use std::cell::OnceCell;

pub(crate) fn once<T>(cell: &OnceCell<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(found) = cell.get() {
        return Ok(found);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}
