//! The files of results, as types. Others rely on their field names: extend, never rename (docs/method.md).

mod configuration;
mod event;
mod grpc;
mod holdings;
mod hop;
mod host;
mod load;
mod objective;
mod search;
mod size_effect;
mod summary;
mod tracing;
mod trial;

pub use configuration::ConfigurationPush;
pub use event::LoadEvent;
pub use grpc::{GRPC_STATUS_NAMES, GrpcMessages};
pub use holdings::{
    ConfigurationCounts, ConfigurationSummary, HeapSummary, ProxyConfiguration, ProxyHeap, ProxyHoldings,
};
pub use hop::{HopProof, HopProtocol};
pub use host::{ComponentVersion, Floor, Host, RefusedMode};
pub use load::{
    Bytes, GeneratorNetwork, GeneratorUsage, HistogramSummary, LOAD_SCHEMA, LoadResult, MergedPart,
    MergedResults, Pacing, PacingUsage, Rates, RequestCounts, SeriesPoint, SizeSummary, SpokenProtocol,
    Verdict, WarmupCounts,
};
pub use objective::{BoundResult, ObjectiveResult};
pub use search::{
    FoundRate, ProbeRecord, RatePoint, SEARCH_SCHEMA, SearchEvent, SearchResult, SearchVerdict,
};
pub use size_effect::{SizeEffect, SizedFigure};
pub use summary::{
    AddedLatency, Cell, CellPath, ComponentSummary, Estimate, ModeComparison, Percentiles, PublishedFigure,
    RetakeSummary, RoleTotal, SUMMARY_SCHEMA, Summary,
};
pub use tracing::{TracedProxy, TracingProof};
pub use trial::{
    ComponentUsage, LoadPoint, MachineUsage, NetworkUsage, PathProof, ProcessUsage, ProxyProof, Retake, Role,
    SchedulingUsage, ServiceProof, StreamProof, TRIAL_SCHEMA, Throttling, TopProcess, TrialOutcome,
    TrialRecord,
};
