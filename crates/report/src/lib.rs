//! Reports of a run (terminal, HTML, run directory), and results of a load in formats of other programs.
//!
//! - [`folder`] – the files of a run.
//! - [`sentences`] – the text of findings.
//! - [`terminal`] and [`html`]: the two presentations of a result.
//! - [`comparison`] – a comparison in words, on the terminal and in Markdown.
//! - [`history_file`] and [`history`] – the file of a history, and its course as text.
//! - [`watched`] – a run while it goes on, for `meshmeter view`.
//! - [`format`] – how numbers look in both.
//! - [`price`] – the answer of `meshmeter price` in words.
//! - [`graph`] – drawings of a topology.
//! - [`cells_csv`], [`components_csv`], [`drivers_csv`], [`csv`], [`hdr`], [`fortio`], [`junit`] and
//!   [`markdown`]: output for other programs.
//!
//! Estimates come from the `statistics` crate; this crate only presents them.

pub mod calibration;
pub mod cells_csv;
pub mod clocks;
pub mod comparison;
pub mod components_csv;
mod conditions;
pub mod csv;
mod csv_fields;
mod differences;
mod disturbed;
pub mod drivers;
pub mod drivers_csv;
pub mod edges;
mod fleets;
pub mod folder;
pub mod footprint;
pub mod format;
pub mod fortio;
pub mod gateways;
pub mod graph;
pub mod hdr;
pub mod history;
pub mod history_file;
pub mod html;
pub mod junit;
pub mod markdown;
mod marks;
pub mod price;
pub mod profile;
pub mod reservations;
pub mod run;
pub mod sentences;
pub mod services;
pub mod side_by_side;
mod size;
pub mod streams;
pub mod svg;
pub mod table;
mod tables;
pub mod terminal;
pub mod watched;
mod witnesses;

pub use run::RunData;
