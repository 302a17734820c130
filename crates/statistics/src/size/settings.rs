//! What runs must have in common besides their machine: cells of several runs make one sweep only under the
//! same settings.

use super::groups::{Sized, level};
use experiment::settings::proxy::ProxySettings;
use experiment::{Experiment, LoadLevels, LoadSettings};
use results::Cell;

/// The experiment of a cell, with its values of the factors.
pub(super) fn experiment_of<'a>(experiment: &'a Experiment, cell: &Cell) -> &'a Experiment {
    experiment.combination_of(&cell.factors).unwrap_or(experiment)
}

/// Sections in which two experiments differ, not counting rates, numbers of clients and sizes of proxies.
pub(super) fn differing_sections(one: &Experiment, other: &Experiment) -> Vec<&'static str> {
    let sections = [
        ("mesh", one.mesh != other.mesh),
        ("topology", one.topology != other.topology),
        ("proxy", without_size(&one.proxy) != without_size(&other.proxy)),
        ("components", one.components != other.components),
        ("istio", one.istio != other.istio),
        ("ingress", one.ingress != other.ingress),
        ("server", one.server != other.server),
        ("load", loaded_otherwise(&one.load, &other.load)),
        ("client", one.client_cpu_limit_cores != other.client_cpu_limit_cores),
    ];
    sections.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// True if two loads differ in more than their rates or numbers of clients.
fn loaded_otherwise(one: &LoadSettings, other: &LoadSettings) -> bool {
    let arrival = |load: &LoadSettings| match load.levels {
        LoadLevels::Open { arrival, .. } => Some(arrival),
        LoadLevels::Closed { .. } | LoadLevels::Fleet => None,
    };
    let settings = |load: &LoadSettings| {
        (
            load.protocol,
            load.connections,
            load.requests_per_connection,
            load.timeout,
            load.expected_status.clone(),
            arrival(load),
        )
    };
    settings(one) != settings(other)
}

fn without_size(proxy: &ProxySettings) -> ProxySettings {
    let ProxySettings { workers, cpu_limit_cores, .. } = ProxySettings::default();
    ProxySettings { workers, cpu_limit_cores, ..proxy.clone() }
}

/// Joins the sweeps of one size that several runs made at different loads under the same settings.
pub(super) fn joined<'a>(options: Vec<Sized<'a>>) -> Vec<Sized<'a>> {
    let mut joined: Vec<Sized<'a>> = Vec::new();
    for option in options {
        match joined.iter_mut().find(|known| continues(known, &option)) {
            Some(known) => {
                known.further_runs.push(option.run);
                known.cells.extend(option.cells);
            }
            None => joined.push(option),
        }
    }
    joined
}

/// True if the runs have no load in common. Loads that both measured are two answers, and neither replaces
/// the other.
fn continues(known: &Sized<'_>, option: &Sized<'_>) -> bool {
    let loads = |sized: &Sized<'_>| sized.cells.iter().map(|cell| level(&cell.cell.load)).collect::<Vec<_>>();
    let (before, after) = (loads(known), loads(option));
    known.limits == option.limits
        && known.size == option.size
        && known.is_closed_loop() == option.is_closed_loop()
        && before.iter().all(|level| !after.contains(level))
        && differing_sections(known.experiment, option.experiment).is_empty()
}
