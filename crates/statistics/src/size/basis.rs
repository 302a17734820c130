//! Programs, filters and published figures of an answer: what a capacity holds for, and what others measured.

use super::SizedRun;
use super::groups::{Group, is_gateway};
use crate::published;
use crate::trials::versions;
use experiment::Experiment;
use results::{
    Cell, ComponentVersion, Mode, ProxyBuild, PublishedFigure, SizeNote, SizeNoteKind, TrialRecord,
};
use std::collections::BTreeSet;

/// Ratio to a published figure beyond which an answer warns.
const DIFFERS: f64 = 2.0;
/// Entries of `host.json` that are no programs of the requests' path.
const BESIDE_THE_PATH: [&str; 2] = ["linux", "iptables"];

/// The runs of a group.
fn runs<'a>(group: &Group<'_>, runs: &'a [SizedRun]) -> impl Iterator<Item = &'a SizedRun> {
    let indices: BTreeSet<usize> = group
        .options
        .iter()
        .flat_map(|option| option.further_runs.iter().copied().chain([option.run]))
        .collect();
    indices.into_iter().map(|index| &runs[index])
}

fn cells<'a>(group: &'a Group<'_>) -> impl Iterator<Item = (&'a Cell, &'a TrialRecord)> {
    let cells = group.options.iter().flat_map(|option| &option.cells);
    cells.flat_map(|cell| cell.trials.iter().map(|trial| (cell.cell, *trial)))
}

/// Programs that the trials of a group ran, and those of its runs that trials do not name. Of a program whose
/// versions differ between cells, only those of this group.
pub(super) fn programs(group: &Group<'_>, of_runs: &[SizedRun]) -> Vec<ComponentVersion> {
    let of_trials = versions(cells(group).map(|(_, trial)| trial));
    let is_further = |version: &&ComponentVersion| {
        let is_named = of_trials.iter().any(|known| known.name == version.name);
        !is_named && !BESIDE_THE_PATH.contains(&version.name.as_str())
    };
    let of_hosts = runs(group, of_runs).flat_map(|run| &run.summary.host.versions);
    let mut programs: Vec<ComponentVersion> = of_trials.iter().copied().cloned().collect();
    for version in of_hosts.filter(is_further) {
        if !programs.contains(version) {
            programs.push(version.clone());
        }
    }
    programs
}

/// Settings that cost CPU per request in the component of a group.
pub(super) fn filters(group: &Group<'_>) -> Vec<String> {
    let mut filters: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !filters.contains(&text) {
            filters.push(text);
        }
    };
    for option in &group.options {
        of_experiment(option.experiment, group.mode, &group.component).into_iter().for_each(&mut add);
    }
    for setup in cells(group).filter_map(|(cell, _)| cell.proxies) {
        add(match (setup.build, setup.telemetry) {
            (ProxyBuild::Upstream, _) => "upstream's build of Envoy, without Istio's telemetry".to_owned(),
            (ProxyBuild::Istio, true) => "Istio's telemetry".to_owned(),
            (ProxyBuild::Istio, false) => "no telemetry".to_owned(),
        });
    }
    filters
}

fn of_experiment(experiment: &Experiment, mode: Mode, component: &str) -> Vec<String> {
    let (proxy, ingress) = (&experiment.proxy, &experiment.ingress);
    let is_of_gateway = is_gateway(component);
    let mut filters = Vec::new();
    if is_of_gateway && ingress.declared {
        filters.push(format!("scenario {}", ingress.scenario.name()));
        let counted =
            |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let certificates = counted(ingress.credentials(), "certificate");
        filters.push(format!("{} with {certificates}", counted(ingress.domains, "TLS domain")));
        filters.extend(ingress.paths.map(|paths| counted(paths, "path") + " each"));
    }
    if !is_of_gateway || mode == Mode::Ingress {
        filters.push(format!("mutual TLS {} between proxies", proxy.mtls.name()));
    }
    filters.push(format!("access log {}", proxy.access_log.name()));
    if !proxy.cpu_time.is_zero() {
        filters.push(format!("{:.0} µs of CPU added per request", proxy.cpu_time.as_secs_f64() * 1e6));
    }
    filters
}

/// Published figures of the component, and a note for each that differs much from that of the runs.
pub(super) fn published(group: &Group<'_>, of_runs: &[SizedRun]) -> (Vec<PublishedFigure>, Vec<SizeNote>) {
    let mut figures: Vec<PublishedFigure> = Vec::new();
    for run in runs(group, of_runs) {
        let of_run = published::figures_of_proxy(&run.experiment, &run.summary, group.mode, &group.component);
        for figure in of_run {
            if !figures.contains(&figure) {
                figures.push(figure);
            }
        }
    }
    let differs = |figure: &&PublishedFigure| {
        figure.ratio.is_some_and(|ratio| !(1.0 / DIFFERS..=DIFFERS).contains(&ratio))
    };
    let note = |figure: &PublishedFigure| {
        let times = figure.ratio.unwrap_or(1.0);
        let times = if times < 1.0 { format!("1/{:.1}", 1.0 / times) } else { format!("{times:.1} times") };
        SizeNote::naming(
            SizeNoteKind::PublishedDiffers,
            format!("{}, {times} the published {}", figure.what, figure.value),
        )
    };
    let notes = figures.iter().filter(differs).map(note).collect();
    (figures, notes)
}
