use super::*;
use results::finding::{About, Event, MachinePauses, OfCell, Value};

#[test]
fn disturbed_run_states_its_problems() {
    let objective = THREE_MODES.replace("repeats: 5", "repeats: 5, objective: {p99: 1ms, errors: 0.1%}");
    let (experiment, summary) = run(&objective, |trial| {
        if trial.mode == Mode::Sidecar && trial.load.rate == Some(1000.0) {
            invalidate(trial, "saturated: 612 of 1000 requests/s were answered", true);
            trial.result.as_mut().unwrap().rate.completed = 612.0;
        }
        if trial.mode == Mode::Gateway && trial.repeat == 0 {
            invalidate(trial, "generator-lag: 3 ms at the 99th percentile", false);
        }
        if trial.mode == Mode::None && trial.load.rate == Some(500.0) {
            trial.result.as_mut().unwrap().response_time_us = histogram(1250, 60.0, Some(1e6)).summary();
        }
        if trial.mode == Mode::Sidecar && trial.repeat == 1 {
            trial.result.as_mut().unwrap().requests.failed = 30;
        }
    });
    insta::assert_snapshot!(reported(&summary));
    assert_eq!(summary.cells[5].verdict, "saturated");
    assert!(summary.cells[5].response_time_us.is_none());
    insta::assert_snapshot!(format!("{:#?}", objective_met(&experiment, &summary)));
}

#[test]
fn saturation_is_not_stated_if_other_process_took_cpu() {
    let (_, summary) = run(THREE_MODES, |trial| {
        if trial.mode == Mode::Sidecar {
            invalidate(trial, "other-processes: others took 1.70 cores (rustc 1.70)", true);
        }
    });
    assert!(reported(&summary).contains("other-processes"), "{}", reported(&summary));
    assert!(!reported(&summary).contains("saturated"), "{}", reported(&summary));
}

#[test]
fn single_repeat_and_cut_short_run_state_no_differences() {
    let (_, single) = run(&THREE_MODES.replace("repeats: 5", "repeats: 1"), |_| {});
    insta::assert_snapshot!(reported(&single));
    assert!(single.cells.iter().all(|cell| cell.response_time_us.unwrap().p50.unwrap().low.is_none()));

    let experiment = Experiment::parse(THREE_MODES, "test").unwrap();
    let nothing = summarize(&experiment, 1, 30, &Host::default(), &[]);
    assert_eq!(nothing.findings[0].text, "Nothing can be said: no trial is valid.");
    assert!(reported(&nothing).contains("0 of 30 trials"));
    assert!(nothing.cells.iter().all(|cell| cell.verdict == "not-measured"));
    assert!(!objective_met(&experiment, &nothing).is_good());
}

#[test]
fn node_proxy_of_both_sides_counts_once() {
    let text = "{name: t, mesh: istio, modes: [none, ambient], load: {rate: 1000, duration: 1s}, repeats: 2}";
    let (_, summary) = run(text, |trial| {
        for proof in &mut trial.path.proxies {
            proof.name = "ztunnel".into();
        }
    });
    let reported = reported(&summary);
    assert!(reported.contains("Path of ambient: the proxy carried its requests"), "{reported}");
}

#[test]
fn path_finding_names_protocols_of_hops() {
    let text = "{name: t, mesh: istio, modes: [none, sidecar], load: {rate: 1000, duration: 1s}, repeats: 2}";
    let path = |second: HopProtocol| {
        let hop = |from: &str, to: &str, spoken| HopProof {
            from: from.to_owned(),
            to: to.to_owned(),
            spoken: vec![spoken],
            ..HopProof::default()
        };
        let (_, summary) = run(text, |trial| {
            let hops =
                [hop("client", "client-proxy", HopProtocol::Http1), hop("client-proxy", "server", second)];
            trial.path.hops = hops.into();
        });
        reported(&summary).lines().find(|line| line.starts_with("Path of")).unwrap().to_owned()
    };
    insta::assert_snapshot!(path(HopProtocol::Http1), @"Path of sidecar: every proxy carried its requests over mTLS; 2 hops HTTP/1.1.");
    insta::assert_snapshot!(path(HopProtocol::Http2), @"Path of sidecar: every proxy carried its requests over mTLS; 1 hop HTTP/1.1, 1 HTTP/2.");
}

#[test]
fn unavailable_modes_are_reported_and_keep_published_figures() {
    let experiment = Experiment::parse(THREE_MODES, "test").unwrap();
    let refused = |mode| UnavailableMode {
        mode,
        factors: results::Factors::new(),
        reason: "there is no ztunnel".into(),
        hint: Some("name one with --ztunnel".into()),
    };
    let host = Host {
        refused_modes: vec![refused(Mode::Ambient), refused(Mode::AmbientWaypoint)],
        ..Host::default()
    };
    let summary = summarize(&experiment, 1, 30, &host, &[]);
    assert!(reported(&summary).contains(
        "Not measured: ambient and ambient-waypoint: there is no ztunnel.\n    What helps: name one with --ztunnel."
    ), "{}", reported(&summary));
    let ambient = summary.published.iter().find(|figure| figure.what.starts_with("ambient:")).unwrap();
    assert_eq!((ambient.value.as_str(), &ambient.measured, ambient.ratio), ("0.060 cores", &None, None));
}

#[test]
fn published_relative_figures_agree_by_interval() {
    let (_, summary) = run(WAYS_OUT, closed_loop);
    let agreement: Vec<(&str, Option<&str>, Option<bool>)> = summary
        .published
        .iter()
        .map(|figure| (figure.value.as_str(), figure.measured.as_deref(), figure.agrees))
        .collect();
    insta::assert_debug_snapshot!(agreement);
    assert!(summary.published.iter().all(|figure| figure.ratio.is_none()), "a ratio of changes says nothing");
}

