//! The section `load.stream`.

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
