//! Registry of figures that are estimated: key in result files, unit, what spoils each, and how a trial is read for it.

use crate::clock::Clock;
use crate::component::{ComponentUsage, Role};
use crate::figure::Figure;
use crate::fleet::FleetResult;
use crate::load_point::LoadPoint;
use crate::trial::TrialRecord;
use serde::{Deserialize, Serialize};

/// Source of a metric.
#[derive(Clone, Copy)]
enum Source {
    /// In a distribution of each trial: the percentile that [`Metric::spoiled_by`] names.
    Times(Clock),
    /// In a trial.
    Trial(fn(&TrialRecord) -> Option<f64>),
    /// In a component of a trial.
    Component(fn(&TrialRecord, &ComponentUsage) -> Option<f64>),
    /// In other metrics, or in something other than a trial.
    Derived,
}

/// Unit of a metric; it is also at the end of its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Seconds until something happened.
    Seconds,
    /// Seconds of CPU.
    CpuSeconds,
    /// CPU cores.
    Cores,
    /// CPU cores per 1000 requests/s, which equal milliseconds of CPU per request.
    CoresPer1000Rps,
    /// Bytes of memory.
    Memory,
    /// Bytes of something that may be small.
    Size,
    /// Number per second.
    PerSecond,
    /// Fraction.
    Fraction,
    /// Number of things.
    Count,
}

