//! Reports: terminal, HTML and the run folder; and a load's result in the forms of other programs.
//!
//! Read [`folder`] for the files of a run, [`sentences`] for what is said of its findings, [`terminal`] and [`html`] for the two faces of its result, [`format`] for how
//! numbers look in both, [`graph`] for drawings of a topology, [`cells_csv`], [`components_csv`], [`drivers_csv`], [`csv`], [`hdr`], [`fortio`], [`junit`] and
//! [`markdown`] for what other programs read. Estimates come from crate `statistics`; here they are only shown.

pub mod calibration;
pub mod cells_csv;
pub mod clocks;
pub mod components_csv;
mod conditions;
pub mod csv;
mod csv_fields;
pub mod drivers;
pub mod drivers_csv;
pub mod edges;
mod fleets;
pub mod folder;
pub mod format;
pub mod fortio;
pub mod gateways;
pub mod graph;
pub mod hdr;
pub mod holdings;
pub mod html;
pub mod junit;
pub mod markdown;
mod marks;
pub mod reservations;
pub mod run;
pub mod sentences;
pub mod services;
pub mod side_by_side;
pub mod svg;
pub mod table;
pub mod terminal;
mod witnesses;

pub use run::RunData;
