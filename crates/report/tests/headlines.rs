//! The headline answers the question of the run.

mod fixture;

use experiment::{Experiment, HeadlineFigure};
use fixture::designs::{DESIGNS, Design};
use report::RunData;
use results::{Figure, Figures, Mode, TrialRecord};

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
    fixture::access_logs(|trial, is_second| {
        let times = &mut trial.result.as_mut().expect("the fixture has a result").response_time_us;
        let noise = trial.repeat as f64;
        let more = if is_second { 300.0 } else { 0.0 };
        (times.p50, times.p99) = (Some(500.0 + noise), Some(1000.0 + more + noise));
    })
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
    assert!(cpu.starts_with("Access log json instead of off (sidecar): proxy CPU per request "), "{cpu}");
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

/// The headline of a gateway at two limits under an objective; the p99 is 50 ms at the lower limit and 10 ms at the higher one.
fn gateway_under(objective: &str) -> String {
    let mut trials = fixture::gateway_trials();
    for trial in &mut trials {
        let p99_us = if trial.factors["gateway.cpu"].to_string() == "100m" { 50_000.0 } else { 10_000.0 };
        let result = trial.result.as_mut().expect("the fixture has a result");
        result.response_time_us.p99 = Some(p99_us + trial.repeat as f64);
    }
    let run = fixture::run(trials);
    let objective = objective.parse().expect("an objective");
    let experiment = Experiment { objective, ..run.experiment };
    let planned = run.trials.len();
    let run = RunData::new(run.experiment_yaml, experiment, 42, planned, run.host, run.trials, vec![]);
    let headline = &run.summary.findings[0];
    format!("{} {}", headline.text, headline.detail)
}

#[test]
fn gateway_counts_replicas_of_sizes_that_are_shown_to_meet_the_objective() {
    let both = gateway_under("p99=100ms");
    assert!(both.contains("10000/s: 13 replicas of 0.2 CPU or 25 replicas of 0.1 CPU."), "{both}");
    let one = gateway_under("p99=20ms");
    assert!(one.contains("10000/s: 13 replicas of 0.2 CPU."), "{one}");
    let (_, detail) = one.split_once(" A replica of 0.1 CPU carries ").unwrap_or_else(|| panic!("{one}"));
    assert!(detail.ends_with(", not shown to meet p99=20ms."), "{one}");
    let none = gateway_under("p99=1ms");
    assert!(none.contains("10000/s: no size is shown to meet p99=1ms."), "{none}");
}

#[test]
fn topology_leads_with_its_entry_the_slowest_call_and_all_proxies() {
    let text = headline(fixture::tiered::tiered_trials(1), None);
    let parts = [" to p99", " of tiered-1/a (+", "slowest call tiered-1/a → ", " proxies use "];
    for part in parts {
        assert!(text.to_lowercase().contains(part), "{part}: {text}");
    }
}

/// A topology with these trials of sidecars without a usable 99th percentile.
fn disturbed_tail(is_disturbed: fn(&TrialRecord) -> bool) -> Vec<TrialRecord> {
    let mut trials = fixture::tiered::tiered_trials(1);
    for trial in trials.iter_mut().filter(|trial| trial.mode == Mode::Sidecar && is_disturbed(trial)) {
        let reason = "other-processes: others took 1.20 cores (rustc 1.20)";
        trial.verdict.spoil(reason, Figures::times_from(Figure::P99));
    }
    trials
}

#[test]
fn topology_leads_with_its_median_where_the_tail_cannot_be_judged() {
    let opening = "At 400/s a sidecar in every pod adds ";
    let one = headline(disturbed_tail(|trial| trial.repeat > 0), None);
    let tail = ", not shown: one repeat (sidecar: unusable in 2 of 3 trials: other-processes)";
    assert!(one.starts_with(opening) && one.contains(" to the median of tiered-1/a (+"), "{one}");
    assert!(one.contains("p99 +") && one.contains(tail), "{one}");
    let none = headline(disturbed_tail(|_| true), None);
    let tail = "p99 is not compared (sidecar: unusable in 3 of 3 trials: other-processes)";
    assert!(none.starts_with(opening) && none.contains(tail), "{none}");
    for part in ["slowest call ", " proxies use "] {
        let is_in = |text: &str| text.to_lowercase().contains(part);
        assert!(is_in(&one) && is_in(&none), "{part}: {one} {none}");
    }
    // With one repeat nothing can lead but the percentile itself.
    let single = disturbed_tail(|_| false).into_iter().filter(|trial| trial.repeat == 0).collect();
    let single = headline(single, None);
    let opening = "At 400/s p99 of tiered-1/a with a sidecar in every pod is ";
    assert!(single.starts_with(opening), "{single}");
    assert!(single.contains(" higher, not shown: one trial each."), "{single}");
}

/// The headline of a simulated run whose experiment asks for this figure.
fn simulated(design: Design, figure: Option<HeadlineFigure>) -> String {
    let (experiment, trials) = design.study(2);
    let (experiment, count) = (Experiment { headline: figure, ..experiment }, trials.len());
    let run = RunData::new(String::new(), experiment, 2, count, fixture::host(), trials, vec![]);
    let stated = &run.summary.findings[0];
    format!("{} {}", stated.text, stated.detail)
}

#[test]
fn far_corner_is_behind_the_differences_of_the_factors() {
    let corner = "; access log off → json, mTLS off → strict: ";
    let two = simulated(DESIGNS[0], None);
    let (differences, _) = two.split_once(corner).unwrap_or_else(|| panic!("{two}"));
    for factor in ["access log json instead of off (no mtls): ", "mtls strict instead of off ("] {
        assert!(differences.to_lowercase().contains(factor), "{two}");
    }
    let tail = simulated(DESIGNS[0], Some(HeadlineFigure::P90));
    assert!(tail.contains(": p90 ") && tail.contains(corner), "{tail}");
    // A factor that touches a gateway alone is no part of the sidecar's corner.
    let disjoint = simulated(DESIGNS[1], None);
    assert!(disjoint.contains(corner), "{disjoint}");
    assert!(disjoint.to_lowercase().contains("gateway cpu 1 instead of 250m ("), "{disjoint}");
    assert!(disjoint.contains("250m (gateway, "), "{disjoint}");
    let versions = simulated(DESIGNS[3], None);
    let corner = "Istio 1.29.4 → 1.30.1, access log off → json (sidecar, 300/s): median ";
    assert!(versions.starts_with("Istio 1.30.1 against 1.29.4: ") && versions.contains(corner), "{versions}");
}

#[test]
fn versions_and_sizes_of_the_mesh_lead_by_the_figure_of_the_experiment() {
    let sizes = Design {
        text: "mesh: istio, modes: [sidecar], load: {rate: 300}, istio: {background-services: {services: [0, 100]}}",
        ..DESIGNS[6]
    };
    let own = simulated(sizes, None);
    assert!(own.starts_with("Each background service costs "), "{own}");
    let names = ["median", "p90", "p99", "proxy CPU per request"];
    let figures = [HeadlineFigure::P50, HeadlineFigure::P90, HeadlineFigure::P99, HeadlineFigure::Cpu];
    for (figure, name) in figures.into_iter().zip(names) {
        for design in [DESIGNS[3], sizes] {
            let text = simulated(design, Some(figure));
            assert!(names.iter().all(|other| text.contains(other) == (*other == name)), "{name}: {text}");
        }
    }
    let size = simulated(sizes, Some(HeadlineFigure::P99));
    assert!(size.contains("100 background services instead of 0 "), "{size}");
}