/// A host whose CPUs pause: per length in microseconds, the number per second and the fraction of the time.
fn pausing(by_length: &[(f64, f64, f64)]) -> Host {
    let long = |(at_least_us, per_s, fraction): &(f64, f64, f64)| LongPauses {
        at_least_us: *at_least_us,
        per_s: *per_s,
        fraction: *fraction,
    };
    let by_length = by_length.iter().map(long).collect();
    let idle = vec![CpuPauses { observed_s: 1.0, by_length, ..CpuPauses::default() }];
    let pauses = Some(Pauses { threshold_us: 20.0, idle, loaded: Vec::new() });
    Host { cpus: 4, noise_floor: Some(Floor { pauses, ..Floor::default() }), ..Host::default() }
}

fn on_host(host: &Host) -> Summary {
    let experiment = Experiment::parse(THREE_MODES, "test").unwrap();
    let plan = Plan::new(&experiment, 1);
    let trials: Vec<TrialRecord> = plan.trials.iter().map(trial).collect();
    summarize(&experiment, 1, plan.trials.len(), host, &trials)
}

fn made_by_pauses(summary: &Summary) -> Vec<(&OfCell<MachinePauses>, &str)> {
    let made = summary.findings.iter().filter_map(|stated| match &stated.finding {
        Finding::MachinePauses(pauses) => Some((pauses, stated.text.as_str())),
        _ => None,
    });
    made.collect()
}

#[test]
fn percentiles_caused_by_machine_pauses_are_named() {
    // On each CPU nine pauses of 1 to 4 ms per second.
    let often = on_host(&pausing(&[(100.0, 12.0, 0.0185), (1_000.0, 9.0, 0.018), (2_000.0, 5.0, 0.014)]));
    let found = made_by_pauses(&often);
    assert_eq!(found.len(), 6, "{found:#?}");
    assert!(found.iter().all(|(pauses, _)| pauses.content.measured.figure == Metric::ResponseTimeP99Us
        && pauses.content.share >= 0.01));
    assert!(found[0].1.starts_with("Pauses of this machine can cause p99 of every cell"), "{}", found[0].1);
    let reported = reported(&often);
    assert!(reported.contains("Pauses of the machine can cause this p99."), "{reported}");

    // Pauses that are as long, but rare. And frequent ones that are shorter than the distance of p99 from the
    // median, except for the baseline.
    let rare = on_host(&pausing(&[(100.0, 0.4, 0.0009), (1_000.0, 0.4, 0.0009), (2_000.0, 0.3, 0.0008)]));
    assert_eq!(made_by_pauses(&rare), Vec::new());
    let short = on_host(&pausing(&[(100.0, 60.0, 0.012), (500.0, 0.0, 0.0), (1_000.0, 0.0, 0.0)]));
    assert_eq!(made_by_pauses(&short), Vec::new());
    assert_eq!(made_by_pauses(&on_host(&Host::default())), Vec::new());
}

#[test]
fn percentile_with_few_events_only_has_few_samples_finding() {
    let (_, summary) = run(THREE_MODES, |trial| {
        let episodes = if trial.mode == Mode::Sidecar && trial.repeat == 3 { 4 } else { 25 };
        let result = trial.result.as_mut().unwrap();
        result.episodes = BTreeMap::from([("p99".to_owned(), episodes)]);
    });
    let few = summary.findings.iter().find_map(|stated| match &stated.finding {
        Finding::FewSamples(few) => Some((few, &stated.text)),
        _ => None,
    });
    let (few, text) = few.unwrap();
    let figure = Value { figure: Metric::ResponseTimeP99Us, value: 4.0 };
    assert_eq!(*few, About { subject: Event::Episodes, figure });
    assert!(text.contains("as few as 4 separate events in a trial"), "{text}");
    let tail = |mode: Mode| {
        let is_tail = |finding: &Finding| match finding {
            Finding::AddedLatency(added) => {
                (added.place.mode, added.content.value.figure) == (mode, Metric::ResponseTimeP99Us)
            }
            _ => false,
        };
        summary.findings.iter().filter(|stated| is_tail(&stated.finding)).count()
    };
    assert_eq!((tail(Mode::Sidecar), tail(Mode::Gateway)), (0, 1));
    let events: Vec<u64> = summary.cells.iter().map(|cell| cell.events_beyond["p99"]).collect();
    assert_eq!(events, [12, 12, 4, 25, 25, 4], "requests where they are fewer");
}

#[test]
fn objective_finding_names_deciding_figure() {
    let text = THREE_MODES.replace("repeats: 5", "repeats: 5, objective: {p50: 190us, p99: 1s}");
    let (_, summary) = run(&text, |_| {});
    let of = |mode: Mode| {
        let mut outcomes = summary.findings.iter().filter_map(|stated| match &stated.finding {
            Finding::Objective(outcome) => Some(outcome),
            _ => None,
        });
        let found = outcomes.find(|outcome| outcome.place.mode == mode).unwrap();
        let decisive = found.content.decisive.map(|decisive| (decisive.figure, decisive.estimate.is_some()));
        (found.content.outcome.name(), decisive, found.content.verdict)
    };
    let median = Some((Metric::ResponseTimeP50Us, true));
    assert_eq!(of(Mode::None), ("met", None, FindingVerdict::Shown));
    assert_eq!(of(Mode::Gateway), ("not-shown", median, FindingVerdict::NotShown));
    assert_eq!(of(Mode::Sidecar), ("missed", median, FindingVerdict::Shown));
    assert!(reported(&summary).contains("Not shown: gateway at "), "{}", reported(&summary));
}
