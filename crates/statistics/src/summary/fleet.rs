//! A fleet of simulated proxies over the trials of a cell.

use super::estimates::{estimate, percentiles_alone};
use super::tables::{Subject, Tables};
use crate::fleet::{self, of_kind};
use crate::trials::usable;
use experiment::xds::ResourceType;
use results::{
    CellKey, ComponentUsage, Estimate, Estimates, Figure, FleetChangeSummary, FleetComponent,
    FleetOutageSummary, FleetPushSummary, FleetPushes, FleetResult, FleetSummary, FleetTimes,
    HistogramSummary, Metric, Role, TrialRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// The fleet of a cell; `None` if no trial has a fleet result.
pub(super) fn fleet(cell: CellKey<'_>, trials: &[&TrialRecord], tables: &Tables<'_>) -> Option<FleetSummary> {
    let all: Vec<&FleetResult> = trials.iter().filter_map(|trial| trial.fleet()).collect();
    let proxies = all.iter().map(|fleet| fleet.proxies.wanted).max()?;
    let of_trials = OfTrials { trials };
    let table = |metric| tables.mean(Subject::Path, metric, cell);
    let alone = |metric: Metric| {
        estimate(usable(trials, metric.spoiled_by()).into_iter().filter_map(|trial| metric.read(trial)))
    };
    let mut estimates = Estimates::read(ALONE, alone);
    for metric in POOLED {
        estimates.set(metric, table(metric));
    }
    // Not filtered by usability: even a late fleet shows how late it was.
    let lag = estimate(trials.iter().filter_map(|trial| Metric::FleetLagP99Us.read(trial)));
    estimates.set(Metric::FleetLagP99Us, lag);
    let mut convergence = of_trials.times(|fleet| Some(fleet.convergence_us.clone()));
    convergence.p50 = table(Metric::ConvergenceP50Us);
    convergence.p90 = table(Metric::ConvergenceP90Us);
    convergence.p99 = table(Metric::ConvergenceP99Us);
    convergence.last = table(Metric::ConvergenceLastUs);
    let mut first_configuration = of_trials.times(|fleet| Some(fleet.first_configuration_us.clone()));
    first_configuration.last = table(Metric::FirstConfigurationLastUs);
    Some(FleetSummary {
        proxies,
        never: all.iter().map(|fleet| fleet.proxies.never).max().unwrap_or(0),
        estimates,
        connect_us: of_trials.times(|fleet| Some(fleet.connect_us.clone())),
        first_configuration_us: first_configuration,
        convergence_us: convergence,
        changes: of_trials.changes(),
        outages: of_trials.outages(),
        pushes: of_trials.pushes(),
        rejections: all.iter().map(|fleet| fleet.rejections).sum(),
        violations: all.iter().flat_map(|fleet| &fleet.violations).fold(
            BTreeMap::new(),
            |mut sums, (kind, count)| {
                *sums.entry(kind.clone()).or_default() += count;
                sums
            },
        ),
        components: of_trials.components(),
        istiod_chain_ms: of_trials.chain(),
    })
}

/// Metrics of a fleet whose noise is estimated from all cells.
const POOLED: [Metric; 3] = [Metric::BytesPerProxy, Metric::IstiodCpuS, Metric::IstiodMemoryBytes];
/// Metrics of a fleet that are estimated from its own cell.
const ALONE: [Metric; 11] = [
    Metric::Converged,
    Metric::DurationS,
    Metric::WrittenS,
    Metric::BytesReceived,
    Metric::PushesPerProxy,
    Metric::IstiodCpuCores,
    Metric::IstiodCpuConnectingS,
    Metric::IstiodCpuChangingS,
    Metric::ApiCpuS,
    Metric::FleetCpuCores,
    Metric::FleetMemoryBytes,
];

/// Trials of a cell.
struct OfTrials<'a> {
    trials: &'a [&'a TrialRecord],
}

