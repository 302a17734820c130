//! What an experiment is and what its results look like: pure values, no I/O.
//!
//! Read [`definition`] for an experiment and [`mod@file`] for its text, [`plan`] for its trials. [`mode`] has the modes that
//! users name, [`dataplane`] the parts that each expands to, and [`topology`] workloads, calls and drivers. [`settings`] has
//! the switches of proxies, service and Istio, [`objective`] bounds on figures, and [`published`] figures to show beside
//! them. [`environment`] is the interface to the place where a run happens, [`schema`] the result files, and [`units`]
//! quantities as text.

pub mod dataplane;
pub mod definition;
pub mod diagnostic;
pub mod environment;
pub mod file;
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
