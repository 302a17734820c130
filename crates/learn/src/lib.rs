//! Topologies from a mesh's own telemetry.
//!
//! Pure: saved answers, traces and objects in, a topology with the source of each figure out. [`prometheus`] reads answers into
//! [`Telemetry`], [`kiali`] its graph, and [`traces`] spans; [`learn`] merges what several proxies report of a call, derives scripts and drivers, and
//! checks the result. [`fit`] chooses distributions for histograms, [`Objects`] have replicas and resources. [`Provenance`] says
//! where each figure comes from. Queries are sent by the command, not here.

mod checks;
mod dialect;
mod draft;
mod drivers;
pub mod fit;
mod histogram;
pub mod kiali;
mod labels;
mod mesh;
mod model;
mod names;
mod objects;
mod parties;
pub mod prometheus;
mod provenance;
mod records;
mod scripts;
mod telemetry;
pub mod traces;

pub use checks::WARNINGS;
pub use histogram::Histogram;
pub use labels::Anonymiser;
pub use model::{LearnError, Learned, Options, learn};
pub use objects::{Objects, ObjectsError};
pub use parties::TooMuch;
pub use provenance::{
    DriverRecord, EdgeRecord, Figure, Finding, Provenance, SIDECAR_CPU_REQUEST, SIDECAR_MEMORY_REQUEST,
    ServiceRecord, SidecarUsage, Source,
};
pub use telemetry::Telemetry;

/// Clusters of Envoy that stand for any destination, or for none.
const NO_HOSTS: [&str; 4] =
    ["PassthroughCluster", "BlackHoleCluster", "InboundPassthroughCluster", "InboundPassthroughClusterIpv4"];
/// Maximum length of a cause, characters.
const MAX_CAUSE_CHARACTERS: usize = 160;

/// True for the status of a response that the server answered with an error, or of none (0).
fn is_error_status(code: &str) -> bool {
    code == "0" || (code.len() == 3 && code.starts_with('5'))
}

/// True for the statuses of gRPC that are errors of the server (grpc.io, "Status codes"): unknown, deadline exceeded, resource
/// exhausted, unimplemented, internal, unavailable, data loss.
fn is_grpc_error(status: u8) -> bool {
    matches!(status, 2 | 4 | 8 | 12..=15)
}

/// Cause of damaged JSON: at most a line, whatever the input has.
fn one_line(error: &serde_json::Error) -> String {
    results::units::shortened_to(&error.to_string(), MAX_CAUSE_CHARACTERS)
}
