//! Experiment definitions and result schemas: pure values, no I/O.
//!
//! Start with [`definition`] for an experiment, [`mod@file`] for its YAML and [`plan`] for its trials.
//! [`mode`] has the modes that users name, [`dataplane`] the parts that each mode expands to, and
//! [`topology`] the workloads, calls and drivers. [`settings`] has the settings of proxies, service and
//! Istio, [`objective`] the bounds on figures, and [`published`] the published figures shown next to them.
//! [`environment`] is the interface to the environment that trials run in, [`schema`] the result files, and
//! [`units`] parsing and formatting of quantities.

pub mod dataplane;
pub mod definition;
pub mod diagnostic;
pub mod environment;
pub mod exposition;
pub mod file;
mod keys;
pub mod mode;
pub mod objective;
pub mod plan;
pub mod protocol;
pub mod published;
pub mod schema;
pub mod settings;
pub mod topology;
pub mod units;
pub mod xds;

pub use definition::{Arrival, Experiment, Fresh, LoadLevels, LoadSettings, Resolve};
pub use diagnostic::ExperimentError;
pub use file::{Files, NoFiles, Override};
pub use mode::{MeshKind, Mode};
pub use objective::{Bound, Objective, ObjectiveError, TimeFigure};
pub use plan::{Plan, PlannedTrial};
pub use protocol::Protocol;
pub use settings::istio as mesh_settings;
pub use settings::istio::MeshSettings;
pub use topology::settings::TopologySettings;
