//! Figures published by others for the same question, beside this run's own. The experiment contains them.

use crate::words;
use experiment::Experiment;
use experiment::published::{
    DEFAULT_MARGIN, ReferenceFigure, ReferenceValue, Relation, RelativeQuantity, TimeRange,
};
use results::units::{format_cores, format_size};
use results::{
    Cell, Clock, ComponentSummary, Estimate, Figure, LoadPoint, Metric, Mode, ProxyBuild, ProxySetup,
    PublishedFigure, Role, Summary,
};
use std::collections::BTreeSet;
use std::ops::Deref;

/// Every published figure of a mode that the run has or should have had, with what the run measured for it.
pub(crate) fn figures(experiment: &Experiment, summary: &Summary) -> Vec<PublishedFigure> {
    let is_of_the_run = |figure: &ReferenceFigure| {
        let refused = summary
            .host
            .refused_modes
            .iter()
            .any(|refused| refused.mode == figure.mode && refused.factors.is_empty());
        refused || experiment.modes.contains(&figure.mode)
    };
    figures_that(is_of_the_run, experiment, summary)
}

/// Published figures of the throughput, CPU and memory of a mode's proxy, as far as the run measured them.
pub(crate) fn figures_of_proxy(
    experiment: &Experiment,
    summary: &Summary,
    mode: Mode,
    proxy: &str,
) -> Vec<PublishedFigure> {
    let is_of_proxy = |figure: &ReferenceFigure| {
        let is_named = figure.component.as_deref().is_none_or(|component| component == proxy);
        let is_of_size = matches!(
            figure.value,
            ReferenceValue::Throughput(_)
                | ReferenceValue::ThroughputPerCpu(_)
                | ReferenceValue::Cpu(_)
                | ReferenceValue::Memory(..)
        );
        figure.mode == mode && is_named && is_of_size
    };
    let figures = figures_that(is_of_proxy, experiment, summary).into_iter();
    figures.filter(|figure| figure.measured.is_some()).collect()
}

fn figures_that(
    is_meant: impl Fn(&ReferenceFigure) -> bool,
    experiment: &Experiment,
    summary: &Summary,
) -> Vec<PublishedFigure> {
    let sources = experiment.published.iter();
    let of_proxies = proxies(&summary.cells);
    sources
        .flat_map(|source| {
            source.figures.iter().filter(|figure| is_meant(figure)).map(|figure| {
                let measured = measured(figure, experiment, summary);
                let margin = margin(figure.value, source.margin);
                PublishedFigure {
                    source: source.source.clone(),
                    what: what(figure),
                    value: value(figure.value),
                    measured_estimate: measured.as_ref().and_then(|measured| measured.estimate),
                    agrees: measured
                        .as_ref()
                        .and_then(|measured| agrees(figure.value, margin?, &measured.estimate?)),
                    margin: margin.filter(|margin| *margin > 0.0),
                    ratio: measured
                        .as_ref()
                        .and_then(|measured| ratio(measured.mean, in_base_units(figure.value)?)),
                    measured: measured.map(|measured| measured.text),
                    differs: with_further(&source.differs, of_proxies),
                }
            })
        })
        .collect()
}

/// Features of Istio's proxies that this run's proxies lack. All of Istio's published figures are for proxies
/// with these features.
fn proxies(cells: &[Cell]) -> Option<&'static str> {
    let setups: BTreeSet<ProxySetup> = cells.iter().filter_map(|cell| cell.proxies).collect();
    let count = |is: &dyn Fn(&ProxySetup) -> bool| setups.iter().filter(|setup| is(setup)).count();
    let upstream = count(&|setup| setup.build == ProxyBuild::Upstream);
    let without_telemetry = count(&|setup| !setup.telemetry);
    match (upstream, without_telemetry, setups.len()) {
        (_, 0, _) => None,
        (0, off, all) if off == all => Some("here Istio's telemetry is off"),
        (0, ..) => Some("here Istio's telemetry is off in some of the cells"),
        (upstream, _, all) if upstream == all => {
            Some("here upstream Envoy stands in for Istio's proxy, without its telemetry filters")
        }
        _ => Some(
            "here upstream Envoy stands in for Istio's proxy in some of the cells, without its telemetry filters",
        ),
    }
}

