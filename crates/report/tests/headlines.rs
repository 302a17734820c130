//! The headline answers the question of the run.

mod fixture;

use experiment::{Experiment, HeadlineFigure};
use report::RunData;
use results::{FactorValue, Mode, TrialRecord};

/// The headline of a run whose experiment asks for this figure.
fn headline(trials: Vec<TrialRecord>, figure: Option<HeadlineFigure>) -> String {
    let run = fixture::run(trials);
    let experiment = Experiment { headline: figure, ..run.experiment };
    let planned = run.trials.len();
    let run = RunData::new(run.experiment_yaml, experiment, 42, planned, run.host, run.trials, vec![]);
    let headline = &run.summary.findings[0];
    format!("{} {}", headline.text, headline.detail)
}

/// Two values of a word in two modes; the second adds 300 µs to the 99th percentile alone.
fn words() -> Vec<TrialRecord> {
    let mut trials = fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 8);
    for trial in &mut trials {
        let is_second = trial.repeat % 2 == 1;
        trial.repeat /= 2;
        let value = if is_second { "json" } else { "off" };
        trial.factors.insert("proxy.access-log".to_owned(), FactorValue::from_typed(value));
        let times = &mut trial.result.as_mut().expect("the fixture has a result").response_time_us;
        let noise = trial.repeat as f64;
        let more = if is_second { 300.0 } else { 0.0 };
        (times.p50, times.p99) = (Some(500.0 + noise), Some(1000.0 + more + noise));
    }
    trials
}

#[test]
fn values_of_a_factor_lead_and_the_experiment_chooses_the_figure() {
    let median = headline(words(), None);
    let opening = "Access log json instead of off (sidecar, 1000/s): median ";
    assert!(median.starts_with(opening) && median.contains("not shown"), "{median}");
    let tail = headline(words(), Some(HeadlineFigure::P99));
    assert!(tail.contains("Access log json instead of off (sidecar, 1000/s): p99 +0.30 ms"), "{tail}");
    assert!(!tail.contains("not shown"), "{tail}");
    let cpu = headline(words(), Some(HeadlineFigure::Cpu));
    assert!(
        cpu.contains("Access log json instead of off (sidecar, 1000/s): proxy CPU per request "),
        "{cpu}"
    );
}

#[test]
fn modes_lead_by_the_figure_of_the_experiment() {
    let trials = || fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 3);
    let tail = headline(trials(), Some(HeadlineFigure::P99));
    assert!(tail.contains(" to p99"), "{tail}");
    let cpu = headline(trials(), Some(HeadlineFigure::Cpu));
    assert!(cpu.contains("with a sidecar pair 2 proxies use 0.4"), "{cpu}");
}

#[test]
fn gateway_leads_with_requests_per_core_and_replicas() {
    let text = headline(fixture::gateway_trials(), None);
    let opening = "A core of gateway carries ";
    let replicas = "10000/s: 13 replicas of 0.2 CPU or 25 replicas of 0.1 CPU.";
    assert!(text.starts_with(opening) && text.contains(replicas), "{text}");
}

#[test]
fn topology_leads_with_its_entry_the_slowest_call_and_all_proxies() {
    let text = headline(fixture::tiered::tiered_trials(1), None);
    let parts = [" to p99", " of tiered-1/a (+", "slowest call tiered-1/a → ", " proxies use "];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}
