//! The section `load.stream`.

use super::{NoFiles, Override};
use crate::definition::Experiment;
use crate::plan::Plan;
use crate::topology::distribution::{Distribution, Times};
use results::{Clock, StreamLoad};

fn text(load: &str) -> String {
    format!("name: s\nmesh: istio\nmodes: [none, sidecar]\nload: {{clients: [4, 20], {load}}}\n")
}

fn read(text: &str) -> Experiment {
    Experiment::parse(text, "s").unwrap_or_else(|error| panic!("{}", error.render(false)))
}

#[test]
fn prompts_and_schedule_are_read_and_written_back() {
    let experiment = read(&text(
        "stream: {prompt: [2KB, 220KB], tokens: 30, first: exp:40ms, gap: uniform:15ms..25ms, pause: 100ms}",
    ));
    assert_eq!(read(&experiment.to_yaml()), experiment, "{}", experiment.to_yaml());
    let stream = &experiment.load.stream;
    assert_eq!((stream.prompt_bytes, stream.tokens), (2000, 30));
    assert_eq!(stream.first, Times(Distribution::Exponential { mean: 0.04 }));
    let plan = Plan::new(&experiment, 1);
    assert_eq!(plan.trials.len(), 2 * 2 * 2 * experiment.repeats);
    let large = plan.trials.iter().find(|trial| trial.factors["load.stream.prompt"].to_string() == "220KB");
    let load = &large.unwrap().load;
    let expected = StreamLoad {
        prompt_bytes: 220_000,
        tokens: 30,
        first: "exp:40ms".to_owned(),
        gap: "uniform:15ms..25ms".to_owned(),
        pause_s: 0.1,
    };
    assert_eq!((load.stream.as_ref(), load.payload_bytes), (Some(&expected), 0));
    assert_eq!((Clock::of_load(load), load.is_closed_loop()), (Clock::FirstEvent, false));
    for trial in &plan.trials {
        assert_eq!(trial.queries, ["first=exp:40ms&gap=uniform:15ms..25ms"]);
        let endpoints = trial.spec.topology.drivers.iter().map(|driver| driver.endpoint.as_str());
        assert!(endpoints.eq(["/v1/chat/completions"]));
    }
    let described = plan.to_string();
    assert!(described.contains("30 tokens for prompts of 2000 or 220000 bytes"), "{described}");
    assert!(described.contains("4 streams") && !described.contains("clients"), "{described}");
}

#[test]
fn loads_without_the_section_are_not_streams() {
    let experiment = read(&text("payload: 1KiB"));
    assert!(!experiment.to_yaml().contains("stream"), "{}", experiment.to_yaml());
    let plan = Plan::new(&experiment, 1);
    let trial = &plan.trials[0];
    assert!(trial.load.stream.is_none() && trial.queries.is_empty() && trial.load.is_closed_loop());
}

#[test]
fn empty_section_is_a_stream_of_the_defaults() {
    let defaults = read(&text("stream: {prompt: 2KB}"));
    assert!(defaults.load.stream.declared);
    let set = |text: &str| Experiment::parse_with(text, "s", &[Override::set("load.stream={}")], &NoFiles);
    for empty in [read(&text("stream: {}")), read(&text("stream: null")), set(&text("warmup: 1s")).unwrap()] {
        assert_eq!(empty, defaults);
        assert_eq!(read(&empty.to_yaml()), empty, "{}", empty.to_yaml());
    }
    let refused = set(&text("payload: 2KiB")).unwrap_err().render(false);
    assert!(refused.contains("`load.payload` has no effect with `load.stream`"), "{refused}");
    let refused = set(&text("protocol: grpc")).unwrap_err().render(false);
    assert!(refused.contains("`load.stream` contradicts protocol `grpc`"), "{refused}");
}

/// Error of a load after a change.
fn refused(load: &str, change: &str) -> String {
    let overrides = [Override::set(change)];
    Experiment::parse_with(&text(load), "s", &overrides, &NoFiles).expect_err(change).render(false)
}

#[test]
fn key_that_makes_streams_long_is_named() {
    const ALL: &str = "duration: 2s, stream: {prompt: 2KB, tokens: 20, first: 20ms, gap: 20ms}";
    for (load, change, said) in [
        (
            ALL,
            "load.timeout=100ms",
            "`load.stream.tokens` makes streams of 400ms, and requests fail after 100ms",
        ),
        (
            ALL,
            "load.stream.first=20s",
            "`load.stream.first` makes streams of 20.38s, and requests fail after 5s",
        ),
        (ALL, "load.stream.tokens=100000", "`load.stream.tokens` makes streams of 2000s"),
        (ALL, "load.stream.gap=exp:1s", "`load.stream.gap` makes streams of 19.02s"),
        (
            ALL,
            "load.stream.tokens=[20, 200]",
            "`load.stream.tokens` makes streams of 4s, and the measured window is 2s",
        ),
        ("stream: {prompt: 2KB}", "load.timeout=400ms", "`load.stream` makes streams of 430ms"),
        (
            "stream: {}",
            "load.duration=400ms",
            "`load.stream` makes streams of 430ms, and the measured window is 400ms",
        ),
    ] {
        let told = refused(load, change);
        assert!(told.starts_with(said), "{change}: {told}");
    }
    read(&text("duration: 430ms, stream: {}"));
}

