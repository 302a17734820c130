//! Limits of topology files.

/// Maximum size of a topology file, bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// Maximum number of services, databases and clients in a file.
pub const MAX_WORKLOADS: usize = 10_000;
/// Maximum number of pods in a topology.
pub const MAX_PODS: usize = 100_000;
/// Maximum number of pods per workload.
pub const MAX_REPLICAS: usize = 1_000;
/// Maximum size of a request or response, bytes.
pub const MAX_BODY_BYTES: u64 = 1 << 30;
/// Maximum nesting depth of parallel branches and sequences in a script.
pub const MAX_NESTING: usize = 12;
/// Maximum number of drivers in a file.
pub const MAX_DRIVERS: usize = 1_000;
/// Maximum length of an endpoint's path.
pub const MAX_PATH_LENGTH: usize = 200;
/// Maximum number of retries of a call.
pub(super) const MAX_RETRIES: usize = 100;
/// Maximum number of documents of a query.
pub(super) const MAX_DOCUMENTS: usize = 10_000;
