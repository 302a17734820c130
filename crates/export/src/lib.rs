//! Figures as metrics, and the ways out of Meshmeter that they take while it measures.
//!
//! [`Families`] are metrics at one moment: [`LoadFigures`] and [`FleetFigures`] become families, and so do the figures of a run.
//! [`exposition::text`] is a page of them for a Prometheus that scrapes. An [`Exporter`] sends them to others: Prometheus
//! remote write in [`remote_write`], OTLP in [`otlp`]. Read [`exporter`] for how a receiver that is down, slow or refuses
//! never holds up a measurement.

mod batch;
mod client;
mod delivery;
mod destination;
mod distribution;
pub mod exporter;
pub mod exposition;
mod fleet_figures;
mod load_figures;
mod metric;
mod otlp;
mod queue;
mod remote_write;
mod retry;

pub use destination::{
    Authorities, AuthoritiesError, Destination, DestinationError, HeaderError, HistogramForm, Protocol,
    parse_header,
};
pub use distribution::{Distribution, Exponential};
pub use exporter::{Exporter, Settings};
pub use fleet_figures::{FleetFigures, add_fleet_result};
pub use load_figures::{LoadFigures, LoadPhase, ProcessFigures, SecondFigures};
pub use metric::{Families, Family, Kind, Labels, Point, Value};
