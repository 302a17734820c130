//! Unusual, incomplete or hostile results.

use super::*;

#[test]
fn untrusted_text_is_never_markup() {
    let evil = "</title></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let mut run = fixture::run(fixture::usual_trials());
    run.summary.name = evil.to_owned();
    run.summary.question = evil.to_owned();
    run.summary.findings = vec![fixture::said(evil), fixture::said(evil)];
    run.experiment_yaml = evil.to_owned();
    run.notes = vec![evil.to_owned()];
    run.host.cpu_model = evil.to_owned();
    run.host.versions[0].version = evil.to_owned();
    for figure in &mut run.summary.published {
        figure.differs = evil.to_owned();
    }
    for cell in &mut run.summary.cells {
        cell.verdict = evil.to_owned();
        for component in &mut cell.components {
            component.name = evil.to_owned();
            component.unread = vec![evil.to_owned()];
        }
    }
    for trial in &mut run.trials {
        trial.verdict.reasons.push(evil.to_owned());
        trial.verdict.notes.push(evil.to_owned());
        trial.log_tails.insert(evil.to_owned(), vec![evil.to_owned()]);
        trial.started_at = evil.to_owned();
        trial.load.protocol = evil.to_owned();
        for proxy in &mut trial.path.proxies {
            proxy.name = evil.to_owned();
        }
    }
    for cell in &mut run.summary.cells {
        cell.load.protocol = evil.to_owned();
    }
    let page = render(&run);
    assert!(!page.contains("<script") && !page.contains("<img"), "{}", around(&page, "<script"));
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(page.contains(&shown("<script>alert(1)</script>")), "shown as text");
}

#[test]
fn missing_figures_do_not_break_page() {
    let mut run = fixture::run(fixture::usual_trials());
    let missing = Estimate {
        estimate: f64::NAN,
        low: Some(f64::NEG_INFINITY),
        high: Some(f64::INFINITY),
        n: 2,
        alone: None,
    };
    for cell in &mut run.summary.cells {
        if let Some(times) = &mut cell.response_time_us {
            times.p50 = Some(missing);
        }
        if let Some(added) = &mut cell.added_us {
            added.p99 = Some(missing);
        }
        for component in &mut cell.components {
            component.cpu_cores = missing;
            ComponentSummary::by_key().for_each(|metric| component.estimates.set(metric, Some(missing)));
            if let Some(configuration) = &mut component.configuration {
                configuration.size_bytes = missing;
            }
        }
    }
    for trial in &mut run.trials {
        if let Some(result) = &mut trial.result {
            result.response_time_us.p50 = Some(f64::NAN);
            result.duration_s = f64::NAN;
        }
    }
    page(&run);
}

#[test]
fn figures_of_hundreds_of_digits_do_not_break_page() {
    let mut run = fixture::run(fixture::usual_trials());
    for trial in &mut run.trials {
        if let Some(result) = &mut trial.result {
            result.response_time_us.p99 = Some(1e308);
        }
    }
    page(&run);
}

#[test]
fn unreadable_histogram_is_reported() {
    let mut run = fixture::run(fixture::usual_trials());
    let spoilt = run
        .trials
        .iter_mut()
        .find(|trial| trial.mode == Mode::Gateway)
        .and_then(|trial| trial.result.as_mut());
    spoilt.expect("there is such a trial").response_time_us.histogram = "AAAA".to_owned();
    let page = page(&run);
    assert!(page.contains(&shown("No curve for gateway at 500/s")), "the page does not say so");
    assert!(has_section(&page, "percentiles"), "the other curves stay");
}

#[test]
fn run_without_valid_trial_explains_why() {
    let page = page(&fixture::run(fixture::invalid_trials()));
    assert!(page.contains("schedule-lag: p99 2.31 ms"));
    for id in ["left-out", "trials", "machine", "repeat"] {
        assert!(has_section(&page, id), "no section {id}");
    }
    for id in ["percentiles", "added", "resources", "holdings"] {
        assert!(!has_section(&page, id), "section {id} without a figure");
    }
}

#[test]
fn run_without_trials_states_that_nothing_was_measured() {
    let page = page(&fixture::run_of(vec![], 30));
    assert!(page.contains("0 of 30 planned trials"), "{page}");
    assert!(page.contains("No trial was recorded."), "{page}");
}

#[test]
fn run_cut_short_starts_with_warning() {
    let trials: Vec<TrialRecord> = fixture::usual_trials().into_iter().take(14).collect();
    let page = page(&fixture::run_of(trials, 30));
    let warning = page.find("14 of 30 planned trials").expect("the page says that the run was cut short");
    assert!(warning < page.find("<section").unwrap());
}