fn with_further(differs: &str, further: Option<&str>) -> String {
    let parts = [Some(differs), further].into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

/// The run's own measurement of a figure.
struct Measured {
    text: String,
    /// In cores, requests per second, bytes, microseconds or a fraction.
    mean: f64,
    /// The mean with its interval; `None` if it covers several components.
    estimate: Option<Estimate>,
}

fn measured(figure: &ReferenceFigure, experiment: &Experiment, summary: &Summary) -> Option<Measured> {
    let figure = &Wanted { figure, experiment };
    if let ReferenceValue::Relative(quantity, to, _) = figure.value {
        return relative(figure, quantity, to, summary);
    }
    if let ReferenceValue::Time(metric, _) = figure.value {
        return time(figure, metric, summary);
    }
    if figure.value.is_of_fleet() {
        return of_fleet(figure, summary);
    }
    let cell = cell(figure, summary)?;
    match figure.value {
        ReferenceValue::Throughput(_) => cell.rate_completed.map(|rate| throughput(&rate)),
        ReferenceValue::ThroughputPerCpu(_) => {
            let read = |component: &ComponentSummary| Some(per_core(&component.cpu_cores_per_1000_rps));
            resource(figure, cell, ", ", read, |_, rate| words::rate_interval(rate))
        }
        ReferenceValue::Cpu(_) => {
            let read = |component: &ComponentSummary| Some(component.cpu_cores_per_1000_rps);
            resource(figure, cell, ", ", read, |_, cores| words::cores(cores))
        }
        ReferenceValue::Memory(metric, _) => memory(figure, cell, metric),
        ReferenceValue::ReservedCpu(_) | ReferenceValue::ReservedMemory(_) => reserved(figure, cell),
        ReferenceValue::Added(metric, _) => {
            cell.added_us?.difference(metric.spoiled_by()).map(|added| latency(&added.by_itself()))
        }
        ReferenceValue::Time(..)
        | ReferenceValue::Relative(..)
        | ReferenceValue::IstiodCpu(_)
        | ReferenceValue::IstiodMemory(_)
        | ReferenceValue::IstiodMemoryPerProxy(_) => None,
    }
}

/// The control plane of the run's largest fleet.
fn of_fleet(figure: &Wanted<'_>, summary: &Summary) -> Option<Measured> {
    let measured = summary.cells.iter().filter(|cell| cell.valid > 0 && figure.is_of(cell));
    let fleets = measured.filter_map(|cell| cell.fleet.as_ref());
    let fleet = fleets.reduce(|best, one| if one.proxies > best.proxies { one } else { best })?;
    let memory = fleet.estimates.get(Metric::IstiodMemoryBytes);
    let (estimate, text): (Estimate, fn(&Estimate) -> String) = match figure.value {
        ReferenceValue::IstiodCpu(_) => (fleet.estimates.get(Metric::IstiodCpuCores)?, words::cores),
        ReferenceValue::IstiodMemoryPerProxy(_) => {
            let proxies = fleet.proxies.max(1) as f64;
            (memory?.map(|bytes| bytes / proxies), words::memory)
        }
        _ => (memory?, words::memory),
    };
    let proxies = if fleet.proxies == 1 { "proxy" } else { "proxies" };
    let text = format!("{} with {} {proxies}", text(&estimate), fleet.proxies);
    Some(Measured { text, mean: estimate.estimate, estimate: Some(estimate) })
}

/// A published figure, and the experiment whose cells are searched for it.
struct Wanted<'a> {
    figure: &'a ReferenceFigure,
    experiment: &'a Experiment,
}

