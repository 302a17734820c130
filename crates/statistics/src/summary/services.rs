//! What each service of a cell served and used.
//!
//! A service counts over the whole trial, warm-up included. Where the environment did not read its counter at both ends of
//! the window, the rate in the window is its count times what the drivers sent per second in the window, over what they
//! sent in the whole trial. The drivers of a service are those of its namespace, or all where its namespace has none.

use super::estimates::estimate;
use experiment::schema::{DriverView, Role, ServiceRecord, ServiceSummary, TrialRecord};
use std::collections::BTreeMap;

/// Every service of the trials of a cell, in the order in which the trials list them.
pub(super) fn services(trials: &[&TrialRecord]) -> Vec<ServiceSummary> {
    let mut positions: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut services: Vec<(ServiceRecord, BTreeMap<usize, Reading>)> = Vec::new();
    for trial in trials {
        let drivers = trial.drivers();
        let cores: BTreeMap<&str, f64> = trial
            .components
            .iter()
            .filter(|usage| usage.role == Role::App)
            .map(|usage| (usage.name.as_str(), usage.cpu_cores()))
            .collect();
        for service in trial.services().iter() {
            let key = (service.namespace.clone(), service.name.clone());
            let position = *positions.entry(key).or_insert_with(|| {
                services.push((service.clone(), BTreeMap::new()));
                services.len() - 1
            });
            if let Some(reading) = Reading::new(service, &drivers, &cores) {
                // The first take in which it is valid, as for drivers.
                services[position].1.entry(trial.repeat).or_insert(reading);
            }
        }
    }
    services.into_iter().map(|(service, readings)| summary(service, &readings)).collect()
}

fn summary(service: ServiceRecord, readings: &BTreeMap<usize, Reading>) -> ServiceSummary {
    ServiceSummary {
        name: service.name,
        namespace: service.namespace,
        replicas: service.replicas,
        requests_per_s: estimate(readings.values().filter_map(|reading| reading.requests_per_s)),
        cpu_cores: estimate(readings.values().filter_map(|reading| reading.cpu_cores)),
    }
}

/// A service in one trial whose drivers are valid.
struct Reading {
    requests_per_s: Option<f64>,
    cpu_cores: Option<f64>,
}

impl Reading {
    /// Absent where a driver of the service is not valid.
    fn new(service: &ServiceRecord, drivers: &[DriverView<'_>], cores: &BTreeMap<&str, f64>) -> Option<Self> {
        let is_own = |driver: &&DriverView<'_>| driver.namespace == service.namespace;
        let mut own: Vec<&DriverView<'_>> = drivers.iter().filter(is_own).collect();
        if own.is_empty() {
            own = drivers.iter().collect();
        }
        if !own.iter().all(|driver| driver.is_valid()) {
            return None;
        }
        let counted = || Some(service.requests? as f64 * window_rate_per_request(&own)?);
        // Of some of its pods it would not be a sum.
        let pods = service.components.iter().map(|name| cores.get(name.as_str()).copied());
        Some(Self {
            requests_per_s: service.requests_per_s.or_else(counted),
            cpu_cores: pods.sum::<Option<f64>>().filter(|_| !service.components.is_empty()),
        })
    }
}

/// Requests per second in the window for each request of the whole trial, of these drivers together.
fn window_rate_per_request(drivers: &[&DriverView<'_>]) -> Option<f64> {
    let (mut in_window_per_s, mut in_trial) = (0.0, 0.0);
    for result in drivers.iter().filter_map(|driver| driver.result) {
        in_window_per_s += result.requests.sent as f64 / result.duration_s;
        in_trial += (result.warmup.sent + result.requests.sent) as f64;
    }
    Some(in_window_per_s / in_trial).filter(|rate| rate.is_finite())
}
