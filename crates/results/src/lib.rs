//! Results: what a run saw, as values without I/O. Imports no other crate of the workspace.
//!
//! Start with [`TrialRecord`], a line of `trials.jsonl`, and [`Summary`]. The field names of the types are a public
//! contract: extend, never rename (docs/result-files.md). [`LatencyHistogram`] is the distribution behind each
//! [`HistogramSummary`], [`foreign`] reads results of other load generators, [`Mode`] has the names of modes, [`units`]
//! parsing and formatting of quantities, and [`exposition`] Prometheus' text format.

mod added_latency;
mod arrivals;
mod backlog;
mod build;
mod calibration;
mod cell;
mod clock;
mod comparison;
mod comparison_self_test;
mod component;
mod component_summary;
mod configuration;
mod connection;
mod control_plane_model;
mod control_plane_size;
mod corner_difference;
mod distribution;
mod disturbed;
mod driver;
mod edge;
mod estimate;
mod estimates;
mod event;
mod expected_statuses;
mod export;
pub mod exposition;
mod factor;
mod factor_difference;
mod factor_effect;
mod figure;
pub mod finding;
mod finding_verdict;
mod finished_runs;
mod fleet;
mod fleet_progress;
mod fleet_summary;
mod footprint;
pub mod foreign;
mod gateway;
mod grpc;
mod histogram;
mod history;
mod history_course;
mod hop;
mod host;
mod json;
mod json_part;
mod kubernetes_quantity;
mod latency_histogram;
mod load;
mod load_point;
mod machine;
mod metric;
mod mode;
mod node;
mod objective;
mod path;
mod pauses;
mod plain_text;
mod price;
mod proxy;
mod published;
pub mod random;
mod reservation;
mod run_progress;
mod scaling;
mod search;
mod service;
mod sessions;
mod shell;
mod size;
mod stream_events;
mod stream_summary;
mod summary;
mod tracing;
mod trial;
pub mod units;
mod url;
mod verdict;

