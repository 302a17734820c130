//! Gateways of a cell by their own counters, and the cell's rates as counted by each observer.

use super::estimates::estimate;
use super::readings::Readings;
use crate::trials::usable;
use results::{
    CellRates, ComponentUsage, Figure, GatewayDuration, GatewayPercentiles, GatewayRecord, GatewaySummary,
    TrialRates, TrialRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// Rates over the trials whose throughput is usable; `None` if none has any.
pub(super) fn rates(trials: &[&TrialRecord]) -> Option<CellRates> {
    let rates: Vec<TrialRates> =
        usable(trials, Figure::Throughput).into_iter().filter_map(|trial| trial.rates).collect();
    // Means over different trials would not be comparable.
    let of_all = |read: fn(&TrialRates) -> Option<f64>| {
        let values: Vec<f64> = rates.iter().map(read).collect::<Option<_>>()?;
        estimate(values.into_iter())
    };
    Some(CellRates {
        generator: of_all(|rates| Some(rates.generator))?,
        gateway: of_all(|rates| rates.gateway),
        destination: of_all(|rates| rates.destination),
    })
}

/// A gateway in a trial, with the usage of its component.
type Reading<'a> = (&'a GatewayRecord, Option<&'a ComponentUsage>);

/// Every gateway of the trials of a cell, in the order in which the trials list them.
pub(super) fn gateways(trials: &[&TrialRecord]) -> Vec<GatewaySummary> {
    let mut readings: Readings<&str, Reading<'_>> = Readings::new();
    for trial in usable(trials, Figure::Throughput) {
        for gateway in &trial.gateways {
            let usage = trial.components.iter().find(|usage| usage.name == gateway.name);
            readings.add(gateway.name.as_str(), trial.repeat, Some((gateway, usage)));
        }
    }
    readings.into_iter().filter_map(|(_, readings)| summary(&readings)).collect()
}

fn summary(readings: &BTreeMap<usize, Reading<'_>>) -> Option<GatewaySummary> {
    let records: Vec<&GatewayRecord> = readings.values().map(|(gateway, _)| *gateway).collect();
    let first = records.first()?;
    let per_second = |read: &dyn Fn(&GatewayRecord) -> u64| {
        let timed = records.iter().filter(|gateway| gateway.window_s > 0.0);
        estimate(timed.map(|gateway| read(gateway) as f64 / gateway.window_s))
    };
    let classes: BTreeSet<&String> = records.iter().flat_map(|gateway| gateway.responses.keys()).collect();
    let of_class = |class: &String| {
        let count = |gateway: &GatewayRecord| gateway.responses.get(class).copied().unwrap_or(0);
        Some((class.clone(), per_second(&count)?))
    };
    let durations = |read: fn(&GatewayRecord) -> Option<GatewayDuration>| {
        percentiles(&records.iter().filter_map(|gateway| read(gateway)).collect::<Vec<_>>())
    };
    let throttled = readings.values().filter_map(|(_, usage)| throttled_fraction((*usage)?));
    Some(GatewaySummary {
        name: first.name.clone(),
        namespace: first.namespace.clone(),
        targets: first.targets.clone(),
        requests: records.iter().map(|gateway| gateway.requests).sum(),
        requests_per_s: per_second(&|gateway| gateway.requests),
        responses_per_s: classes.into_iter().filter_map(of_class).collect(),
        duration_downstream_us: durations(|gateway| gateway.duration_downstream_us),
        duration_upstream_us: durations(|gateway| gateway.duration_upstream_us),
        bytes_received_s: per_second(&|gateway| gateway.bytes_received),
        bytes_sent_s: per_second(&|gateway| gateway.bytes_sent),
        retries_per_s: per_second(&|gateway| gateway.retries),
        connections_per_s: per_second(&|gateway| gateway.connections),
        tls_connections_per_s: per_second(&|gateway| gateway.tls_connections),
        throttled: estimate(throttled),
    })
}

fn percentiles(durations: &[GatewayDuration]) -> Option<GatewayPercentiles> {
    let of = |read: fn(&GatewayDuration) -> f64| estimate(durations.iter().map(read));
    Some(GatewayPercentiles {
        p50: of(|duration| duration.p50)?,
        p90: of(|duration| duration.p90)?,
        p99: of(|duration| duration.p99)?,
        resolution_us: durations.iter().map(|duration| duration.resolution_us).fold(0.0, f64::max),
    })
}

/// `None` without a CPU limit: the kernel does not count periods then.
fn throttled_fraction(usage: &ComponentUsage) -> Option<f64> {
    let throttling = usage.throttling?;
    let of_periods = throttling.of_periods.filter(|periods| *periods > 0)?;
    Some(throttling.periods as f64 / of_periods as f64)
}