impl Deref for Wanted<'_> {
    type Target = ReferenceFigure;

    fn deref(&self) -> &ReferenceFigure {
        self.figure
    }
}

impl Wanted<'_> {
    /// True if the cell's conditions match those of the figure.
    fn is_of(&self, cell: &Cell) -> bool {
        let limit = || gateway_cpu_limit_cores(self.experiment, cell);
        let has_limit = self.gateway_cpu_cores.is_none_or(|cores| limit() == Some(cores));
        cell.mode == self.mode && is_load_of(self, &cell.load) && has_limit
    }
}

pub(crate) const GATEWAY_CPU: &str = "gateway.cpu";

/// CPU limit of the gateway in a cell; absent without one.
pub(crate) fn gateway_cpu_limit_cores(experiment: &Experiment, cell: &Cell) -> Option<f64> {
    let factor = cell.factors.get(GATEWAY_CPU).and_then(|value| value.quantity(GATEWAY_CPU));
    factor.or(experiment.gateway.cpu_limit_cores)
}

fn throughput(rate: &Estimate) -> Measured {
    Measured { text: words::rate_interval(rate), mean: rate.estimate, estimate: Some(*rate) }
}

/// Requests per second and core, from cores per 1000 requests/s.
fn per_core(cores_per_1000_rps: &Estimate) -> Estimate {
    cores_per_1000_rps.map_reversed(|cores| 1000.0 / cores)
}

/// A figure of the response or service time. For a saturated cell it is read from the distribution: response
/// times over the answered requests, as others publish them, and over all requests.
fn time(figure: &Wanted<'_>, metric: Metric, summary: &Summary) -> Option<Measured> {
    let (is_response, of_times) = (metric.clock() == Some(Clock::ResponseTime), metric.spoiled_by());
    if let Some(cell) = cell(figure, summary) {
        return Some(latency(&cell.times(metric.clock()?)?.figure(of_times)?));
    }
    if metric.clock() == Some(Clock::FirstEvent) {
        return None;
    }
    let saturated =
        summary.cells.iter().filter(|cell| figure.is_of(cell)).find_map(|cell| cell.distribution.as_ref())?;
    let percentile = if of_times == Figure::Max { 100.0 } else { of_times.percentile()? };
    let point = saturated.at(percentile)?;
    let value = if is_response { point.answered_response_time_us? } else { point.service_time_us? };
    let text = match (is_response, point.response_time_us) {
        (false, _) => format!("{} (saturated)", words::latency_value(value)),
        (true, Some(all)) => format!(
            "{} of the answered, {} of all (saturated)",
            words::latency_value(value),
            words::latency_value(all)
        ),
        (true, None) => format!(
            "{} of the answered, over {} of all (saturated)",
            words::latency_value(value),
            words::latency_value(saturated.slowest_answered_us()?)
        ),
    };
    Some(Measured { text, mean: value, estimate: None })
}

/// Reservation of the container group that the figure names: a count, without an interval.
fn reserved(figure: &ReferenceFigure, cell: &Cell) -> Option<Measured> {
    let groups = &cell.reserved.as_ref()?.groups;
    let group = groups.iter().find(|group| Some(group.group.name()) == figure.component.as_deref())?;
    let (mean, text) = match figure.value {
        ReferenceValue::ReservedCpu(_) => {
            (group.reserved_cpu_cores, words::cores_value(group.reserved_cpu_cores))
        }
        _ => (group.reserved_memory_bytes, words::memory_value(group.reserved_memory_bytes)),
    };
    Some(Measured { text, mean, estimate: None })
}

/// The cell under the figure's load, or under the lowest load if the figure names none.
fn cell<'a>(figure: &Wanted<'_>, summary: &'a Summary) -> Option<&'a Cell> {
    summary.cells.iter().find(|cell| cell.valid > 0 && figure.is_of(cell))
}

