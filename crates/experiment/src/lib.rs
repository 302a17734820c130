//! What an experiment is and what its results look like: pure values, no I/O.
//!
//! Read [`mode`] for the arrangements of proxies, [`environment`] for what a run needs of the place where it runs,
//! [`schema`] for the files that it leaves behind.

pub mod environment;
pub mod mode;
pub mod schema;
pub mod units;

pub use mode::{MeshKind, Mode};
