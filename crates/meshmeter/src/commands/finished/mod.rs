//! Finished measurements: read from their directories and files (`subject.rs`), and compared (`compare.rs`).

pub(super) mod compare;
pub(super) mod subject;
