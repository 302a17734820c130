//! Reports: terminal, HTML and the run folder.
//!
//! Read [`folder`] for the files of a run, [`terminal`] and [`html`] for the two faces of its result, [`format`] for how
//! numbers look in both. Estimates come from crate `statistics`; here they are only shown.

pub mod folder;
pub mod format;
pub mod html;
pub mod loads;
pub mod run;
pub mod svg;
pub mod table;
pub mod terminal;

pub use run::RunData;
