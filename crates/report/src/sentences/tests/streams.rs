use super::*;
use results::StreamEvents;

const STREAMS: &str = "{name: t, mesh: istio, modes: [none, sidecar, ingress], repeats: 4, \
                       load: {clients: [4, 20], duration: 2500ms, stream: {prompt: [2KB, 220KB], tokens: 20}}, \
                       published: {source: A gateway, differs: everything, figures: [\
                       {figure: first-token-mean, mode: ingress, clients: 20, prompt: 220KB, value: 158ms}, \
                       {figure: first-token-p50, mode: ingress, clients: 60, value: 426ms}]}}";

/// Streams whose first tokens take 50 ms and what the mode adds, and longer for large prompts; the gaps of proxies have a tail.
fn streams(trial: &mut TrialRecord) {
    let (added_us, tail_us) = match trial.mode {
        Mode::None => (0.0, 20.0),
        Mode::Sidecar => (900.0, 400.0),
        _ => (600.0, 300.0),
    };
    let stream = trial.load.stream.as_ref().unwrap();
    let noise_us = [0.0, 12.0, -9.0, 4.0][trial.repeat];
    let first_us = 50_000.0 + added_us + noise_us + stream.prompt_bytes as f64 / 100.0;
    let count = trial.load.clients.unwrap() as u64 * 100;
    let mut gaps = LatencyHistogram::new();
    for gap in 0..count * 19 {
        let us = if gap % 50 == 0 { 20_000.0 + tail_us + noise_us } else { 20_000.0 };
        gaps.record(Duration::from_nanos((us * 1000.0) as u64));
    }
    let mut firsts = LatencyHistogram::new();
    (0..count).for_each(|_| firsts.record(Duration::from_nanos((first_us * 1000.0) as u64)));
    let result = trial.result.as_mut().unwrap();
    let whole_us = first_us + 19.0 * 20_000.0;
    let mut whole = LatencyHistogram::new();
    (0..count).for_each(|_| whole.record(Duration::from_nanos((whole_us * 1000.0) as u64)));
    (result.first_event_us, result.event_gap_us) = (Some(firsts.summary()), Some(gaps.summary()));
    result.response_time_us = whole.summary();
    result.events = Some(StreamEvents { received: count * 20, ..StreamEvents::default() });
}

#[test]
fn run_of_streams_is_about_tokens() {
    let (_, summary) = run(STREAMS, streams);
    let reported = reported(&summary);
    insta::assert_snapshot!(reported);
    assert!(!reported.contains("response time") && !reported.contains("clients"), "{reported}");
    let [first, gap] = [Metric::FirstEventP50Us, Metric::EventGapP99Us].map(|metric| {
        let cell =
            summary.cells.iter().find(|cell| cell.mode == Mode::Sidecar && cell.load.clients == Some(20));
        let added = cell.unwrap().added(metric.clock().unwrap()).unwrap();
        added.judged(metric.spoiled_by()).unwrap()
    });
    assert_eq!((first.1, gap.1), (FindingVerdict::Shown, FindingVerdict::Shown));
    assert!(
        (first.0.estimate - 900.0).abs() < 60.0 && (gap.0.estimate - 380.0).abs() < 60.0,
        "{first:?} {gap:?}"
    );
    let sidecar = summary.cells.iter().find(|cell| cell.mode == Mode::Sidecar).unwrap();
    let estimates = &sidecar.streams.as_ref().unwrap().estimates;
    // 400 streams of 20 tokens in 2.5 s.
    assert_eq!(estimates.get(Metric::EventsPerS).unwrap().estimate, 3200.0);
    let cores = sidecar.total(Role::Proxy).unwrap().cpu_cores.estimate;
    let per_1000_s = estimates.get(Metric::ProxiesCpuSPer1000Events).unwrap().estimate;
    assert!((per_1000_s - cores / 3.2).abs() < 1e-9, "{per_1000_s} {cores}");
    let again: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    let kept = again.cells.iter().find(|cell| cell.mode == Mode::Sidecar).unwrap().streams.as_ref().unwrap();
    assert_eq!(kept.estimates.get(Metric::EventsPerS).unwrap().n, 4);
    assert_eq!(kept.added.unwrap().event_gap_us.verdicts.p99, Some(FindingVerdict::Shown));
    insta::assert_snapshot!(crate::terminal::render(
        &summary,
        crate::terminal::Options { width: 120, colours: false }
    ));
    let csv = crate::cells_csv::table(&summary);
    let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    for column in
        ["first_event_p50_us", "added_first_event_p99_us", "event_gap_max_us", "added_event_gap_p99_us_low"]
    {
        assert!(columns.contains(&column), "{column}: {columns:?}");
    }
}

#[test]
fn streams_without_a_difference_say_so() {
    let (_, summary) = run(STREAMS, |trial| {
        let mode = std::mem::replace(&mut trial.mode, Mode::None);
        streams(trial);
        trial.mode = mode;
    });
    insta::assert_snapshot!(summary.findings[0].text);
}

/// A stream that broke before its first token ranks above all others: its percentile is none.
#[test]
fn streams_without_a_first_token_have_no_percentile() {
    let (_, summary) = run(STREAMS, |trial| {
        streams(trial);
        let firsts = trial.result.as_mut().unwrap().first_event_us.as_mut().unwrap();
        firsts.censored = firsts.count * 2;
        (firsts.p50, firsts.p90, firsts.p99) = (None, None, None);
    });
    let cell = &summary.cells[1];
    let first = cell.streams.as_ref().unwrap().first_event_us.unwrap();
    assert_eq!((first.p50, first.censored.map(|censored| censored.from)), (None, Some(results::Figure::P50)));
    assert!(summary.findings[0].text.contains("falls among requests"), "{}", summary.findings[0].text);
}