fn is_load_of(figure: &ReferenceFigure, load: &LoadPoint) -> bool {
    (figure.rate.is_none() || load.rate == figure.rate)
        && (figure.clients.is_none() || load.clients == figure.clients)
        && figure
            .prompt_bytes
            .is_none_or(|bytes| load.stream.as_ref().is_some_and(|stream| stream.prompt_bytes == bytes))
}

/// One mode against another, from the run's comparisons in either direction.
fn relative(
    figure: &ReferenceFigure,
    quantity: RelativeQuantity,
    to: Mode,
    summary: &Summary,
) -> Option<Measured> {
    let (mode, load_fits) = (figure.mode, |load: &LoadPoint| is_load_of(figure, load));
    let estimate = summary.comparisons.iter().filter(|comparison| load_fits(&comparison.load)).find_map(
        |comparison| {
            let change = match quantity {
                RelativeQuantity::Throughput => comparison.throughput?,
                RelativeQuantity::Cpu => comparison.proxy_cpu_per_request?,
            };
            match (comparison.mode, comparison.than) {
                pair if pair == (mode, to) => Some(change),
                pair if pair == (to, mode) => Some(inverted(&change)),
                _ => None,
            }
        },
    )?;
    let estimate = estimate.by_itself();
    let text = words::change(&estimate);
    Some(Measured { text, mean: estimate.estimate, estimate: Some(estimate) })
}

/// Inverts a relative change: A against B becomes B against A.
pub(crate) fn inverted(change: &Estimate) -> Estimate {
    let turned = |change: f64| 1.0 / (1.0 + change) - 1.0;
    change.map_reversed(turned)
}

/// Relative change that counts as alike: the study that calls two modes alike reports a change of a tenth.
const ALIKE: f64 = 0.1;

/// Allowed deviation from a published figure, as a fraction of it or, for a change, of the other mode. A
/// change must not agree with "no change": for a tenth less, the margin is at most a tenth. 0 if the
/// published figure itself states what agrees.
fn margin(published: ReferenceValue, given: Option<f64>) -> Option<f64> {
    let margin = given.unwrap_or(DEFAULT_MARGIN);
    Some(match published {
        ReferenceValue::Relative(.., Relation::Alike) => given.unwrap_or(ALIKE),
        ReferenceValue::Relative(.., Relation::Higher | Relation::Lower) => 0.0,
        ReferenceValue::Relative(.., Relation::Change(change)) => margin.min(change.abs()),
        ReferenceValue::Time(.., range) if range.low < range.high => 0.0,
        _ => margin,
    })
}

/// Whether this run agrees with a published figure. Agreement has to be shown like a difference, so noise
/// makes it harder, not easier. `None` if the interval lies partly within the margin, or if there is no
/// interval.
fn agrees(published: ReferenceValue, margin: f64, measured: &Estimate) -> Option<bool> {
    let (low, high) = (measured.low?, measured.high?);
    let within = |from: f64, to: f64| match (from <= low && high <= to, high < from || low > to) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    match published {
        ReferenceValue::Relative(.., Relation::Alike) => within(-margin, margin),
        ReferenceValue::Relative(.., Relation::Higher) => within(f64::MIN_POSITIVE, f64::INFINITY),
        ReferenceValue::Relative(.., Relation::Lower) => within(f64::NEG_INFINITY, -f64::MIN_POSITIVE),
        ReferenceValue::Relative(.., Relation::Change(change)) => within(change - margin, change + margin),
        ReferenceValue::Time(.., range) if range.low < range.high => {
            within(range.low.as_secs_f64() * 1e6, range.high.as_secs_f64() * 1e6)
        }
        number => {
            let number = in_base_units(number)?;
            within(number * (1.0 - margin), number * (1.0 + margin))
        }
    }
}