#[test]
fn open_loop_has_a_connection_for_each_stream_under_way() {
    let open = |load: &str| text(load).replace("clients: [4, 20]", "rate: 200");
    let refused = |load: &str| Experiment::parse(&open(load), "s").expect_err(load).render(false);
    let told = refused("stream: {first: 20ms}");
    assert!(told.contains("4 connections cannot carry 200 streams/s of 400ms each"), "{told}");
    assert!(told.contains("expected `load.connections` of at least 80: in http/1.1"), "{told}");
    let told = refused("connections: 79, stream: {first: exp:20ms, gap: uniform:10ms..30ms}");
    assert!(told.contains("79 connections cannot carry"), "{told}");
    read(&open("connections: 80, stream: {first: exp:20ms, gap: uniform:10ms..30ms}"));
    read(&open("protocol: http/2, stream: {first: 20ms}"));
}

#[test]
fn contradictions_report_place_and_expectation() {
    let stream = "stream: {tokens: 20}";
    let reports: Vec<String> = [
        text(&format!("protocol: grpc, {stream}")),
        text(&format!("{stream}, payload: 2KiB")),
        text(&format!("{stream}, timeout: 400ms")),
        text("stream: {prompt: 100B}"),
        text("stream: {prompt: 2MiB}"),
        text("stream: {gap: often}"),
        text("stream: {tokens: 0}"),
        text("stream: {speed: 2}"),
        text("stream: {pause: 10ms}").replace("clients: [4, 20]", "rate: 100"),
        text(stream) + "topology: chain\n",
        text(stream).replace("sidecar", "ingress") + "ingress: {paths: 10}\n",
    ]
    .iter()
    .map(|text| Experiment::parse(text, "s").expect_err(text).render(false))
    .collect();
    insta::assert_snapshot!(reports.join("\n"));
}

#[test]
fn objective_of_streams_is_read_and_written_back() {
    let objective =
        "objective: {p99: 2s, first-event-p99: 200ms, event-gap-p99.9: 30ms, first-byte-max: 1s}\n";
    let experiment = read(&(text("stream: {}") + objective));
    assert_eq!(
        experiment.objective.to_string(),
        "p99=2s,first-byte-max=1s,first-event-p99=200ms,event-gap-p99.9=30ms"
    );
    assert_eq!(read(&experiment.to_yaml()), experiment, "{}", experiment.to_yaml());
    let overrides = [Override::set("objective.first-event-p99.9=300ms")];
    let set = Experiment::parse_with(&text("stream: {}"), "s", &overrides, &NoFiles).unwrap();
    assert_eq!(set.objective.to_string(), "first-event-p99.9=300ms");
}

#[test]
fn objective_of_streams_needs_streams_and_enough_of_their_times() {
    let without = refused("payload: 1KiB", "objective.event-gap-p99=30ms");
    assert!(without.contains("`objective.event-gap-p99` has no effect without `load.stream`"), "{without}");
    assert!(without.contains("`load.stream: {}` makes responses streams of tokens"), "{without}");
    let longer = refused("stream: {}", "objective.first-event-p99=30s");
    assert!(longer.contains("requests end after 5s"), "{longer}");
    let overrides = ["objective.first-event-p50=20ms", "objective.first-event-p90=10ms"].map(Override::set);
    let falling = Experiment::parse_with(&text("stream: {}"), "s", &overrides, &NoFiles).unwrap_err();
    let falling = falling.render(false);
    assert!(
        falling.contains("first-event-p90 under 10ms contradicts first-event-p50 under 20ms"),
        "{falling}"
    );
    // 100 streams of 21 tokens have 100 first tokens, and 2000 times between tokens.
    let open = |objective: &str| {
        let load = "stream: {tokens: 21}, rate: 20, duration: 5s, protocol: http/2";
        let text =
            text(load).replace("clients: [4, 20], ", "") + &format!("objective: {{{objective}: 1s}}\n");
        Experiment::parse(&text, "s").map_err(|error| error.render(false))
    };
    let few = open("first-event-p99").unwrap_err();
    assert!(few.contains("100 requests in a trial at 20/s leave 1.0 beyond it"), "{few}");
    open("event-gap-p99").unwrap();
    let few = open("event-gap-p99.9").unwrap_err();
    assert!(few.contains("2000 times between tokens in a trial at 20/s leave 2.0 beyond it"), "{few}");
    assert!(few.contains("it takes `duration: 25s`"), "{few}");
}
