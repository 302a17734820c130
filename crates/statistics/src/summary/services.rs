//! Requests and CPU of each service of a cell, and CPU of the proxies in its pods.

use super::estimates::estimate;
use super::readings::{Readings, WindowRates};
use results::{
    ComponentSummary, ComponentUsage, DisturbedFigures, Estimate, Role, ServiceRecord, ServiceSummary,
    TrialRecord,
};
use std::collections::{BTreeMap, HashMap};

/// Every service of the trials of a cell, in the order in which the trials list them.
pub(super) fn services(trials: &[&TrialRecord]) -> Vec<ServiceSummary> {
    let mut readings = Readings::new();
    let mut replicas: HashMap<(String, String), usize> = HashMap::new();
    for trial in trials {
        let rates = WindowRates::new(trial.drivers());
        let cpu = PodCpu::new(&trial.components);
        for service in &trial.services {
            let key = (service.namespace.clone(), service.name.clone());
            replicas.entry(key.clone()).or_insert(service.replicas);
            let rate_per_request = rates.of(&service.namespace);
            let reading = rate_per_request.map(|rate| Reading::new(service, rate, &cpu));
            readings.add(key, trial.repeat, reading);
        }
    }
    let summary = |(key, readings): ((String, String), BTreeMap<usize, Reading>)| {
        let each = |read: fn(&Reading) -> Option<f64>| estimate(readings.values().filter_map(read));
        ServiceSummary {
            replicas: replicas[&key],
            requests_per_s: each(|reading| reading.requests_per_s),
            cpu_cores: each(|reading| reading.cpu_cores),
            proxy_cpu_cores: each(|reading| reading.proxy_cpu_cores),
            total_cpu_cores: each(|reading| Some(reading.cpu_cores? + reading.proxy_cpu_cores?)),
            disturbed: DisturbedFigures::new(),
            namespace: key.0,
            name: key.1,
        }
    };
    readings.into_iter().map(summary).collect()
}

/// Gives services of one pod the intervals that the components table has for the same figure: CPU of the application, and of the only
/// proxy in its pod.
pub(super) fn share_intervals(
    services: &mut [ServiceSummary],
    components: &[ComponentSummary],
    trials: &[&TrialRecord],
) {
    for service in services {
        let known = trials.iter().find_map(|trial| {
            let record = trial
                .services
                .iter()
                .find(|record| (&record.namespace, &record.name) == (&service.namespace, &service.name))?;
            Some((trial, record.components.as_slice()))
        });
        let Some((trial, [application])) = known else { continue };
        let usage = |role: Role| trial.components.iter().filter(move |usage| usage.role == role);
        let pod =
            usage(Role::App).find(|usage| usage.name == *application).and_then(|usage| usage.pod.as_ref());
        let proxies: Vec<&str> = usage(Role::Proxy)
            .filter(|usage| pod.is_some() && usage.pod.as_ref() == pod)
            .map(|usage| usage.name.as_str())
            .collect();
        let shared = |own: &mut Option<Estimate>, name: &str, role: Role| {
            let component = components.iter().find(|one| one.role == role && one.name == name);
            let is_same = |own: &Estimate, other: &Estimate| {
                own.n == other.n && (own.estimate - other.estimate).abs() <= 1e-9 * own.estimate.abs()
            };
            if let (Some(own), Some(component)) = (own.as_mut(), component)
                && is_same(own, &component.cpu_cores)
            {
                *own = component.cpu_cores;
            }
        };
        shared(&mut service.cpu_cores, application, Role::App);
        if let [only] = proxies[..] {
            shared(&mut service.proxy_cpu_cores, only, Role::Proxy);
        }
    }
}

/// A service in one trial whose drivers are valid.
struct Reading {
    requests_per_s: Option<f64>,
    cpu_cores: Option<f64>,
    proxy_cpu_cores: Option<f64>,
}

impl Reading {
    fn new(service: &ServiceRecord, rate_per_request: f64, cpu: &PodCpu<'_>) -> Self {
        let counted = || service.requests.map(|requests| requests as f64 * rate_per_request);
        // A sum over only some of its pods would be wrong.
        let sum = |cores: &dyn Fn(&str) -> Option<f64>| {
            let pods = service.components.iter().map(|component| cores(component));
            pods.sum::<Option<f64>>().filter(|_| !service.components.is_empty())
        };
        Self {
            requests_per_s: service.requests_per_s.or_else(counted).filter(|rate| rate.is_finite()),
            cpu_cores: sum(&|component| cpu.application(component)),
            proxy_cpu_cores: sum(&|component| cpu.proxies(component)),
        }
    }
}

/// CPU in each pod of a trial, in cores.
struct PodCpu<'a> {
    applications: HashMap<&'a str, &'a ComponentUsage>,
    /// CPU of the proxies, by pod.
    proxies: HashMap<&'a str, f64>,
}

impl<'a> PodCpu<'a> {
    fn new(components: &'a [ComponentUsage]) -> Self {
        let of = |role| components.iter().filter(move |usage| usage.role == role);
        let mut proxies: HashMap<&str, f64> = HashMap::new();
        for (usage, pod) in of(Role::Proxy).filter_map(|usage| Some((usage, usage.pod.as_deref()?))) {
            *proxies.entry(pod).or_default() += usage.cpu_cores();
        }
        Self { applications: of(Role::App).map(|usage| (usage.name.as_str(), usage)).collect(), proxies }
    }

    fn application(&self, component: &str) -> Option<f64> {
        self.applications.get(component).map(|usage| usage.cpu_cores())
    }

    /// CPU of the proxies in the pod of this application; `None` if it has none.
    fn proxies(&self, component: &str) -> Option<f64> {
        self.proxies.get(self.applications.get(component)?.pod.as_deref()?).copied()
    }
}