#[test]
fn page_says_of_which_times_its_figures_are() {
    let page = |text: &str, change: fn(&mut TrialRecord)| {
        let experiment = Experiment::parse(text, "test").unwrap();
        let mut trials: Vec<TrialRecord> = Plan::new(&experiment, 1).trials.iter().map(trial).collect();
        trials.iter_mut().for_each(change);
        let count = trials.len();
        let run =
            crate::RunData::new(String::new(), experiment, 1, count, Host::default(), trials, Vec::new());
        crate::html::render(&run)
    };
    let (of_streams, of_requests) = (page(STREAMS, streams), page(THREE_MODES, |_| {}));
    assert!(of_streams.contains("Figures here are times to the first token, from the intended start too,"));
    assert!(of_requests.contains("Figures here are response times unless"));
}

/// Tokens of the sidecar are late and the ends of its streams are not: the objective tells them apart.
#[test]
fn objective_is_judged_by_the_time_that_it_names() {
    let with = |objective: &str| {
        let text = STREAMS.replace("repeats: 4", &format!("repeats: 4, objective: {{{objective}}}"));
        let (experiment, summary) = run(&text, streams);
        let cell = summary.cells.iter().find(|cell| {
            let of_prompt = |size: &str| cell.factors.values().any(|value| value.to_string() == size);
            cell.mode == Mode::Sidecar && cell.load.clients == Some(4) && of_prompt("2KB")
        });
        let cell = cell.expect("it is measured");
        let drivers: Vec<_> = cell.drivers.iter().map(|driver| driver.objective).collect();
        assert!(drivers.iter().all(|objective| *objective == cell.objective), "{drivers:?}");
        (cell.objective, statistics::objective::misses(&experiment, cell).join(" "), summary)
    };
    use results::DriverObjective::{Met, Missed};
    assert_eq!(with("p50: 500ms").0, Some(Met), "the whole stream");
    let (met, misses, _) = with("first-event-p50: 60ms, event-gap-p50: 25ms, event-gap-max: 30ms");
    assert_eq!((met, misses.as_str()), (Some(Met), ""));
    let (missed, misses, summary) = with("p50: 500ms, first-event-p50: 50500us");
    assert_eq!(missed, Some(Missed));
    assert!(misses.contains("first-event-p50 is ") && misses.contains(", above "), "{misses}");
    let found = summary.findings.iter().find(|finding| finding.text.starts_with("Objective: "));
    assert!(found.expect("it is a finding").detail.contains("first-event-p50 is "), "{found:?}");
    let (missed, misses, _) = with("event-gap-max: 20100us");
    assert_eq!(missed, Some(Missed));
    assert!(misses.contains("event-gap-max is "), "{misses}");
}

#[test]
fn prices_and_sizes_of_streams_say_that_they_are_of_first_tokens() {
    use results::SizeQuestion;
    use statistics::size::price::{PriceQuestion, price};
    use statistics::size::{MeasuredRun, size};

    let text = "{name: t, mesh: istio, modes: [none, sidecar], repeats: 4, \
                load: {clients: [4, 20], duration: 2500ms, stream: {prompt: 2KB, tokens: 20}}}";
    let measured = |text: &str, change: fn(&mut TrialRecord)| {
        let experiment = Experiment::parse(text, "test").unwrap();
        let mut trials: Vec<TrialRecord> = Plan::new(&experiment, 1).trials.iter().map(trial).collect();
        trials.iter_mut().for_each(change);
        MeasuredRun { directory: "runs/a".to_owned(), experiment, host: Host::default(), trials }
    };
    let run = measured(text, streams);
    let priced = price(&PriceQuestion::default(), std::slice::from_ref(&run));
    let sidecar = priced.modes.iter().find(|mode| mode.mode == Mode::Sidecar).expect("it is priced");
    let added = sidecar.entries[0].added_us;
    assert!((added.p50.unwrap().estimate - 900.0).abs() < 60.0, "{added:?}");
    let latency = priced.rests_on.iter().find(|basis| basis.what == "added latency").expect("it says so");
    assert!(latency.value.starts_with("to the first events of streams, at "), "{latency:?}");

    let question = SizeQuestion { target_rps: 10.0, mode: Some(Mode::Sidecar), ..SizeQuestion::default() };
    let objective = "first-event-p50=60ms,event-gap-p50=25ms".parse().unwrap();
    let answer = |run: MeasuredRun| {
        let mut sized = size(&question, Some(objective), &[run]);
        crate::sentences::size::fill_size(&mut sized);
        sized
    };
    let sized = answer(run);
    let option = &sized.answers.first().unwrap_or_else(|| panic!("{:?}", sized.refusals)).options[0];
    let times: Vec<&str> = option.measured.response_time_us.keys().map(String::as_str).collect();
    assert_eq!(times, ["event-gap-p50", "first-event-p50", "first-event-p99"]);
    assert!(crate::sentences::size::size_opening(&sized).contains("objective first-event-p50=60ms"));
    let plain = answer(measured(&text.replace(", stream: {prompt: 2KB, tokens: 20}", ""), |_| ()));
    let refusal = &plain.refusals[0].text;
    assert!(refusal.contains("first-event-p50: responses of runs/a are not streams"), "{refusal}");
}
