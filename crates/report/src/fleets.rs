//! Fleets of simulated proxies by cell: the same figures for the terminal and for HTML.

use crate::conditions::ConditionLabels;
use crate::drivers::interval;
use crate::format::{self, Interval, SizeUnit, TimeUnit};
use results::{Cell, Estimate, FleetChangeSummary, FleetSummary, FleetTimes, Summary};
use serde::Serialize;

/// Stages of istiod's own chain, in the order in which a change passes them, with their display names.
const STAGES: [(&str, &str); 5] = [
    ("debounce", "debounce"),
    ("push_context", "push context"),
    ("queue", "queue"),
    ("push", "push"),
    ("convergence", "istiod’s own total"),
];

/// Every cell that has a fleet.
#[derive(Clone, Debug, Serialize)]
pub struct FleetTable {
    /// Unit of all times except [`FleetRow::stages`].
    pub time_unit: &'static str,
    /// Unit of memory.
    pub memory_unit: &'static str,
    /// True if some proxies missed a configuration or a change.
    pub has_never: bool,
    /// True if some proxies lost their connection.
    pub has_outages: bool,
    /// Names of the stages of istiod's chain; empty if no istiod reported any.
    pub stages: Vec<&'static str>,
    /// One row per condition.
    pub rows: Vec<FleetRow>,
}

/// Fleet figures of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct FleetRow {
    /// Label such as `a fleet, fleet.proxies 500`.
    pub label: String,
    /// Valid trials, such as `3 of 3`.
    pub valid: String,
    /// Number of proxies in the fleet.
    pub proxies: String,
    /// Proxies that received everything.
    pub converged: Interval,
    /// Maximum number of proxies in a trial that missed something.
    pub never: u64,
    /// Time to the first complete configuration.
    pub first_configuration: Times,
    /// Time until a change arrives.
    pub convergence: Times,
    /// One row per kind of change.
    pub changes: Vec<ChangeRow>,
    /// One row per cause of lost connections.
    pub outages: Vec<ChangeRow>,
    /// Responses per proxy, all types together.
    pub pushes_per_proxy: Interval,
    /// Bytes per proxy with their unit, all types together.
    pub bytes_per_proxy: String,
    /// One row per type of response.
    pub pushes: Vec<PushRow>,
    /// CPU of all istiods in cores.
    pub istiod_cores: Interval,
    /// CPU of all istiods in seconds.
    pub istiod_cpu_s: Interval,
    /// Memory of all istiods, in the table's unit.
    pub istiod_memory: Interval,
    /// CPU of the API server and etcd in seconds.
    pub api_cpu_s: Interval,
    /// CPU of the fleet in cores.
    pub fleet_cores: Interval,
    /// Memory of the fleet, in the table's unit.
    pub fleet_memory: Interval,
    /// 99th percentile of the fleet's reading lag.
    pub lag: Interval,
    /// Mean of each stage of the table in ms.
    pub stages: Vec<Interval>,
    /// Rejected responses, and violations by kind; empty if there were none.
    pub violations: Vec<String>,
}

/// A distribution over proxies.
#[derive(Clone, Debug, Serialize)]
pub struct Times {
    /// Median.
    pub p50: Interval,
    /// 90th percentile.
    pub p90: Interval,
    /// 99th percentile.
    pub p99: Interval,
    /// Time of the last proxy.
    pub last: Interval,
}

/// Changes of one kind, or outages with one cause.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeRow {
    /// Kind of change, or cause of the outage.
    pub name: String,
    /// Number of occurrences over all trials.
    pub times: String,
    /// Number of affected proxies.
    pub proxies: String,
    /// Number of proxies never reached, over all trials.
    pub never: u64,
    /// Time until arrival, or until recovery.
    pub reached: Times,
}

/// Responses of one type.
#[derive(Clone, Debug, Serialize)]
pub struct PushRow {
    /// Type such as `cds`.
    pub name: String,
    /// Responses per proxy.
    pub count: Interval,
    /// Bytes per proxy, with their unit.
    pub bytes: String,
    /// Resources per proxy.
    pub resources: Interval,
}

impl FleetTable {
    /// `None` for a run without fleets.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let with_fleet = || summary.cells.iter().filter_map(|cell| Some((cell, cell.fleet.as_ref()?)));
        let unit = TimeUnit::for_times(with_fleet().flat_map(|(_, fleet)| shown_times_us(fleet)));
        let memories = with_fleet().filter_map(|(_, fleet)| Some(fleet.istiod_memory_bytes?.estimate));
        let memory_unit = SizeUnit::for_sizes(memories);
        let has_stage = |key: &str| with_fleet().any(|(_, fleet)| fleet.istiod_chain_ms.contains_key(key));
        let stages: Vec<_> = STAGES.into_iter().filter(|(key, _)| has_stage(key)).collect();
        let writer = RowWriter { unit, memory_unit, stages: &stages };
        let rows: Vec<FleetRow> = with_fleet()
            .map(|(cell, fleet)| writer.row(cell, fleet, labels.label(cell.conditions())))
            .collect();
        (!rows.is_empty()).then(|| Self {
            time_unit: unit.symbol(),
            memory_unit: memory_unit.symbol(),
            has_never: rows.iter().any(|row| row.never > 0),
            has_outages: rows.iter().any(|row| !row.outages.is_empty()),
            stages: stages.iter().map(|(_, name)| *name).collect(),
            rows,
        })
    }
}

