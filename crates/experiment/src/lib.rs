//! What an experiment is and what its results look like: pure values, no I/O.
//!
//! Read [`definition`] for what an experiment says, [`file`] for how it is written, [`plan`] for the trials that it
//! becomes, [`mode`] for the arrangements of proxies and [`dataplane`] for the parts that each consists of, [`topology`] for workloads, calls and drivers, [`mesh_settings`] for the switches of a mesh, [`objective`] for what is asked of the figures, [`published`] for those that stand beside them, [`environment`] for what a run needs of the place where it runs,
//! [`schema`] for the files that it leaves behind, [`units`] for quantities as text.

pub mod dataplane;
pub mod definition;
pub mod diagnostic;
pub mod environment;
pub mod file;
pub mod mesh_settings;
pub mod mode;
pub mod objective;
pub mod plan;
pub mod published;
pub mod schema;
pub mod topology;
pub mod units;

pub use definition::{Arrival, Experiment, Fresh, LoadLevels, LoadSettings, Protocol, TopologySettings};
pub use diagnostic::ExperimentError;
pub use file::{Files, NoFiles, Override};
pub use mesh_settings::MeshSettings;
pub use mode::{MeshKind, Mode};
pub use objective::{Bound, Objective, ObjectiveError, TimeFigure};
pub use plan::{Plan, PlannedTrial};
