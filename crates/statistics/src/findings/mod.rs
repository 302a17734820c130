//! Findings of a run as data, the headline first. The `report` crate turns them into sentences.
//!
//! Each finding refers to figures of the summary and names its cell. Percentiles with fewer than ten requests
//! beyond them in a trial yield no finding. A difference whose interval includes zero is not shown.
//!
//! Read [`findings`] for the order.
//!
//! - [`headline`] – the answer to the question of the run.
//! - [`latency`] – what the modes add.
//! - [`order`] – the order of the modes.
//! - [`throughput`] – closed loops.
//! - [`resources`] – what proxies use.
//! - [`graph`] – drivers, calls and services.
//! - [`footprint`] – memory and configuration of proxies before the load.
//! - [`pauses`] – percentiles that pauses of the machine can cause.
//! - [`sizes`] – the size of the mesh.
//! - [`factors`] – other numeric factors.
//! - [`word_factors`] – factors with non-numeric values.
//! - [`corners`] – all factors at their last values against all at their first.
//! - [`components`] – versions and programs.
//! - [`scaling`] – scaling laws.
//! - [`control_plane_model`] – costs of a control plane.
//! - [`validity`] – which figures can be trusted, and which trials are excluded.
//! - [`disturbed`] – figures that noise of the machine keeps out of the estimates.
//! - [`retakes`] – reruns.

mod components;
mod control_plane_model;
mod corners;
mod disturbed;
mod factors;
mod fleets;
mod footprint;
pub(crate) mod graph;
mod headline;
mod latency;
mod order;
mod pauses;
mod reservation;
pub(crate) mod resources;
mod retakes;
mod run;
mod scaling;
mod sizes;
mod throughput;
mod validity;
mod word_factors;

pub use fleets::counts_things;
pub use run::distance_from_reference;

use crate::trials::TrialsByCell;
use experiment::Experiment;
use graph::Greatest;
use resources::CpuScaling;
use results::{Finding, Summary};
use run::Run;

/// Every finding, the headline first, without its text.
pub(crate) fn findings(
    experiment: &Experiment,
    summary: &Summary,
    trials: &TrialsByCell<'_>,
    greatest: &[Greatest],
    cpu_scalings: &[CpuScaling],
) -> Vec<Finding> {
    let run = Run { experiment, summary, trials, greatest, cpu_scalings };
    let mut findings = headline::headline(&run);
    debug_assert!(findings.iter().all(|finding| matches!(finding, Finding::Headline(_))));
    findings.extend(fleets::convergence(&run));
    findings.extend(fleets::not_converged(&run));
    findings.extend(sizes::sizes(&run));
    findings.extend(corners::corners(&run));
    findings.extend(word_factors::differences(&run));
    findings.extend(factors::factors(&run));
    findings.extend(fleets::factors(&run));
    findings.extend(scaling::scaling(&run));
    findings.extend(control_plane_model::costs(&run));
    findings.extend(order::order(&run));
    findings.extend(throughput::full_machine(&run));
    findings.extend(throughput::cpu_per_request(&run));
    findings.extend(latency::added(&run));
    findings.extend(resources::proxies(&run));
    findings.extend(resources::scaling(&run));
    findings.extend(resources::control_plane(&run));
    findings.extend(reservation::reserved_and_used(&run));
    findings.extend(graph::graph(&run));
    findings.extend(footprint::before_the_load(&run));
    findings.extend(latency::hidden_waiting(&run));
    findings.extend(pauses::pauses(&run));
    findings.extend(validity::saturation(&run));
    findings.extend(validity::objective(&run));
    findings.extend(validity::driver_objectives(&run));
    findings.extend(validity::paths(&run));
    findings.extend(validity::unavailable_modes(&run));
    findings.extend(footprint::rejected_updates(&run));
    findings.extend(validity::excluded(&run));
    findings.extend(disturbed::disturbed(&run));
    findings.extend(retakes::reruns(&run));
    findings.extend(retakes::late_with_one_mode(&run));
    findings.extend(validity::limits(&run));
    findings.extend(validity::published(&run));
    findings
}