fn shown_times_us(fleet: &FleetSummary) -> impl Iterator<Item = f64> + '_ {
    let all = [&fleet.first_configuration_us, &fleet.convergence_us];
    all.into_iter().flat_map(|times| [times.p50, times.p99, times.last]).flatten().map(|time| time.estimate)
}

struct RowWriter<'a> {
    unit: TimeUnit,
    memory_unit: SizeUnit,
    stages: &'a [(&'static str, &'static str)],
}

impl RowWriter<'_> {
    fn row(&self, cell: &Cell, fleet: &FleetSummary, label: String) -> FleetRow {
        let plain = |estimate: Option<Estimate>| interval(estimate, Interval::new);
        let memory = |estimate: Option<Estimate>| {
            interval(estimate, |bytes| Interval::scaled(bytes, 1.0 / self.memory_unit.bytes()))
        };
        let cores = |estimate: Option<Estimate>| interval(estimate, format::cores_interval);
        let per_proxy = |estimate: Option<Estimate>| {
            estimate.map(|all| all.map(|count| count / fleet.proxies.max(1) as f64))
        };
        let size = |estimate: Option<Estimate>| {
            estimate.map_or_else(|| format::ABSENT.to_owned(), |bytes| format::size(bytes.estimate))
        };
        let stage = |(key, _): &(&str, &str)| plain(fleet.istiod_chain_ms.get(*key).copied());
        FleetRow {
            label,
            valid: crate::table::valid_trials(cell.valid, cell.places(), cell.retakes),
            proxies: format::count(fleet.proxies),
            converged: plain(fleet.converged),
            never: fleet.never,
            first_configuration: self.times(&fleet.first_configuration_us),
            convergence: self.times(&fleet.convergence_us),
            changes: fleet.changes.iter().map(|change| self.change(change)).collect(),
            outages: fleet
                .outages
                .iter()
                .map(|outage| ChangeRow {
                    name: outage.cause.clone(),
                    times: String::new(),
                    proxies: format::count(outage.proxies),
                    never: outage.recovery_us.never,
                    reached: self.times(&outage.recovery_us),
                })
                .collect(),
            pushes_per_proxy: plain(fleet.pushes_per_proxy),
            bytes_per_proxy: size(fleet.bytes_per_proxy),
            pushes: fleet
                .pushes
                .iter()
                .map(|(name, pushes)| PushRow {
                    name: name.clone(),
                    count: plain(per_proxy(pushes.count)),
                    bytes: size(per_proxy(pushes.bytes)),
                    resources: plain(per_proxy(pushes.resources)),
                })
                .collect(),
            istiod_cores: cores(fleet.istiod_cpu_cores),
            istiod_cpu_s: plain(fleet.istiod_cpu_s),
            istiod_memory: memory(fleet.istiod_memory_bytes),
            api_cpu_s: plain(fleet.api_cpu_s),
            fleet_cores: cores(fleet.fleet_cpu_cores),
            fleet_memory: memory(fleet.fleet_memory_bytes),
            lag: interval(fleet.fleet_lag_p99_us, |lag| self.unit.interval(lag)),
            stages: self.stages.iter().map(stage).collect(),
            violations: violations(fleet),
        }
    }

    fn times(&self, times: &FleetTimes) -> Times {
        // If some proxies were never reached, the last one has no time.
        let never = times.never > 0;
        let of = |estimate: Option<Estimate>| match estimate {
            None if never => Interval { estimate: NEVER.to_owned(), range: None },
            estimate => interval(estimate, |time| self.unit.interval(time)),
        };
        Times { p50: of(times.p50), p90: of(times.p90), p99: of(times.p99), last: of(times.last) }
    }

    fn change(&self, change: &FleetChangeSummary) -> ChangeRow {
        let failed = match change.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        ChangeRow {
            name: change.kind.clone(),
            times: format!("{}{failed}", format::count(change.changes as u64)),
            proxies: format::count(change.expected),
            never: change.convergence_us.never,
            reached: self.times(&change.convergence_us),
        }
    }
}

/// Shown for a time that some proxy never reached.
const NEVER: &str = "never";

fn violations(fleet: &FleetSummary) -> Vec<String> {
    let rejected = (fleet.rejections > 0)
        .then(|| format::counted(fleet.rejections, "response rejected", "responses rejected"));
    let kinds = fleet.violations.iter().map(|(kind, count)| format!("{kind} {}", format::count(*count)));
    rejected.into_iter().chain(kinds).collect()
}