pub use added_latency::{AddedLatency, AddedVerdicts};
pub use arrivals::{Arrivals, BurstArrivals, ClientStage, RecordingFormat, ReplayArrivals};
pub use backlog::{Backlog, BacklogSlice};
pub use build::Build;
pub use calibration::{
    CALIBRATION_SCHEMA, CalibratedDifference, CalibratedFigure, CalibratedMachine, CalibratedSpread,
    Calibration, ModeCalibration, Resolution,
};
pub use cell::{Cell, SpoiledTrials};
pub use clock::Clock;
pub use comparison::{
    COMPARISON_SCHEMA, ComparedArm, ComparedFigure, Comparison, ComparisonCourse, ComparisonEnd,
    ComparisonVerdict, FigureCourse, FigureLook, FigureVerdict, InconclusiveReason, MarginSource,
};
pub use comparison_self_test::{
    COMPARISON_SELF_TEST_SCHEMA, ComparisonSelfTest, CountedShare, InjectedEffect, SelfTestSeries,
};
pub use component::{ComponentUsage, NetworkUsage, ProcessUsage, Role, SchedulingUsage, Throttling};
pub use component_summary::{ComponentSummary, RoleTotal};
pub use configuration::{ConfigurationPush, FurtherDomain};
pub use connection::{ConnectionSettings, IdleCloses};
pub use control_plane_model::{
    ChangeCosts, ControlPlaneCosts, ControlPlaneModel, CostLaw, CostResidual, CostTerm,
};
pub use control_plane_size::{
    AskedChange, CONTROL_PLANE_SIZE_SCHEMA, ControlPlaneAnswer, ControlPlaneNote, ControlPlaneNoteKind,
    ControlPlaneQuestion, ControlPlaneSize, IstiodCount,
};
pub use corner_difference::CornerDifference;
pub use distribution::{AbsentPercentile, DistributionPoint, RequestDistribution};
pub use disturbed::{AcceptedNoise, DisturbedFigure, DisturbedFigures, DisturbedTrials};
pub use driver::{DriverObjective, DriverRecord, DriverSummary, DriverView};
pub use edge::{EdgeRecord, EdgeSummary};
pub use estimate::{CensoredPercentiles, Estimate, Percentiles};
pub use estimates::Estimates;
pub use event::{LoadEvent, SecondDetail};
pub use expected_statuses::{ExpectedStatuses, FIRST_ERROR_STATUS, InvalidStatus, StatusPattern};
pub use export::ExportRecord;
pub use factor::{
    BACKGROUND_SERVICES, CellKey, Conditions, FactorValue, Factors, OwnedCellKey, factor_texts,
    is_of_components, short_names, with_factors,
};
pub use factor_difference::FactorDifference;
pub use factor_effect::FactorEffect;
pub use figure::{Figure, Figures};
pub use finding::{Finding, FindingKind, StatedFinding};
pub use finding_verdict::FindingVerdict;
pub use finished_runs::{BetweenRuns, FinishedRuns, HistoryUse, Modes};
pub use fleet::{
    ControlPlaneFigures, FLEET_SCHEMA, FleetChange, FleetEvent, FleetMesh, FleetOfIstiod, FleetOutage,
    FleetPhase, FleetProxies, FleetPushes, FleetResult, FleetSecond, FleetUsage, FleetVerdict, FleetWitness,
    IDLE_PHASE, ReportedHistogram,
};
pub use fleet_progress::{FleetAnswer, FleetAsk, FleetProgress, Happening};
pub use fleet_summary::{
    FleetChangeSummary, FleetComponent, FleetOutageSummary, FleetPushSummary, FleetSummary, FleetTimes,
};
pub use footprint::{
    ConfigurationCounts, ConfigurationSummary, HeapSummary, ProxyConfiguration, ProxyFootprint, ProxyHeap,
};
pub use gateway::{
    CellRates, GatewayCounts, GatewayDuration, GatewayPercentiles, GatewayRecord, GatewaySummary, TrialRates,
};
pub use grpc::{GRPC_STATUS_NAMES, GrpcMessages};
pub use histogram::{HistogramSummary, SizeSummary};
pub use history::{HISTORY_SCHEMA, HistoryFigure, HistoryRun, MAX_LABEL_CHARACTERS, RUN_SOURCE};
pub use history_course::{
    CoursePoint, CourseSegment, HISTORY_COURSE_SCHEMA, HistoryChange, HistoryCourse, HistoryGroup,
    SeriesCourse,
};
pub use hop::{HopProof, HopProtocol};
pub use host::{
    ClusterPlace, ComponentImage, ComponentVersion, Floor, Host, Resumption, RunPacing, UnavailableMode,
};
pub use json_part::json_part;
pub use kubernetes_quantity::parse_kubernetes_quantity;
pub use latency_histogram::{
    DecodeError, EncodedNanoseconds, LatencyHistogram, NanosecondEncoder, PercentileStep, RecordedValue, rank,
};
pub use load::{
    Bytes, GeneratorNetwork, GeneratorUsage, KindResult, LOAD_SCHEMA, LoadResult, MAX_COUNT, MergedPart,
    MergedResults, Pacing, PacingUsage, Rates, RequestCounts, SeriesPoint, SlowRequests, SpinPauses,
    SpokenProtocol, UrlResult, WarmupCounts,
};
pub use load_point::{LoadPoint, StreamLoad};
pub use machine::{MachineUsage, TopProcess};
pub use metric::{Metric, Unit};
pub use mode::Mode;
pub use node::NodeUsage;
pub use objective::{BoundResult, ObjectiveResult};
pub use path::{
    CellPath, EdgeProof, FilterProbe, FilterProof, PathProof, ProxyProof, ServiceProof, StreamProof,
};
pub use pauses::{CpuPauses, LongPauses, Pauses};
pub use plain_text::{is_acting, plain_text};
pub use price::{
    Basis, BasisKind, EntryLatency, ModelCheck, ModelError, NODE_PROXY_NAMESPACE, PRICE_SCHEMA, PriceChange,
    PriceResult, PricedCall, PricedEntry, PricedMode, PricedNamespace, WhatIfPrices,
};
pub use proxy::{ProxyBuild, ProxySetup};
pub use published::PublishedFigure;
pub use reservation::{GroupReservation, ReservationSummary, ResourceGroup};
pub use run_progress::{ComponentSecond, ComponentsSecond, GeneratorSecond, PROGRESS_SCHEMA, TrialUnderWay};
pub use scaling::{
    LackOfFit, MeasuredRange, Scaling, ScalingLaw, ScalingParameters, ScalingResidual,
    UNIVERSAL_SCALABILITY_LAW,
};
pub use search::{
    FoundRate, ProbeRecord, RatePoint, SEARCH_SCHEMA, SearchEvent, SearchResult, SearchVerdict,
};
pub use service::{ServiceRecord, ServiceSummary};
pub use sessions::{SessionCounts, SessionKindResult, SessionResults};
pub use shell::shell_word;
pub use size::{
    BindingResource, Capacity, CapacityBasis, Prices, ReplicaCount, SIZE_SCHEMA, SizeAnswer, SizeMachine,
    SizeMeasurement, SizeNote, SizeNoteKind, SizeOption, SizePlan, SizeQuestion, SizeResult, SizeRun,
    WithoutOne,
};
pub use stream_events::StreamEvents;
pub use stream_summary::{AddedStreamTimes, StreamSummary};
pub use summary::{ModeComparison, RetakeSummary, SUMMARY_SCHEMA, Summary};
pub use tracing::{TracedProxy, TracingProof};
pub use trial::{DeploymentUse, Retake, TRIAL_SCHEMA, TrialOutcome, TrialRecord};
pub use url::{
    hide_credentials, percent_decoded, percent_encode, percent_encode_except, split_credentials,
    split_scheme, without_credentials,
};
pub use verdict::{SpoiledFigures, Verdict};
