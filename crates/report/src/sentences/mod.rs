//! Sentences of findings, one function per kind.
//!
//! Read [`fill`] for how findings become text: findings that share a sentence have the same text. [`opening`]
//! and [`about`] select the sentences of a part of a report. Statements about intervals are limited to this
//! run.

pub(crate) mod control_plane_model;
pub mod control_plane_size;
mod fleets;
mod footprint;
mod graph;
mod latency;
mod order;
mod resources;
pub(crate) mod scaling;
mod select;
pub mod size;
mod sizes;
mod throughput;
mod trials;
mod validity;
mod word_factors;

pub use select::{about, opening, others};

use experiment::Experiment;
use results::{Cell, Finding, FindingKind, Mode, Summary};
use statistics::words;

/// Sets the texts of a summary's findings.
pub fn fill(experiment: &Experiment, summary: &mut Summary) {
    let texts: Vec<String> = {
        let run = Context { experiment, summary };
        let groups = summary.findings.chunk_by(|one, next| are_together(&run, one, next));
        groups
            .flat_map(|group| {
                let group: Vec<&Finding> = group.iter().collect();
                vec![sentence(&run, &group); group.len()]
            })
            .collect()
    };
    for (finding, text) in summary.findings.iter_mut().zip(texts) {
        finding.text = text;
    }
}

/// Data that sentences look up.
struct Context<'a> {
    experiment: &'a Experiment,
    summary: &'a Summary,
}

impl<'a> Context<'a> {
    /// The cell of a finding.
    fn cell(&self, finding: &Finding) -> Option<&'a Cell> {
        let key = finding.cell_key()?;
        self.summary.cells.iter().find(|cell| cell.key() == key)
    }

    /// A mode as the subject of a sentence.
    fn subject(&self, mode: Mode) -> String {
        let is_graph = self.summary.cells.iter().any(|cell| !cell.edges.is_empty());
        match mode {
            Mode::None => words::mode(mode).into(),
            Mode::Gateway => "a gateway".into(),
            Mode::Sidecar if is_graph => "a sidecar in every pod".into(),
            Mode::Sidecar => "a sidecar pair".into(),
            other => format!("mode {other}"),
        }
    }
}

/// True if one sentence states both findings.
fn are_together(run: &Context<'_>, one: &Finding, next: &Finding) -> bool {
    use FindingKind::{
        AddedLatency, ControlPlane, Convergence, CpuPerRequest, CpuScaling, ExcludedTrials, FactorDifference,
        FactorEffect, Footprint, FullMachine, Headline, HiddenWaiting, MachinePauses, MeshSize, Objective,
        Order, ProxyUsage, Published, Reruns, Reservation, SingleTrial, UnavailableMode,
    };
    let same_mode = one.mode == next.mode;
    one.kind == next.kind
        && match one.kind {
            Headline | FullMachine | CpuPerRequest | ControlPlane | Reservation | Objective
            | ExcludedTrials | Reruns | SingleTrial | Published => true,
            MachinePauses => one.figure == next.figure,
            AddedLatency | ProxyUsage | CpuScaling | Footprint => same_mode,
            Convergence => one.cell_key() == next.cell_key(),
            MeshSize => same_mode && sizes::part(one) == sizes::part(next),
            FactorEffect => same_mode && one.subject == next.subject,
            FactorDifference => one.cell_key() == next.cell_key() && one.subject == next.subject,
            Order => order::baseline(one) == order::baseline(next),
            HiddenWaiting => one.cell_key() == next.cell_key(),
            UnavailableMode => {
                trials::unavailable(run, one).map(|mode| (&mode.reason, &mode.hint))
                    == trials::unavailable(run, next).map(|mode| (&mode.reason, &mode.hint))
            }
            _ => false,
        }
}

fn sentence(run: &Context<'_>, group: &[&Finding]) -> String {
    let Some(first) = group.first() else { return String::new() };
    match first.kind {
        FindingKind::Headline => latency::headline(run, group),
        FindingKind::MeshSize => sizes::mesh_size(run, group),
        FindingKind::FactorEffect if fleets::is_of_fleet(first) => fleets::factor_effect(run, group),
        FindingKind::FactorEffect => sizes::factor_effect(run, group),
        FindingKind::Convergence => fleets::convergence(group),
        FindingKind::NotConverged => fleets::not_converged(first),
        FindingKind::Scaling => scaling::scaling(run, first),
        FindingKind::ControlPlaneCost => control_plane_model::cost(run, first),
        FindingKind::FactorDifference => word_factors::difference(group),
        FindingKind::Order => order::order(group),
        FindingKind::FullMachine => throughput::full_machine(group),
        FindingKind::CpuPerRequest => throughput::cpu_per_request(group),
        FindingKind::AddedLatency => latency::added(run, group),
        FindingKind::ProxyUsage => resources::proxy_usage(run, group),
        FindingKind::CpuScaling => resources::cpu_scaling(run, group),
        FindingKind::ControlPlane => resources::control_plane(group),
        FindingKind::Reservation => resources::reservation(group),
        FindingKind::SlowestDriver => graph::slowest_driver(first),
        FindingKind::GreatestAddedTime => graph::added_time(first),
        FindingKind::GreatestAddedCpu => graph::added_cpu(first),
        FindingKind::Footprint => footprint::footprint(run, group),
        FindingKind::RejectedUpdates => footprint::rejected_updates(first),
        FindingKind::HiddenWaiting => latency::hidden_waiting(group),
        FindingKind::Saturation => validity::saturation(run, first),
        FindingKind::Objective => validity::objective(run, group),
        FindingKind::DriverObjective => validity::driver_objective(first),
        FindingKind::MachinePauses => validity::machine_pauses(run, group),
        FindingKind::Path => validity::path(run, first),
        FindingKind::UnavailableMode => trials::unavailable_modes(run, group),
        FindingKind::CutShort => trials::cut_short(first),
        FindingKind::ExcludedTrials => trials::excluded(run, group),
        FindingKind::Reruns => trials::reruns(run, group),
        FindingKind::NoisyMachine => trials::noisy_machine(first),
        FindingKind::LateGenerator => trials::late_generator(run, first),
        FindingKind::FewSamples => validity::few_samples(first),
        FindingKind::SingleTrial => validity::single_trials(group),
        FindingKind::Published => validity::published(group),
        FindingKind::Text => first.text.clone(),
    }
}

/// Conditions of a finding, such as `at 1000 requests/s in this run`.
fn at(finding: &Finding) -> String {
    match finding.conditions() {
        Some(conditions) => format!("{} in this run", words::at(conditions)),
        None => "in this run".to_owned(),
    }
}

/// Like [`at`], as the start of a sentence.
fn at_first(finding: &Finding) -> String {
    words::sentence(&at(finding))
}

/// The cell of a finding as the start of a sentence, such as `Sidecar at 1000 requests/s in this run`.
fn place(finding: &Finding) -> String {
    let mode = finding.mode.map_or("the run", words::mode);
    words::sentence(&format!("{mode} {}", at(finding)))
}

#[cfg(test)]
mod tests;