/// Usage of the component that the figure names, or of each proxy.
fn resource(
    figure: &ReferenceFigure,
    cell: &Cell,
    separator: &str,
    read: impl Fn(&ComponentSummary) -> Option<Estimate>,
    in_words: impl Fn(&ComponentSummary, &Estimate) -> String,
) -> Option<Measured> {
    let is_meant = |component: &&ComponentSummary| match &figure.component {
        Some(name) => component.name == *name,
        None => component.role == Role::Proxy,
    };
    let components = cell.components.iter().filter(is_meant);
    let estimates: Vec<(&ComponentSummary, Estimate)> =
        components.filter_map(|component| Some((component, read(component)?))).collect();
    let text: Vec<String> = estimates
        .iter()
        .map(|(component, estimate)| format!("{} {}", component.name, in_words(component, estimate)))
        .collect();
    let sum: f64 = estimates.iter().map(|(_, estimate)| estimate.estimate).sum();
    let only = match estimates.as_slice() {
        [(_, only)] => Some(*only),
        _ => None,
    };
    let mean = sum / estimates.len() as f64;
    (!estimates.is_empty()).then(|| Measured { text: text.join(separator), mean, estimate: only })
}

/// Memory of the published kind, with the other kinds beside it: the kind decides the figure more than the
/// proxy does. If no cgroup reports a working set, anonymous memory is nearest to it, then resident memory.
fn memory(figure: &ReferenceFigure, cell: &Cell, kind: Metric) -> Option<Measured> {
    const KINDS: [Metric; 3] =
        [Metric::MemoryWorkingSetBytes, Metric::MemoryAnonymousBytes, Metric::MemoryResidentBytes];
    let of_kind = |shown: Metric| {
        let in_words = |component: &ComponentSummary, estimate: &Estimate| {
            let name = if shown == kind { String::new() } else { format!("{} ", memory_in_words(shown)) };
            let others = KINDS.into_iter().filter(|other| *other != shown).filter_map(|other| {
                let value = words::memory_value(component.estimate(other)?.estimate);
                Some(format!(", {} {value}", memory_in_words(other)))
            });
            name + &words::memory(estimate) + &others.collect::<String>()
        };
        resource(figure, cell, "; ", |component| component.estimate(shown), in_words)
    };
    match kind {
        Metric::MemoryWorkingSetBytes => KINDS.into_iter().find_map(of_kind),
        _ => of_kind(kind),
    }
}

fn memory_in_words(kind: Metric) -> &'static str {
    match kind {
        Metric::MemoryAnonymousBytes => "anonymous",
        Metric::MemoryResidentBytes => "resident",
        _ => "working set",
    }
}

fn latency(estimate: &Estimate) -> Measured {
    Measured { text: words::latency(estimate), mean: estimate.estimate, estimate: Some(*estimate) }
}

/// Description of the measured figure.
fn what(figure: &ReferenceFigure) -> String {
    let of_whom = figure.component.as_deref().unwrap_or("each proxy");
    let what = match figure.value {
        ReferenceValue::Cpu(_) => format!("CPU of {of_whom} per 1000 requests/s"),
        ReferenceValue::Throughput(_) => "requests per second".to_owned(),
        ReferenceValue::ThroughputPerCpu(_) => format!("requests per second per core of {of_whom}"),
        ReferenceValue::Memory(kind, _) => format!("memory ({}) of {of_whom}", memory_in_words(kind)),
        ReferenceValue::Time(metric, _) if metric.clock() == Some(Clock::ServiceTime) => {
            format!("{} of the service time, uncorrected", metric.spoiled_by().name())
        }
        ReferenceValue::Time(metric, _) if metric.clock() == Some(Clock::FirstEvent) => {
            format!("{} of the time to the first token", metric.spoiled_by().name())
        }
        ReferenceValue::Time(metric, _) => format!("{} of the response time", metric.spoiled_by().name()),
        ReferenceValue::ReservedCpu(_) => format!("CPU reserved ({of_whom})"),
        ReferenceValue::ReservedMemory(_) => format!("memory reserved ({of_whom})"),
        ReferenceValue::IstiodCpu(_) => "CPU of istiod".to_owned(),
        ReferenceValue::IstiodMemory(_) => "memory of istiod".to_owned(),
        ReferenceValue::IstiodMemoryPerProxy(_) => "memory of istiod per proxy".to_owned(),
        ReferenceValue::Added(metric, _) => format!("added to the {} of no mesh", metric.spoiled_by().name()),
        ReferenceValue::Relative(RelativeQuantity::Throughput, to, _) => format!("throughput against {to}"),
        ReferenceValue::Relative(RelativeQuantity::Cpu, to, _) => {
            format!("CPU of all proxies per request against {to}")
        }
    };
    let rate = figure.rate.map(|rate| format!(" at {}", words::rate(rate))).unwrap_or_default();
    let clients = figure.clients.map(|clients| format!(" with {}", words::clients(clients)));
    let is_of_streams =
        matches!(figure.value, ReferenceValue::Time(metric, _) if metric.clock() == Some(Clock::FirstEvent));
    let clients =
        clients.map(|clients| if is_of_streams { clients.replace("client", "stream") } else { clients });
    let prompt =
        figure.prompt_bytes.map(|bytes| format!(", prompt {}", format_size(bytes))).unwrap_or_default();
    let limit = figure.gateway_cpu_cores.map(|cores| format!(", {GATEWAY_CPU} {}", format_cores(cores)));
    format!(
        "{}: {what}{rate}{}{prompt}{}",
        figure.mode,
        clients.unwrap_or_default(),
        limit.unwrap_or_default()
    )
}

