//! The headline: the answer to the question of the run, in the form that fits the kind of run.
//!
//! In this order: versions and programs, fleets, sizes of the mesh, capacity of a gateway, streams, values of factors, a
//! topology's entry, throughput, latency. The experiment's `headline` selects another figure than that of the kind. The far corner of several
//! factors comes last.

use super::run::{Run, distance_from_reference, nearest};
use super::word_factors::{headline_change, nearest_to_reference, of_change};
use super::{components, corners, factors, fleets, latency, sizes, throughput};
use crate::interval;
use crate::published::{GATEWAY_CPU, gateway_cpu_limit_cores};
use experiment::HeadlineFigure;
use experiment::definition::Factor;
use results::finding::{
    About, Added, GatewayCapacity, Headline, Measured, OfCell, Usage, Value, ValuesHeadline,
};
use results::{
    BACKGROUND_SERVICES, Cell, Finding, FindingVerdict, LoadPoint, Metric, Mode, Role, is_of_components,
};

/// Maximum number of differences between values of factors.
const MAX_DIFFERENCES: usize = 4;

pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    let figure = run.experiment.headline;
    let forms: [&dyn Fn() -> Vec<Finding>; 9] = [
        &|| components::headline(run),
        &|| fleets::headline(run),
        &|| sizes::headline(run),
        &|| findings(capacity(run, figure)),
        &|| findings(streams(run, figure)),
        &|| findings(differences(run, figure)),
        &|| findings(entry(run, figure)),
        &|| findings(cpu(run, figure)),
        &|| throughput_of(run, figure),
    ];
    let first = forms.iter().map(|form| form()).find(|findings| !findings.is_empty());
    let mut headline = first.unwrap_or_else(|| latency::headline(run, time(figure)));
    let corner = corners::headline(run, &modes(run), |load| compared(figure, load));
    headline.extend(corner.map(Finding::Headline));
    headline
}

fn findings(headlines: Vec<Headline>) -> Vec<Finding> {
    headlines.into_iter().map(Finding::Headline).collect()
}

/// The percentile of the response time that a headline states.
fn time(figure: Option<HeadlineFigure>) -> Metric {
    match figure {
        Some(HeadlineFigure::P90) => Metric::ResponseTimeP90Us,
        Some(HeadlineFigure::P99) => Metric::ResponseTimeP99Us,
        _ => Metric::ResponseTimeP50Us,
    }
}

fn throughput_of(run: &Run<'_>, figure: Option<HeadlineFigure>) -> Vec<Finding> {
    match figure {
        None | Some(HeadlineFigure::Throughput) => throughput::headline(run),
        Some(_) => Vec::new(),
    }
}

/// CPU of all proxies of each mode, if the experiment wants it.
fn cpu(run: &Run<'_>, figure: Option<HeadlineFigure>) -> Vec<Headline> {
    if figure != Some(HeadlineFigure::Cpu) {
        return Vec::new();
    }
    run.reference_cells().filter_map(all_proxies).map(Headline::Proxies).collect()
}

/// Requests per core of a single gateway, and its throughput under each CPU limit, the lowest first.
fn capacity(run: &Run<'_>, figure: Option<HeadlineFigure>) -> Vec<Headline> {
    let is_gateway = matches!(run.experiment.modes.as_slice(), [Mode::Gateway | Mode::Ingress]);
    let varies_otherwise = run.experiment.factors.iter().any(|factor| factor.key != GATEWAY_CPU);
    if !is_gateway || varies_otherwise || !matches!(figure, None | Some(HeadlineFigure::Throughput)) {
        return Vec::new();
    }
    let closed = || run.summary.cells.iter().filter(|cell| cell.valid > 0 && cell.load.clients.is_some());
    let load = nearest(closed().map(|cell| &cell.load), |load| distance_from_reference(load));
    let cells = closed().filter(|cell| Some(&cell.load) == load);
    cells.filter_map(|cell| gateway(run, cell)).map(Headline::Capacity).collect()
}

fn gateway(run: &Run<'_>, cell: &Cell) -> Option<OfCell<GatewayCapacity>> {
    let gateway = cell.gateways.first().map_or("gateway", |gateway| gateway.name.as_str());
    let proxy = cell.components.iter().find(|component| component.name == gateway)?;
    let rate = cell.rate_completed?;
    let capacity = GatewayCapacity {
        subject: gateway.to_owned(),
        measured: Measured::new(Metric::RateCompleted, &rate),
        per_core: interval::requests_per_core(&proxy.cpu_cores_per_1000_rps)?,
        cpu_limit_cores: gateway_cpu_limit_cores(run.experiment, cell),
    };
    Some(OfCell::new(cell, capacity).resting_on(&rate))
}

/// Modes of the experiment, those with proxies first.
fn modes(run: &Run<'_>) -> Vec<Mode> {
    run.modes_with_proxies().into_iter().chain(run.experiment.modes.iter().copied()).collect()
}

/// Figure by which values of factors are compared under a load.
pub(super) fn compared(figure: Option<HeadlineFigure>, load: &LoadPoint) -> Metric {
    match figure {
        _ if load.is_fleet() => Metric::ConvergenceP99Us,
        None if load.is_closed_loop() => Metric::RateCompleted,
        Some(HeadlineFigure::Throughput) => Metric::RateCompleted,
        Some(HeadlineFigure::Cpu) => Metric::ProxiesCpuCoresPer1000Rps,
        figure => time(figure).under(load),
    }
}