/// Declares the metrics: key, unit, figure of verdicts that spoils it, source.
macro_rules! metrics {
    ($($(#[$doc:meta])+ $metric:ident: $key:literal, $unit:ident, $spoiled_by:ident, $source:expr;)+) => {
        /// A figure that is estimated over trials, compared, or stated in a finding.
        #[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
        pub enum Metric {
            $($(#[$doc])+ #[serde(rename = $key)] $metric,)+
        }

        impl Metric {
            /// All metrics, in the order in which they are listed.
            pub const ALL: &[Self] = &[$(Self::$metric),+];

            /// Key in result files.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self { $(Self::$metric => $key),+ }
            }

            /// Unit.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Self::$metric => Unit::$unit),+ }
            }

            /// The figure of verdicts that spoils it.
            #[must_use]
            pub fn spoiled_by(self) -> Figure {
                match self { $(Self::$metric => Figure::$spoiled_by),+ }
            }

            fn source(self) -> Source {
                use Source::{Component, Derived, Times, Trial};
                match self { $(Self::$metric => $source),+ }
            }
        }
    };
}

metrics! {
    /// Mean response time.
    ResponseTimeMeanUs: "response_time_mean_us", Microseconds, Mean, Times(Clock::ResponseTime);
    /// Median response time.
    ResponseTimeP50Us: "response_time_p50_us", Microseconds, P50, Times(Clock::ResponseTime);
    /// 75th percentile of the response time.
    ResponseTimeP75Us: "response_time_p75_us", Microseconds, P75, Times(Clock::ResponseTime);
    /// 90th percentile of the response time.
    ResponseTimeP90Us: "response_time_p90_us", Microseconds, P90, Times(Clock::ResponseTime);
    /// 95th percentile of the response time.
    ResponseTimeP95Us: "response_time_p95_us", Microseconds, P95, Times(Clock::ResponseTime);
    /// 99th percentile of the response time.
    ResponseTimeP99Us: "response_time_p99_us", Microseconds, P99, Times(Clock::ResponseTime);
    /// 99.9th percentile of the response time.
    ResponseTimeP99_9Us: "response_time_p99.9_us", Microseconds, P99_9, Times(Clock::ResponseTime);
    /// 99.99th percentile of the response time.
    ResponseTimeP99_99Us: "response_time_p99.99_us", Microseconds, P99_99, Times(Clock::ResponseTime);
    /// Maximum response time.
    ResponseTimeMaxUs: "response_time_max_us", Microseconds, Max, Times(Clock::ResponseTime);

    /// Mean service time.
    ServiceTimeMeanUs: "service_time_mean_us", Microseconds, Mean, Times(Clock::ServiceTime);
    /// Median service time.
    ServiceTimeP50Us: "service_time_p50_us", Microseconds, P50, Times(Clock::ServiceTime);
    /// 75th percentile of the service time.
    ServiceTimeP75Us: "service_time_p75_us", Microseconds, P75, Times(Clock::ServiceTime);
    /// 90th percentile of the service time.
    ServiceTimeP90Us: "service_time_p90_us", Microseconds, P90, Times(Clock::ServiceTime);
    /// 95th percentile of the service time.
    ServiceTimeP95Us: "service_time_p95_us", Microseconds, P95, Times(Clock::ServiceTime);
    /// 99th percentile of the service time.
    ServiceTimeP99Us: "service_time_p99_us", Microseconds, P99, Times(Clock::ServiceTime);
    /// 99.9th percentile of the service time.
    ServiceTimeP99_9Us: "service_time_p99.9_us", Microseconds, P99_9, Times(Clock::ServiceTime);
    /// 99.99th percentile of the service time.
    ServiceTimeP99_99Us: "service_time_p99.99_us", Microseconds, P99_99, Times(Clock::ServiceTime);
    /// Maximum service time.
    ServiceTimeMaxUs: "service_time_max_us", Microseconds, Max, Times(Clock::ServiceTime);

    /// Mean time to the first byte of a stream of events.
    FirstByteMeanUs: "first_byte_mean_us", Microseconds, Mean, Times(Clock::FirstByte);
    /// Median time to the first byte of a stream of events.
    FirstByteP50Us: "first_byte_p50_us", Microseconds, P50, Times(Clock::FirstByte);
    /// 75th percentile of the time to the first byte of a stream of events.
    FirstByteP75Us: "first_byte_p75_us", Microseconds, P75, Times(Clock::FirstByte);
    /// 90th percentile of the time to the first byte of a stream of events.
    FirstByteP90Us: "first_byte_p90_us", Microseconds, P90, Times(Clock::FirstByte);
    /// 95th percentile of the time to the first byte of a stream of events.
    FirstByteP95Us: "first_byte_p95_us", Microseconds, P95, Times(Clock::FirstByte);
    /// 99th percentile of the time to the first byte of a stream of events.
    FirstByteP99Us: "first_byte_p99_us", Microseconds, P99, Times(Clock::FirstByte);
    /// 99.9th percentile of the time to the first byte of a stream of events.
    FirstByteP99_9Us: "first_byte_p99.9_us", Microseconds, P99_9, Times(Clock::FirstByte);
    /// 99.99th percentile of the time to the first byte of a stream of events.
    FirstByteP99_99Us: "first_byte_p99.99_us", Microseconds, P99_99, Times(Clock::FirstByte);
    /// Maximum time to the first byte of a stream of events.
    FirstByteMaxUs: "first_byte_max_us", Microseconds, Max, Times(Clock::FirstByte);

    /// Mean time to the first event with content.
    FirstEventMeanUs: "first_event_mean_us", Microseconds, Mean, Times(Clock::FirstEvent);
    /// Median time to the first event with content.
    FirstEventP50Us: "first_event_p50_us", Microseconds, P50, Times(Clock::FirstEvent);
    /// 75th percentile of the time to the first event with content.
    FirstEventP75Us: "first_event_p75_us", Microseconds, P75, Times(Clock::FirstEvent);
    /// 90th percentile of the time to the first event with content.
    FirstEventP90Us: "first_event_p90_us", Microseconds, P90, Times(Clock::FirstEvent);
    /// 95th percentile of the time to the first event with content.
    FirstEventP95Us: "first_event_p95_us", Microseconds, P95, Times(Clock::FirstEvent);
    /// 99th percentile of the time to the first event with content.
    FirstEventP99Us: "first_event_p99_us", Microseconds, P99, Times(Clock::FirstEvent);
    /// 99.9th percentile of the time to the first event with content.
    FirstEventP99_9Us: "first_event_p99.9_us", Microseconds, P99_9, Times(Clock::FirstEvent);
    /// 99.99th percentile of the time to the first event with content.
    FirstEventP99_99Us: "first_event_p99.99_us", Microseconds, P99_99, Times(Clock::FirstEvent);
    /// Maximum time to the first event with content.
    FirstEventMaxUs: "first_event_max_us", Microseconds, Max, Times(Clock::FirstEvent);

    /// Mean time from one event with content to the next.
    EventGapMeanUs: "event_gap_mean_us", Microseconds, Mean, Times(Clock::EventGap);
    /// Median time from one event with content to the next.
    EventGapP50Us: "event_gap_p50_us", Microseconds, P50, Times(Clock::EventGap);
    /// 75th percentile of the time from one event with content to the next.
    EventGapP75Us: "event_gap_p75_us", Microseconds, P75, Times(Clock::EventGap);
    /// 90th percentile of the time from one event with content to the next.
    EventGapP90Us: "event_gap_p90_us", Microseconds, P90, Times(Clock::EventGap);
    /// 95th percentile of the time from one event with content to the next.
    EventGapP95Us: "event_gap_p95_us", Microseconds, P95, Times(Clock::EventGap);
    /// 99th percentile of the time from one event with content to the next.
    EventGapP99Us: "event_gap_p99_us", Microseconds, P99, Times(Clock::EventGap);
    /// 99.9th percentile of the time from one event with content to the next.
    EventGapP99_9Us: "event_gap_p99.9_us", Microseconds, P99_9, Times(Clock::EventGap);
    /// 99.99th percentile of the time from one event with content to the next.
    EventGapP99_99Us: "event_gap_p99.99_us", Microseconds, P99_99, Times(Clock::EventGap);
    /// Maximum time from one event with content to the next.
    EventGapMaxUs: "event_gap_max_us", Microseconds, Max, Times(Clock::EventGap);
    /// Events with content per second.
    EventsPerS: "events_per_s", PerSecond, Throughput, Trial(TrialRecord::events_per_s);
    /// CPU of all proxies per 1000 events with content.
    ProxiesCpuSPer1000Events: "proxies_cpu_s_per_1000_events", CpuSeconds, Cpu, Trial(|trial| {
        let events_per_s = trial.events_per_s().filter(|events| *events > 0.0)?;
        Some(trial.cpu_cores_of(Role::Proxy)? / events_per_s * 1000.0)
    });

    /// Responses per second.
    RateCompleted: "rate_completed", PerSecond, Throughput, Trial(|trial| Some(trial.result.as_ref()?.rate.completed));
    /// CPU of all proxies per 1000 requests/s.
    ProxiesCpuCoresPer1000Rps: "proxies_cpu_cores_per_1000_rps", CoresPer1000Rps, Cpu,
        Trial(|trial| trial.per_1000_rps(trial.cpu_cores_of(Role::Proxy)?));
    /// Anonymous memory of all proxies under load. Resident memory depends on which pages of the program the
    /// page cache held when the process mapped them, so equal programs may differ in it.
    ProxiesMemoryAnonymousBytes: "proxies_memory_anonymous_bytes", Size, Memory,
        Trial(|trial| trial.sum_under_load(Role::Proxy, Metric::MemoryAnonymousBytes));
    /// Size of all proxies' configuration. It depends on the deployment only, not on the fate of the requests.
    ProxiesConfigurationBytes: "proxies_configuration_bytes", Size, Memory,
        Trial(|trial| trial.sum(Role::Proxy, Metric::ConfigurationSizeBytes));
    /// From objects written to their propagation to the last proxy.
    ConfiguredLastUs: "configured_last_us", Microseconds, Memory,
        Trial(|trial| Some(trial.push.as_ref()?.in_force_s.values().copied().reduce(f64::max)? * 1e6));

    /// Mean CPU.
    CpuCores: "cpu_cores", Cores, Cpu, Component(|trial, usage| trial.result.as_ref().map(|_| usage.cpu_cores()));
    /// CPU per 1000 completed requests/s.
    CpuCoresPer1000Rps: "cpu_cores_per_1000_rps", CoresPer1000Rps, Cpu,
        Component(|trial, usage| trial.per_1000_rps(usage.cpu_cores()));
    /// Memory before the generator started: the maximum of resident memory and working set.
    MemoryBeforeLoadBytes: "memory_before_load_bytes", Memory, Memory, Component(|_, usage| bytes(usage.memory_before_load_bytes));
    /// Memory under load, at the end of the window: the maximum of resident memory and working set; absent for
    /// the kernel. The working set excludes file pages that another cgroup read first; resident memory excludes
    /// kernel buffers.
    MemoryBytes: "memory_bytes", Memory, Memory, Component(|_, usage| bytes(usage.memory_bytes()));
    /// Memory after the generator had ended.
    MemoryAfterLoadBytes: "memory_after_load_bytes", Memory, Memory, Component(|_, usage| bytes(usage.memory_after_load_bytes));
    /// Resident memory of all its processes under load, including pages of program files.
    MemoryResidentBytes: "memory_resident_bytes", Memory, Memory, Component(|_, usage| {
        bytes(Some(usage.memory_resident_bytes).filter(|bytes| *bytes > 0 && usage.role != Role::Kernel))
    });
    /// Working set under load: memory charged to its cgroup, less what the kernel could drop at once. Clusters
    /// report it per container. File pages are included only if no other cgroup had read them before.
    MemoryWorkingSetBytes: "memory_working_set_bytes", Memory, Memory, Component(|_, usage| bytes(usage.memory_working_set_bytes));
    /// Anonymous memory before the generator started.
    MemoryAnonymousBeforeLoadBytes: "memory_anonymous_before_load_bytes", Size, Memory,
        Component(|_, usage| bytes(usage.memory_anonymous_before_load_bytes));
    /// Anonymous memory under load (heaps and stacks): the cost of one more instance.
    MemoryAnonymousBytes: "memory_anonymous_bytes", Size, Memory, Component(|_, usage| bytes(usage.memory_anonymous_bytes));
    /// Anonymous memory after the generator had ended.
    MemoryAnonymousAfterLoadBytes: "memory_anonymous_after_load_bytes", Size, Memory,
        Component(|_, usage| bytes(usage.memory_anonymous_after_load_bytes));
    /// Heap in use that a proxy reported before the load.
    HeapAllocatedBeforeLoadBytes: "heap_allocated_before_load_bytes", Size, Memory,
        Component(|_, usage| bytes(Some(usage.holdings.as_ref()?.heap_before_load?.allocated_bytes)));
    /// Heap held by a proxy's allocator before the load.
    HeapBeforeLoadBytes: "heap_before_load_bytes", Size, Memory,
        Component(|_, usage| bytes(Some(usage.holdings.as_ref()?.heap_before_load?.heap_bytes)));
    /// Heap in use that a proxy reported after the load.
    HeapAllocatedAfterLoadBytes: "heap_allocated_after_load_bytes", Size, Memory,
        Component(|_, usage| bytes(Some(usage.holdings.as_ref()?.heap_after_load?.allocated_bytes)));
    /// Heap held by a proxy's allocator after the load.
    HeapAfterLoadBytes: "heap_after_load_bytes", Size, Memory,
        Component(|_, usage| bytes(Some(usage.holdings.as_ref()?.heap_after_load?.heap_bytes)));
    /// Bytes received by the pod's interface.
    NetworkBytesReceivedS: "network_bytes_received_s", PerSecond, Network,
        Component(|_, usage| usage.per_s(usage.network?.received_bytes));
    /// Bytes sent by the pod's interface.
    NetworkBytesSentS: "network_bytes_sent_s", PerSecond, Network, Component(|_, usage| usage.per_s(usage.network?.sent_bytes));
    /// Size of a proxy's configuration.
    ConfigurationSizeBytes: "configuration_size_bytes", Size, Memory,
        Component(|_, usage| bytes(Some(usage.holdings.as_ref()?.configuration?.size_bytes)));
    /// Size of a proxy's whole config dump.
    ConfigurationDumpBytes: "configuration_dump_bytes", Size, Memory,
        Component(|_, usage| bytes(Some(usage.holdings.as_ref()?.configuration?.dump_bytes)));
    /// Propagation: from the API's response to the last write until the proxy shows the resulting
    /// configuration; absent if nothing configures the proxy while it runs.
    ConfiguredInS: "configured_in_s", Seconds, Memory,
        Component(|trial, usage| trial.push.as_ref()?.in_force_s.get(&usage.name).copied());
    /// For a gateway that serves domains: propagation of one further domain, written after the load.
    FurtherDomainInS: "further_domain_in_s", Seconds, Memory, Component(|trial, usage| trial.further_domain_in_s(&usage.name));

    /// Convergence (from a change's acknowledgement to its arrival at a proxy), median.
    ConvergenceP50Us: "convergence_p50_us", Microseconds, P50, Times(Clock::Convergence);
    /// Convergence, 90th percentile.
    ConvergenceP90Us: "convergence_p90_us", Microseconds, P90, Times(Clock::Convergence);
    /// Convergence, 99th percentile.
    ConvergenceP99Us: "convergence_p99_us", Microseconds, P99, Times(Clock::Convergence);
    /// Time until the last proxy had the slowest change.
    ConvergenceLastUs: "convergence_last_us", Microseconds, Max, Times(Clock::Convergence);
    /// From the start of connecting until the last proxy had its first configuration.
    FirstConfigurationLastUs: "first_configuration_last_us", Microseconds, Max, Times(Clock::FirstConfiguration);
    /// CPU of all istiods during a fleet's measurement.
    IstiodCpuS: "istiod_cpu_s", CpuSeconds, Cpu, Trial(|trial| trial.fleet()?.of_istiods(|istiod| istiod.cpu_s));
    /// Maximum resident memory of all istiods.
    IstiodMemoryBytes: "istiod_memory_bytes", Memory, Memory, Trial(|trial| trial.fleet()?.istiod_memory_bytes());
    /// Anonymous memory of all istiods at the end of the window, as the environment observed it. Resident memory
    /// also depends on which pages of the program the page cache held.
    IstiodMemoryAnonymousBytes: "istiod_memory_anonymous_bytes", Memory, Memory, Trial(|trial| {
        let istiods = trial.components.iter().filter(|usage| usage.is_istiod());
        sum(istiods.map(|usage| bytes(usage.memory_anonymous_bytes)))
    });
    /// Bytes received per proxy of a fleet.
    BytesPerProxy: "bytes_per_proxy", Size, Network, Trial(|trial| trial.fleet()?.bytes_per_proxy());
    /// CPU of all istiods over the length of a fleet's measurement.
    IstiodCpuCores: "istiod_cpu_cores", Cores, Cpu, Trial(|trial| {
        let fleet = trial.fleet()?;
        fleet.per_s(fleet.of_istiods(|istiod| istiod.cpu_s)?)
    });
    /// CPU of all istiods until every proxy had its first configuration.
    IstiodCpuConnectingS: "istiod_cpu_connecting_s", CpuSeconds, Cpu,
        Trial(|trial| trial.fleet()?.of_istiods(|istiod| istiod.cpu_connecting_s));
    /// CPU of all istiods while changes were made.
    IstiodCpuChangingS: "istiod_cpu_changing_s", CpuSeconds, Cpu,
        Trial(|trial| trial.fleet()?.of_istiods(|istiod| istiod.cpu_changing_s));
    /// CPU of the API server and etcd.
    ApiCpuS: "api_cpu_s", CpuSeconds, Cpu, Trial(|trial| trial.fleet()?.of_api(|one| one.cpu_s));
    /// CPU of the fleet itself.
    FleetCpuCores: "fleet_cpu_cores", Cores, Cpu, Trial(|trial| {
        let fleet = trial.fleet()?;
        fleet.per_s(fleet.fleet.cpu_s)
    });
    /// Maximum resident memory of the fleet itself.
    FleetMemoryBytes: "fleet_memory_bytes", Memory, Memory, Trial(|trial| bytes(Some(trial.fleet()?.fleet.memory_peak_bytes)));
    /// Proxies with a complete configuration and every change expected of them.
    Converged: "converged", Count, P50, Trial(|trial| Some(trial.fleet()?.proxies.converged as f64));
    /// Length of a fleet's measurement.
    DurationS: "duration_s", Seconds, Cpu, Trial(|trial| Some(trial.fleet()?.duration_s));
    /// Time to write the mesh.
    WrittenS: "written_s", Seconds, Cpu, Trial(|trial| Some(trial.fleet()?.mesh.as_ref()?.written_s));
    /// Bytes received by all proxies of a fleet.
    BytesReceived: "bytes_received", Size, Network, Trial(|trial| bytes(Some(trial.fleet()?.bytes_received)));
    /// Responses per proxy of a fleet.
    PushesPerProxy: "pushes_per_proxy", Count, Network, Trial(|trial| {
        let fleet = trial.fleet()?;
        fleet.per_proxy(fleet.pushes.values().map(|pushes| pushes.count).sum::<u64>() as f64)
    });
    /// From the kernel's receipt of a response until the fleet read it, 99th percentile.
    FleetLagP99Us: "fleet_lag_p99_us", Microseconds, P99, Trial(|trial| {
        let lag = &trial.fleet()?.fleet.lag_us;
        lag.p99.filter(|_| lag.requests() > 0)
    });

    /// Fraction of failed requests and error statuses.
    Errors: "errors", Fraction, Throughput, Derived;
    /// Change of the responses per second.
    RateCompletedChange: "rate_completed_change", Fraction, Throughput, Derived;
    /// Change of the CPU of all proxies per request.
    CpuPerRequestChange: "cpu_per_request_change", Fraction, Cpu, Derived;
    /// Change of the anonymous memory of all proxies under load.
    MemoryAnonymousChange: "memory_anonymous_change", Fraction, Memory, Derived;
    /// Change of the size of all proxies' configuration.
    ConfigurationSizeChange: "configuration_size_change", Fraction, Memory, Derived;
    /// Reserved CPU.
    ReservedCpuCores: "reserved_cpu_cores", Cores, Cpu, Derived;
    /// Reserved memory.
    ReservedMemoryBytes: "reserved_memory_bytes", Memory, Memory, Derived;
    /// Busy CPU of the whole machine.
    MachineBusy: "machine_busy", Fraction, Cpu, Derived;
    /// Requests counted by proxies.
    Requests: "requests", Count, Throughput, Derived;
    /// Connections counted by proxies, which do not read the requests in them.
    Connections: "connections", Count, Throughput, Derived;
}

impl Metric {
    /// Metrics of a distribution.
    pub fn of_clock(clock: Clock) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |metric| metric.clock() == Some(clock))
    }

    /// The same figure of the times that a load is about: a percentile of the response time becomes that of the first token.
    #[must_use]
    pub fn under(self, load: &LoadPoint) -> Self {
        match self.clock() {
            Some(Clock::ResponseTime) => Clock::of_load(load).metric(self.spoiled_by()).unwrap_or(self),
            _ => self,
        }
    }

    /// Metrics of each component.
    pub fn of_components() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|metric| matches!(metric.source(), Source::Component(_)))
    }

    /// Distribution that it is a percentile of, if any.
    #[must_use]
    pub fn clock(self) -> Option<Clock> {
        match self.source() {
            Source::Times(clock) => Some(clock),
            _ => None,
        }
    }

    /// True if it is a time, in microseconds.
    #[must_use]
    pub fn is_time(self) -> bool {
        self.unit() == Unit::Microseconds
    }

    /// Value in a trial; absent if it was not measured, or falls among requests without a response or proxies
    /// never reached.
    #[must_use]
    pub fn read(self, trial: &TrialRecord) -> Option<f64> {
        match self.source() {
            Source::Times(clock) => {
                clock.of(trial).filter(|times| times.requests() > 0)?.figure(self.spoiled_by())
            }
            Source::Trial(read) => read(trial),
            Source::Component(_) | Source::Derived => None,
        }
    }

    /// Value of a component in a trial.
    #[must_use]
    pub fn read_of(self, trial: &TrialRecord, usage: &ComponentUsage) -> Option<f64> {
        match self.source() {
            Source::Component(read) => read(trial, usage),
            _ => None,
        }
    }

    /// True if a trial measured it, even if the value falls among requests without a response or proxies never
    /// reached.
    #[must_use]
    pub fn was_measured(self, trial: &TrialRecord) -> bool {
        match self.source() {
            Source::Times(clock) => clock.of(trial).is_some_and(|times| times.requests() > 0),
            _ => self.read(trial).is_some(),
        }
    }
}

