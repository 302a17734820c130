//! Figures of a cell, and of its drivers, services and calls, that noise of the machine keeps out of the estimates.

use super::{drivers, edges, services};
use crate::disturbance::{Freed, counted_kinds, freed};
use crate::retakes::OTHER_PROCESSES;
use experiment::Objective;
use results::{
    Cell, Clock, DisturbedFigure, DisturbedFigures, DisturbedTrials, Estimate, Figure, MachineUsage, Metric,
    Percentiles, TopProcess, TrialRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of programs named.
const MAX_PROGRAMS: usize = 3;

/// Figures of a cell.
const OF_CELL: [Metric; 15] = [
    Metric::ResponseTimeMeanUs,
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP90Us,
    Metric::ResponseTimeP99Us,
    Metric::RateCompleted,
    Metric::ProxiesCpuCoresPer1000Rps,
    Metric::ProxiesMemoryAnonymousBytes,
    Metric::ConvergenceP50Us,
    Metric::ConvergenceP90Us,
    Metric::ConvergenceP99Us,
    Metric::ConvergenceLastUs,
    Metric::FirstConfigurationLastUs,
    Metric::IstiodCpuS,
    Metric::IstiodMemoryBytes,
    Metric::BytesPerProxy,
];

/// Percentiles of drivers and calls.
const TIMES: [Figure; 3] = [Figure::P50, Figure::P90, Figure::P99];

/// Adds the disturbed figures to a cell with its estimates.
pub(super) fn note(cell: &mut Cell, trials: &[&TrialRecord]) {
    let freed = freed(trials);
    if freed.is_empty() {
        return;
    }
    cell.disturbed = Some(of_trials(&freed));
    let mut of_drivers = of_parts(&freed, driver_figures);
    for driver in &mut cell.drivers {
        driver.disturbed = of_drivers.remove(&place(&driver.namespace, &driver.name)).unwrap_or_default();
    }
    let mut of_services = of_parts(&freed, service_figures);
    for service in &mut cell.services {
        service.disturbed = of_services.remove(&place(&service.namespace, &service.name)).unwrap_or_default();
    }
    let mut of_edges = of_parts(&freed, edge_figures);
    for edge in &mut cell.edges {
        edge.disturbed = of_edges.remove(&place(&edge.from, &edge.to)).unwrap_or_default();
    }
}

fn of_trials(freed: &[Freed<'_>]) -> DisturbedTrials {
    let figures = OF_CELL.into_iter().filter_map(|metric| {
        let disturbed = freed.iter().filter(|one| one.has(metric.spoiled_by()));
        let values = disturbed.filter_map(|one| metric.read(&one.freed)).collect();
        Some((metric.key().to_owned(), DisturbedFigure::new(values)?))
    });
    let by_others = freed.iter().filter(|one| one.kinds().contains(OTHER_PROCESSES));
    let machines: Vec<&MachineUsage> = by_others.filter_map(|one| one.trial.machine.as_ref()).collect();
    let cores = || machines.iter().map(|machine| machine.other_processes_cores);
    DisturbedTrials {
        trials: freed.len(),
        reasons: counted_kinds(freed),
        other_processes_cores: cores().reduce(f64::min).zip(cores().reduce(f64::max)).map(<[f64; 2]>::from),
        programs: programs(&machines),
        figures: figures.collect(),
    }
}

/// The programs with the most CPU in any of the trials.
fn programs(machines: &[&MachineUsage]) -> Vec<TopProcess> {
    let mut most: BTreeMap<&str, f64> = BTreeMap::new();
    for process in machines.iter().flat_map(|machine| &machine.top_other_processes) {
        let cores = most.entry(&process.name).or_default();
        *cores = cores.max(process.cpu_cores);
    }
    let named = most.into_iter().map(|(name, cpu_cores)| TopProcess { name: name.to_owned(), cpu_cores });
    let mut programs: Vec<TopProcess> = named.collect();
    programs.sort_by(|one, other| other.cpu_cores.total_cmp(&one.cpu_cores));
    programs.truncate(MAX_PROGRAMS);
    programs
}

/// A driver or service by namespace and name, or a call by its ends.
type Place = (String, String);

fn place(first: &str, second: &str) -> Place {
    (first.to_owned(), second.to_owned())
}

/// Figures of one trial by place and key.
type Figures = Vec<(Place, &'static str, Option<Estimate>)>;

/// Figures that the parts of a cell have only once noise is accepted.
fn of_parts(
    freed: &[Freed<'_>],
    figures: impl Fn(&TrialRecord) -> Figures,
) -> BTreeMap<Place, DisturbedFigures> {
    let mut values: BTreeMap<Place, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for one in freed {
        let without = figures(one.trial).into_iter().filter(|(_, _, value)| value.is_some());
        let known: BTreeSet<(Place, &str)> = without.map(|(place, key, _)| (place, key)).collect();
        for (place, key, value) in figures(&one.freed) {
            let of_key = (place, key);
            if let Some(value) = value.filter(|_| !known.contains(&of_key)) {
                values.entry(of_key.0).or_default().entry(key).or_default().push(value.estimate);
            }
        }
    }
    let figures = |of_place: BTreeMap<&str, Vec<f64>>| -> DisturbedFigures {
        let figures = of_place.into_iter();
        figures.filter_map(|(key, values)| Some((key.to_owned(), DisturbedFigure::new(values)?))).collect()
    };
    values.into_iter().map(|(place, of_place)| (place, figures(of_place))).collect()
}

fn driver_figures(trial: &TrialRecord) -> Figures {
    let drivers = drivers::drivers(&Objective::default(), &[trial], 1, None);
    let of_driver = |driver: &results::DriverSummary| {
        let place = place(&driver.namespace, &driver.name);
        let rate = (place.clone(), Metric::RateCompleted.key(), driver.rate_completed);
        times(&place, driver.response_time_us.as_ref()).chain([rate]).collect::<Figures>()
    };
    drivers.iter().flat_map(of_driver).collect()
}

fn service_figures(trial: &TrialRecord) -> Figures {
    let of_service = |service: results::ServiceSummary| {
        let place = place(&service.namespace, &service.name);
        let figures = [
            ("requests_per_s", service.requests_per_s),
            ("cpu_cores", service.cpu_cores),
            ("proxy_cpu_cores", service.proxy_cpu_cores),
        ];
        figures.map(|(key, value)| (place.clone(), key, value))
    };
    services::services(&[trial]).into_iter().flat_map(of_service).collect()
}

fn edge_figures(trial: &TrialRecord) -> Figures {
    let of_edge = |edge: &results::EdgeSummary| {
        let place = place(&edge.from, &edge.to);
        let rate = (place.clone(), "requests_per_s", edge.requests_per_s);
        times(&place, edge.response_time_us.as_ref()).chain([rate]).collect::<Figures>()
    };
    edges::edges(&[trial]).iter().flat_map(of_edge).collect()
}

fn times(
    place: &Place,
    times: Option<&Percentiles>,
) -> impl Iterator<Item = (Place, &'static str, Option<Estimate>)> {
    TIMES.into_iter().filter_map(move |figure| {
        let key = Clock::ResponseTime.metric(figure)?.key();
        Some((place.clone(), key, times.and_then(|times| times.figure(figure))))
    })
}
