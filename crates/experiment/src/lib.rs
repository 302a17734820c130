//! Experiment definitions: what is asked of a run, as values without I/O. What a run saw is in the crate `results`.
//!
//! Start with [`definition`] for an experiment, [`mod@file`] for its YAML and [`plan`] for its trials.
//! [`MeshKind`] has the modes of each mesh, [`dataplane`] the parts that a mode expands to, and
//! [`topology`] the workloads, calls and drivers, [`traffic`] the kinds of requests of a load. [`settings`] has
//! the settings of proxies, service and Istio, [`objective`] the bounds on figures, and [`published`] the
//! published figures shown next to them. [`environment`] is the interface to the environment that trials run in.

pub mod dataplane;
pub mod definition;
pub mod diagnostic;
pub mod environment;
pub mod file;
mod keys;
mod mesh_kind;
pub mod objective;
pub mod plan;
pub mod protocol;
pub mod published;
mod secrets;
pub mod settings;
pub mod topology;
mod touch;
pub mod traffic;
pub mod xds;
mod yaml;

pub use definition::{Arrival, Experiment, Fresh, HeadlineFigure, LoadLevels, LoadSettings, Resolve};
pub use diagnostic::ExperimentError;
pub use file::{Files, NoFiles, Override};
pub use mesh_kind::MeshKind;
pub use objective::{Bound, Objective, ObjectiveError};
pub use plan::{Plan, PlannedTrial};
pub use protocol::Protocol;
pub use settings::istio as mesh_settings;
pub use settings::istio::MeshSettings;
pub use topology::settings::TopologySettings;
