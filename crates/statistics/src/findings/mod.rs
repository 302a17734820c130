//! Findings of a run in words. The first finding is the headline.
//!
//! Each sentence rests on figures of the summary and names where it holds. Nothing is said of a percentile that rests on
//! fewer than ten requests in a trial. A difference whose interval includes zero is called not shown.
//!
//! Read [`findings`] for the order. [`latency`] is what the modes add, [`order`] their order, [`throughput`] closed loops,
//! [`resources`] what proxies use, [`graph`] drivers, calls and services, [`holdings`] what proxies hold, [`sizes`] the size of
//! the mesh, [`factors`] the other factors, [`validity`] what may be trusted and what was left out, [`retakes`] reruns,
//! [`words`] how figures are written.

mod factors;
mod graph;
mod holdings;
mod latency;
mod order;
mod reservation;
mod resources;
mod retakes;
mod run;
mod sizes;
mod throughput;
mod validity;
pub(crate) mod words;

#[cfg(test)]
mod tests;

use crate::trials::TrialsByCell;
use experiment::Experiment;
use experiment::schema::{FindingRecord, Summary};
use run::Run;

/// Findings about drivers, calls and services as data.
pub(crate) fn records(
    experiment: &Experiment,
    summary: &Summary,
    trials: &TrialsByCell<'_>,
) -> Vec<FindingRecord> {
    graph::records(&Run { experiment, summary, trials })
}

/// Every finding, the headline first.
pub(crate) fn findings(experiment: &Experiment, summary: &Summary, trials: &TrialsByCell<'_>) -> Vec<String> {
    let run = Run { experiment, summary, trials };
    let of_sizes = sizes::headline(&run);
    let headline = of_sizes.or_else(|| throughput::headline(&run));
    let mut findings = vec![headline.unwrap_or_else(|| latency::headline(&run))];
    findings
        .extend(sizes::sizes(&run).into_iter().filter(|finding| *finding != findings[0]).collect::<Vec<_>>());
    findings.extend(factors::factors(&run));
    findings.extend(order::order(&run));
    findings.extend(throughput::full_machine(&run));
    findings.extend(throughput::cpu_for_each_request(&run));
    findings.extend(latency::tails_and_other_modes(&run));
    findings.extend(resources::proxies(&run));
    findings.extend(resources::scaling(&run));
    findings.extend(resources::control_plane(&run));
    findings.extend(reservation::reserved_and_used(&run));
    findings.extend(graph::sentences(&run));
    findings.extend(holdings::before_the_load(&run));
    findings.extend(latency::hidden_by_service_time(&run));
    findings.extend(validity::saturation(&run));
    findings.extend(validity::objective(&run));
    findings.extend(validity::paths(&run));
    findings.extend(validity::refused_modes(&run));
    findings.extend(holdings::refusals(&run));
    findings.extend(validity::left_out(&run));
    findings.extend(retakes::taken_again(&run));
    findings.extend(retakes::late_with_one_mode(&run));
    findings.extend(validity::limits(&run));
    findings
}
