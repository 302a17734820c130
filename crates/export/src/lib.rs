//! Figures as metrics, and their export while a measurement runs.
//!
//! [`Families`] are metrics at one moment. [`LoadFigures`], [`FleetFigures`] and the figures of a run are
//! converted to families. [`exposition::text`] renders them for a Prometheus that scrapes. An [`Exporter`]
//! pushes them to receivers: Prometheus remote write in [`remote_write`], OTLP in [`otlp`]. [`exporter`]
//! explains why a receiver that is down, slow or rejects requests never delays a measurement. [`PrometheusApi`] is the way back:
//! it queries a Prometheus.

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
mod query;
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
pub use query::PrometheusApi;