fn bytes(count: Option<u64>) -> Option<f64> {
    count.map(|bytes| bytes as f64)
}

/// Absent without a value, and if one is absent: a sum over only some would be wrong.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum())
}

impl TrialRecord {
    /// Sum of a metric over the components of a role; absent if there are none, or if one lacks it.
    #[must_use]
    pub fn sum(&self, role: Role, metric: Metric) -> Option<f64> {
        let components = self.components.iter().filter(|usage| usage.role == role);
        sum(components.map(|usage| metric.read_of(self, usage)))
    }

    /// Like [`Self::sum`]; absent without a result of a load.
    #[must_use]
    pub fn sum_under_load(&self, role: Role, metric: Metric) -> Option<f64> {
        self.result.as_ref()?;
        self.sum(role, metric)
    }

    /// CPU of all components of a role.
    #[must_use]
    pub fn cpu_cores_of(&self, role: Role) -> Option<f64> {
        self.sum(role, Metric::CpuCores)
    }

    /// CPU per 1000 completed requests/s; absent if no request was completed.
    #[must_use]
    pub fn per_1000_rps(&self, cores: f64) -> Option<f64> {
        let completed = self.result.as_ref()?.rate.completed;
        (completed > 0.0).then(|| cores / completed * 1000.0)
    }
}

impl FleetResult {
    /// Maximum resident memory of all istiods that was read, or memory at the end if there is no maximum.
    #[must_use]
    pub fn istiod_memory_bytes(&self) -> Option<f64> {
        self.of_istiods(|istiod| bytes(istiod.memory_peak_bytes.or(istiod.memory_bytes)))
    }

    /// Bytes received per proxy.
    #[must_use]
    pub fn bytes_per_proxy(&self) -> Option<f64> {
        self.per_proxy(self.bytes_received as f64)
    }

    fn per_proxy(&self, count: f64) -> Option<f64> {
        (self.proxies.wanted > 0).then(|| count / self.proxies.wanted as f64)
    }

    fn per_s(&self, count: f64) -> Option<f64> {
        (self.duration_s > 0.0).then(|| count / self.duration_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_files_are_those_of_the_registry() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.key());
        }
    }

    #[test]
    fn percentiles_are_spoiled_by_their_own_figure() {
        let clocks = Clock::BOUNDED.into_iter().chain([Clock::ServiceTime]);
        for metric in clocks.flat_map(Metric::of_clock) {
            assert!(metric.key().ends_with(&format!("_{}_us", metric.spoiled_by().name())), "{metric:?}");
        }
    }
}