impl OfTrials<'_> {
    /// Results of the trials in which a figure is usable, one per repeat.
    fn usable(&self, figure: Figure) -> Vec<&FleetResult> {
        usable(self.trials, figure).into_iter().filter_map(TrialRecord::fleet).collect()
    }

    /// A distribution over the trials. Its maximum is the mean of the trials' maxima.
    fn times(&self, read: impl Fn(&FleetResult) -> Option<HistogramSummary>) -> FleetTimes {
        let of_figure = |figure: Figure| -> Vec<HistogramSummary> {
            let all = self.usable(figure).into_iter().filter_map(&read);
            all.filter(|times| times.requests() > 0).collect()
        };
        let by_figure = Figure::ALL.map(of_figure);
        let times = |figure: Figure| by_figure[figure as usize].iter().collect::<Vec<&HistogramSummary>>();
        let percentiles = percentiles_alone(times);
        let greatest: Option<Vec<f64>> = times(Figure::Max).iter().map(|times| times.max).collect();
        FleetTimes {
            p50: percentiles.and_then(|all| all.p50),
            p90: percentiles.and_then(|all| all.p90),
            p99: percentiles.and_then(|all| all.p99),
            last: greatest.and_then(|all| estimate(all.into_iter())),
            count: times(Figure::P50).iter().map(|times| times.count).sum(),
            never: times(Figure::P50).iter().map(|times| times.censored).sum(),
        }
    }

    fn changes(&self) -> Vec<FleetChangeSummary> {
        let all = || self.trials.iter().filter_map(|trial| trial.fleet()).flat_map(|fleet| &fleet.changes);
        let mut kinds: Vec<&str> = Vec::new();
        for change in all() {
            if !kinds.contains(&change.kind.as_str()) {
                kinds.push(&change.kind);
            }
        }
        let of_kind = |kind: &str| {
            let own = || all().filter(|change| change.kind == kind);
            FleetChangeSummary {
                kind: kind.to_owned(),
                changes: own().map(|change| change.made.max(1) as usize).sum(),
                expected: own().map(|change| change.expected).max().unwrap_or(0),
                failed: own().filter(|change| change.failure.is_some()).count(),
                convergence_us: self.times(|fleet| of_kind(fleet, kind)),
            }
        };
        kinds.into_iter().map(of_kind).collect()
    }

    fn outages(&self) -> Vec<FleetOutageSummary> {
        let all = || self.trials.iter().filter_map(|trial| trial.fleet()).flat_map(|fleet| &fleet.cut_off);
        let mut causes: Vec<&str> = Vec::new();
        for outage in all() {
            if !causes.contains(&outage.cause.as_str()) {
                causes.push(&outage.cause);
            }
        }
        let of_cause = |cause: &str| {
            let own = |fleet: &FleetResult| {
                let parts = fleet.cut_off.iter().filter(|outage| outage.cause == cause);
                fleet::merged(parts.map(|outage| &outage.recovery_us))
            };
            FleetOutageSummary {
                cause: cause.to_owned(),
                proxies: all()
                    .filter(|outage| outage.cause == cause)
                    .map(|outage| outage.proxies)
                    .max()
                    .unwrap_or(0),
                recovery_us: self.times(own),
            }
        };
        causes.into_iter().map(of_cause).collect()
    }

    fn pushes(&self) -> BTreeMap<String, FleetPushSummary> {
        let fleets = self.usable(Figure::Network);
        let kinds: BTreeSet<&String> = fleets.iter().flat_map(|fleet| fleet.pushes.keys()).collect();
        let of_kind = |kind: &String| {
            let count = |read: fn(&FleetPushes) -> u64| {
                estimate(fleets.iter().map(|fleet| fleet.pushes.get(kind).map_or(0, read) as f64))
            };
            let summary = FleetPushSummary {
                count: count(|pushes| pushes.count),
                bytes: count(|pushes| pushes.bytes),
                resources: count(|pushes| pushes.resources),
                routes: count(|pushes| pushes.routes).filter(|_| kind == ResourceType::Routes.name()),
            };
            (kind.clone(), summary)
        };
        kinds.into_iter().map(of_kind).collect()
    }

    fn components(&self) -> Vec<FleetComponent> {
        let mut names: Vec<&str> = Vec::new();
        for usage in self.trials.iter().flat_map(|trial| &trial.components) {
            if usage.role != Role::Kernel && !names.contains(&usage.name.as_str()) {
                names.push(&usage.name);
            }
        }
        let of = |figure: Figure, name: &str, read: fn(&ComponentUsage) -> Option<f64>| {
            let trials = usable(self.trials, figure).into_iter();
            let own = trials.flat_map(|trial| &trial.components).filter(|usage| usage.name == name);
            estimate(own.filter_map(read))
        };
        let component = |name: &str| FleetComponent {
            name: name.to_owned(),
            cpu_cores: of(Figure::Cpu, name, |usage| Some(usage.cpu_cores())),
            memory_bytes: of(Figure::Memory, name, |usage| Some(usage.memory_bytes()? as f64)),
        };
        names.into_iter().map(component).collect()
    }

    /// Mean duration of each stage over all istiods.
    fn chain(&self) -> BTreeMap<String, Estimate> {
        let fleets = self.usable(Figure::P50);
        let stages: BTreeSet<&String> = fleets
            .iter()
            .flat_map(|fleet| &fleet.control_plane)
            .flat_map(|figures| figures.chain.keys())
            .collect();
        let mean_ms = |fleet: &FleetResult, stage: &String| {
            let parts = fleet.control_plane.iter().filter_map(|figures| figures.chain.get(stage));
            let (count, sum) =
                parts.fold((0, 0.0), |(count, sum), part| (count + part.count, sum + part.sum));
            (count > 0).then(|| sum / count as f64 * 1000.0)
        };
        let of_stage = |stage: &String| {
            let values = fleets.iter().filter_map(|fleet| mean_ms(fleet, stage));
            Some((stage.clone(), estimate(values)?))
        };
        stages.into_iter().filter_map(of_stage).collect()
    }
}