/// The published value with its unit.
fn value(value: ReferenceValue) -> String {
    match value {
        ReferenceValue::Cpu(cores) => words::cores_value(cores),
        ReferenceValue::Throughput(rate) | ReferenceValue::ThroughputPerCpu(rate) => words::rate(rate),
        ReferenceValue::Memory(_, bytes) => words::memory_value(bytes as f64),
        ReferenceValue::ReservedCpu(cores) | ReferenceValue::IstiodCpu(cores) => words::cores_value(cores),
        ReferenceValue::ReservedMemory(bytes)
        | ReferenceValue::IstiodMemory(bytes)
        | ReferenceValue::IstiodMemoryPerProxy(bytes) => words::memory_value(bytes as f64),
        ReferenceValue::Time(.., TimeRange { low, high }) if low < high => {
            format!("{} to {}", words::bound(low), words::bound(high))
        }
        ReferenceValue::Time(..) | ReferenceValue::Added(..) => {
            words::latency_value(in_base_units(value).unwrap_or_default())
        }
        ReferenceValue::Relative(.., Relation::Change(change)) => words::change_value(change),
        ReferenceValue::Relative(.., relation) => relation.to_string(),
    }
}

/// Measured over published; `None` where signs differ or the published value is 0: such a ratio says nothing.
fn ratio(measured: f64, published: f64) -> Option<f64> {
    (published != 0.0 && measured * published >= 0.0).then(|| measured / published)
}

/// In cores, requests per second, bytes or microseconds; `None` for figures that are already relative.
fn in_base_units(value: ReferenceValue) -> Option<f64> {
    match value {
        ReferenceValue::Cpu(cores) => Some(cores),
        ReferenceValue::Throughput(rate) | ReferenceValue::ThroughputPerCpu(rate) => Some(rate),
        ReferenceValue::Memory(_, bytes) => Some(bytes as f64),
        ReferenceValue::ReservedCpu(cores) | ReferenceValue::IstiodCpu(cores) => Some(cores),
        ReferenceValue::ReservedMemory(bytes)
        | ReferenceValue::IstiodMemory(bytes)
        | ReferenceValue::IstiodMemoryPerProxy(bytes) => Some(bytes as f64),
        ReferenceValue::Time(.., TimeRange { low, high }) => {
            (low == high).then_some(high.as_secs_f64() * 1e6)
        }
        ReferenceValue::Added(_, time) => Some(time.as_secs_f64() * 1e6),
        ReferenceValue::Relative(..) => None,
    }
}

#[cfg(test)]
mod tests;