/// What the first mode with proxies adds to the first token of a stream, and to the slowest tokens after it.
fn streams(run: &Run<'_>, figure: Option<HeadlineFigure>) -> Vec<Headline> {
    if matches!(figure, Some(HeadlineFigure::Throughput | HeadlineFigure::Cpu)) {
        return Vec::new();
    }
    let mut cells = run.reference_cells().filter(|cell| cell.load.stream.is_some());
    let added =
        cells.find_map(|cell| Some((cell, latency::added_to_floor(cell, time(figure).under(&cell.load))?)));
    let Some((cell, first)) = added else { return Vec::new() };
    [Some(first), latency::added_between_events(cell)].into_iter().flatten().map(Headline::Added).collect()
}

/// Differences between values of each factor in the first mode with proxies that it touches, at the reference load and with the
/// first values of the other factors. Those that are shown come first.
fn differences(run: &Run<'_>, figure: Option<HeadlineFigure>) -> Vec<Headline> {
    let factors = run.experiment.factors.iter();
    // What a service costs before the load is more exact than what it costs requests.
    let is_of_sizes = |factor: &Factor| factor.key == BACKGROUND_SERVICES && figure.is_none();
    let factors = factors.filter(|factor| !is_of_sizes(factor) && !is_of_components(&factor.key));
    let modes = modes(run);
    let of_factor = |factor: &Factor| {
        let mode = modes.iter().find(|mode| run.experiment.touches(**mode, &factor.key));
        mode.map_or_else(Vec::new, |mode| of_factor(run, factor, *mode, figure))
    };
    let mut found: Vec<(FindingVerdict, Headline)> = factors.flat_map(of_factor).collect();
    found.sort_by_key(|(verdict, _)| *verdict != FindingVerdict::Shown);
    found.into_iter().take(MAX_DIFFERENCES).map(|(_, headline)| headline).collect()
}

fn of_factor(
    run: &Run<'_>,
    factor: &Factor,
    mode: Mode,
    figure: Option<HeadlineFigure>,
) -> Vec<(FindingVerdict, Headline)> {
    let effects = run.summary.factor_effects.iter().filter(|effect| {
        let is_of_it = (effect.factor.as_str(), effect.mode) == (factor.key.as_str(), mode);
        is_of_it && effect.load.as_ref().is_some_and(|load| compared(figure, load) == effect.figure)
    });
    let effect = factors::nearest_effect(effects).map(|effect| {
        let figure = match effect.figure {
            Metric::ProxiesCpuCoresPer1000Rps => Metric::CpuCoresPer1000Rps,
            figure => figure,
        };
        let content = factors::content(effect, &factor.key, figure, &effect.change());
        (effect.verdict, Headline::Effect(content))
    });
    let all = &run.summary.factor_differences;
    let of_it = || all.iter().filter(|one| (one.factor.as_str(), one.mode) == (factor.key.as_str(), mode));
    let nearest = nearest_to_reference(of_it().filter(|one| compared(figure, &one.load) == one.figure));
    let values = nearest.into_iter().filter_map(|one| {
        let (figure, change) = headline_change(one.figure, one.estimate, one.relative)?;
        let between = || of_it().filter(|other| other.to == one.to);
        let mut difference = of_change(one, figure, &change);
        difference.n = between().filter(|other| other.verdict == FindingVerdict::Shown).count();
        Some((one.verdict, Headline::Values(ValuesHeadline { difference, of: between().count() })))
    });
    effect.into_iter().chain(values).collect()
}

/// Latency that the first mode with proxies adds at the entry of a topology, the slowest call, and the CPU of all proxies. The 99th
/// percentile leads unless the file chooses; if it cannot be judged, the median leads and the percentile follows.
fn entry(run: &Run<'_>, figure: Option<HeadlineFigure>) -> Vec<Headline> {
    if matches!(figure, Some(HeadlineFigure::Throughput | HeadlineFigure::Cpu)) {
        return Vec::new();
    }
    let metric = if figure.is_some() { time(figure) } else { Metric::ResponseTimeP99Us };
    let cells = run.reference_cells();
    let Some(cell) = cells.into_iter().find(|cell| !cell.edges.is_empty()) else { return Vec::new() };
    let wanted = latency::added_to_floor(cell, metric);
    let is_judged = |added: &OfCell<Added>| added.content.added.difference.low.is_some();
    let can_lead = |added: &OfCell<Added>| is_judged(added) && run.resolves(cell, metric.spoiled_by());
    let median = latency::added_to_floor(cell, Metric::ResponseTimeP50Us)
        .filter(|median| wanted.is_none() || is_judged(median));
    let median =
        median.filter(|_| metric != Metric::ResponseTimeP50Us && !wanted.as_ref().is_some_and(can_lead));
    let added: Vec<Headline> = median.into_iter().chain(wanted).map(Headline::Added).collect();
    if added.is_empty() {
        return added;
    }
    let slowest = cell.slowest_call().map(|(edge, value)| {
        let figure = Value { figure: Metric::ResponseTimeP99Us, value };
        let subject = format!("{} → {}", edge.from, edge.to);
        Headline::Call(OfCell::new(cell, About { subject, figure }))
    });
    let beside = [slowest, all_proxies(cell).map(Headline::Proxies)];
    added.into_iter().chain(beside.into_iter().flatten()).collect()
}

/// CPU of all proxies of a cell.
fn all_proxies(cell: &Cell) -> Option<Usage> {
    let cores = cell.total(Role::Proxy)?.cpu_cores;
    Some(Usage::about(cell, "proxies".to_owned(), Metric::CpuCores, &cores))
}
