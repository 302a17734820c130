//! Terminal output.

mod fixture;

use report::terminal::{Options, load_text, render};
use results::{
    Estimate, GrpcMessages, HistogramSummary, LoadResult, Metric, Mode, SizeSummary, StreamEvents, Summary,
    TrialRecord,
};

fn text(summary: &Summary, width: usize) -> String {
    let text = render(summary, Options { width, colours: false });
    for line in text.lines() {
        assert!(line.chars().count() <= width, "over {width} columns: {line:?}");
    }
    text
}

/// The summary of these trials, with one finding of our own.
fn summary(trials: Vec<TrialRecord>) -> Summary {
    let mut summary = fixture::run(trials).summary;
    summary.findings = vec![fixture::said("What was found.")];
    summary
}

#[test]
fn run_at_80_columns() {
    insta::assert_snapshot!(text(&fixture::kept_summary(), 80));
}

#[test]
fn run_at_120_columns() {
    insta::assert_snapshot!(text(&fixture::kept_summary(), 120));
}

#[test]
fn fleets_have_a_line_per_cell_and_per_kind_of_change() {
    let run = fixture::fleets::fleet_run("proxies", &["100", "200"]);
    text(&run.summary, 60);
    for width in [80, 120] {
        insta::assert_snapshot!(format!("fleets_at_{width}_columns"), text(&run.summary, width));
    }
    let never = fixture::fleets::with_a_proxy_never_reached(run);
    insta::assert_snapshot!("fleets_with_a_proxy_never_reached", text(&never.summary, 100));
}

#[test]
fn factors_are_columns() {
    let factors: [(&str, &[&str]); 2] = [("load.connections", &["2", "16"]), ("proxy.cpu", &["250m", "1"])];
    let summary = summary(fixture::factor_trials(&factors));
    text(&summary, 60);
    let text = text(&summary, 100);
    let table = text.split("Proxy configuration and memory").next().unwrap_or_default();
    insta::assert_snapshot!(table);
}

#[test]
fn each_gateway_has_a_line() {
    let summary = summary(fixture::gateway_trials());
    text(&summary, 60);
    for width in [80, 120] {
        let text = text(&summary, width);
        let section = text.split("Gateways").nth(1).expect("a section");
        let section = section.split("Proxy configuration").next().unwrap_or_default();
        insta::assert_snapshot!(format!("gateways_at_{width}_columns"), section);
    }
}

#[test]
fn forty_cells_fit_width() {
    for width in [60, 80, 100, 160] {
        text(&summary(fixture::many_trials()), width);
    }
}

#[test]
fn proxy_configuration_and_memory_table() {
    let modes = [Mode::None, Mode::Sidecar, Mode::AmbientWaypoint];
    let mut summary = summary(fixture::trials(&modes, &[1000.0], 3));
    for (cell, component) in summary.cells.iter_mut().flat_map(|cell| {
        let mode = cell.mode;
        cell.components.iter_mut().map(move |component| (mode, component))
    }) {
        if cell == Mode::Sidecar && component.configuration.is_some() {
            let configured_in_s =
                Estimate { estimate: 0.342, low: Some(0.31), high: Some(0.37), n: 3, alone: None };
            component.estimates.set(Metric::ConfiguredInS, Some(configured_in_s));
        }
    }
    let held = |width| {
        let text = text(&summary, width);
        let section = text.split("Proxy configuration and memory\n").nth(1).expect("the section");
        section.split("\n\n").next().unwrap_or_default().to_owned()
    };
    insta::assert_snapshot!("what_each_proxy_holds_at_80_columns", held(80));
    insta::assert_snapshot!("what_each_proxy_holds_at_120_columns", held(120));
    held(60);
}

#[test]
fn drivers_and_services_of_five_namespaces() {
    let summary = summary(fixture::tenant_trials(5));
    for width in [60, 100, 160] {
        text(&summary, width);
    }
    let shown = |width| {
        let text = text(&summary, width);
        let at = text.find("Drivers\n").expect("the section");
        let end = text.find("Proxy configuration and memory").unwrap_or(text.len());
        text[at..end].to_owned()
    };
    insta::assert_snapshot!("drivers_and_services_at_80_columns", shown(80));
    insta::assert_snapshot!("drivers_and_services_at_120_columns", shown(120));
}

#[test]
fn both_clocks_if_they_differ() {
    let summary = summary(fixture::saturated_trials());
    for width in [60, 160] {
        text(&summary, width);
    }
    let text = text(&summary, 100);
    let section = text.split("Corrected and uncorrected\n").nth(1).expect("the section");
    insta::assert_snapshot!(section.split("Proxy configuration and memory").next().unwrap_or_default());
}

#[test]
fn reserved_and_used_resources() {
    let mut summary = summary(fixture::trials(&[Mode::None, Mode::Sidecar], &[500.0, 1000.0], 3));
    fixture::reserve(&mut summary);
    text(&summary, 60);
    let text = text(&summary, 80);
    let section = text.split("Reserved against used\n").nth(1).expect("the section");
    insta::assert_snapshot!(section.split("Proxy configuration and memory").next().unwrap_or_default());
}

#[test]
fn fifty_drivers_are_folded() {
    let text = text(&summary(fixture::tenant_trials(50)), 120);
    let section = text.split("Drivers\n").nth(1).expect("the section").split("Services\n").next().unwrap();
    let words = section.replace('\n', " ");
    assert!(words.contains("50 drivers: p99 ") && words.contains("The 5 slowest:"), "{section}");
    assert!(section.lines().count() < 20, "{section}");
}

#[test]
fn calls_between_services_are_folded_over_namespaces() {
    let summary = summary(fixture::tiered::tiered_trials(5));
    for width in [60, 100, 160] {
        text(&summary, width);
    }
    let shown = |width| {
        let text = text(&summary, width);
        let at = text.find("Services\n").expect("the section");
        let end = text.find("Reserved against used").unwrap_or(text.len());
        text[at..end].trim_end().to_owned()
    };
    insta::assert_snapshot!("services_and_calls_at_80_columns", shown(80));
    insta::assert_snapshot!("services_and_calls_at_120_columns", shown(120));
}

#[test]
fn services_and_calls_of_a_cell_without_any_figure_have_no_table() {
    let mut summary = summary(fixture::tiered::tiered_trials(5));
    let cell = summary.cells.iter_mut().find(|cell| cell.mode == Mode::Sidecar).expect("it was measured");
    for service in &mut cell.services {
        (service.requests_per_s, service.cpu_cores, service.proxy_cpu_cores) = (None, None, None);
    }
    for edge in &mut cell.edges {
        (edge.requests_per_s, edge.response_time_us, edge.errors) = (None, None, 0.0);
    }
    let text = text(&summary, 120);
    let shown = |mode: &str, what: &str| {
        text.lines().any(|line| line.starts_with(&format!("{mode} at ")) && line.contains(what))
    };
    for what in ["services:", "edges:"] {
        assert!(shown("none", what) && !shown("sidecar", what), "{text}");
    }
}

#[test]
fn single_mode_has_no_comparison() {
    let text = text(&summary(fixture::trials(&[Mode::Sidecar], &[1000.0], 3)), 80);
    assert!(!text.contains("added"), "{text}");
    assert!(text.contains("sidecar"), "{text}");
}

#[test]
fn run_without_valid_trial_states_reason() {
    insta::assert_snapshot!(text(&summary(fixture::invalid_trials()), 80));
}

#[test]
fn run_without_trials_is_reported() {
    insta::assert_snapshot!(text(&summary(vec![]), 80));
}

#[test]
fn colour_is_used_only_on_request() {
    for (summary, width) in
        [fixture::kept_summary(), summary(fixture::invalid_trials())].iter().zip([80, 120])
    {
        let text = render(summary, Options { width, colours: false });
        assert!(!text.contains('\u{1b}'));
        let mut coloured = render(summary, Options { width, colours: true });
        assert!(coloured.contains("\u{1b}[1m"));
        for sequence in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[33m"] {
            coloured = coloured.replace(sequence, "");
        }
        assert_eq!(coloured, text, "width {width}");
    }
}

#[test]
fn control_characters_in_untrusted_text_are_removed() {
    let mut summary = summary(fixture::invalid_trials());
    summary.findings.push(fixture::said("\u{1b}]0;title\u{7}\u{1b}[2J"));
    for cell in &mut summary.cells {
        cell.verdict = "broken: \u{1b}[31mred".to_owned();
    }
    let text = render(&summary, Options { width: 80, colours: false });
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
}

fn load_result() -> LoadResult {
    let mut trials = fixture::trials(&[Mode::None], &[1000.0], 1);
    trials.remove(0).result.expect("the fixture has a result")
}

#[test]
fn load_run() {
    insta::assert_snapshot!(load_text(&load_result()));
}

#[test]
fn load_run_with_objective() {
    let mut result = load_result();
    let objective = "p50=100us,p99=1s,errors=0.1%,achieved=99%".parse().expect("an objective");
    result.objective = Some(statistics::check_result(&objective, &result));
    let text = load_text(&result);
    insta::assert_snapshot!(&text[..text.find("target").expect("a target")]);
}

#[test]
fn load_run_with_handshakes_has_a_line_for_them() {
    let mut result = load_result();
    assert!(!load_text(&result).contains("TLS"));
    result.handshake_time_us = HistogramSummary {
        count: 64,
        p50: Some(812.0),
        p99: Some(2405.0),
        max: Some(2561.0),
        ..HistogramSummary::default()
    };
    let text = load_text(&result);
    let line = text.lines().find(|line| line.starts_with("TLS")).expect("a line").replace('\u{a0}', " ");
    assert_eq!(line, "TLS            64 full handshakes: p50 812 µs, p99 2.40 ms, max 2.56 ms");
}

#[test]
fn saturated_load_run_starts_with_warning() {
    let mut result = load_result();
    result.rate.sent = 612.3;
    result.rate.completed = 611.9;
    result.requests.sent = 1837;
    result.requests.unsent = 1163;
    result.requests.completed = 1836;
    result.requests.failed = 1;
    result.requests.errors.insert("timeout".to_owned(), 1);
    result.requests.status.insert("200".to_owned(), 1800);
    result.requests.status.insert("503".to_owned(), 36);
    result.verdict.valid = false;
    result.verdict.saturated = true;
    result.verdict.reasons = vec!["saturated: 61 % of the offered rate was completed".to_owned()];
    result.verdict.notes = vec!["the generator used 97 % of a core".to_owned()];
    insta::assert_snapshot!(load_text(&result));
}

#[test]
fn streaming_calls_have_lines_for_messages() {
    let mut result = load_result();
    result.requests.grpc_status =
        [("OK".to_owned(), 2999), ("UNAVAILABLE".to_owned(), 1)].into_iter().collect();
    let times = |count, p50| HistogramSummary {
        count,
        p50: Some(p50),
        p99: Some(4.0 * p50),
        max: Some(5.0 * p50),
        ..HistogramSummary::default()
    };
    result.grpc =
        Some(GrpcMessages { messages_sent: 3000, messages_received: 3000, ..GrpcMessages::default() });
    let text = load_text(&result);
    assert!(text.contains("gRPC statuses  OK: 2999, UNAVAILABLE: 1\n"), "{text}");
    // A single message per call is not mentioned.
    assert!(!text.contains("messages"), "{text}");
    result.grpc = Some(GrpcMessages {
        messages_sent: 30_000,
        messages_received: 30_000,
        message_time_us: times(27_000, 80.0),
        first_message_time_us: times(3000, 120.0),
        ..GrpcMessages::default()
    });
    let text = load_text(&result).replace(['\u{202f}', '\u{a0}'], " ");
    let lines: Vec<_> = text.lines().skip_while(|line| !line.starts_with("messages")).take(3).collect();
    assert_eq!(
        lines,
        [
            "messages       30 000 sent, 30 000 received",
            "first message  p50 120 µs, p99 480 µs, max 600 µs",
            "next message   p50 80.0 µs, p99 320 µs, max 400 µs",
        ]
    );
}

#[test]
fn streams_of_events_have_lines_for_them() {
    let mut result = load_result();
    let times = |p50| HistogramSummary {
        count: 3000,
        p50: Some(p50),
        p99: Some(2.0 * p50),
        max: None,
        ..HistogramSummary::default()
    };
    let per_response = SizeSummary { count: 3000, min: 20, mean: 20.0, stddev: 0.0, max: 20 };
    result.events = Some(StreamEvents { received: 60_000, per_response, ..StreamEvents::default() });
    result.first_byte_us = Some(times(900.0));
    result.first_event_us = Some(times(50_100.0));
    result.event_gap_us = Some(times(10_000.0));
    let text = load_text(&result).replace(['\u{202f}', '\u{a0}'], " ");
    let lines: Vec<_> = text.lines().skip_while(|line| !line.starts_with("events")).take(4).collect();
    assert_eq!(
        lines,
        [
            "events         60 000 received, 20 per response",
            "first byte     p50 900 µs, p99 1.80 ms, max no response",
            "first event    p50 50.1 ms, p99 100 ms, max no response",
            "next event     p50 10.0 ms, p99 20.0 ms, max no response",
        ]
    );
    let per_response = SizeSummary { max: 30, mean: 21.25, ..per_response };
    result.events = Some(StreamEvents { received: 63_750, per_response, ..StreamEvents::default() });
    let text = load_text(&result).replace(['\u{202f}', '\u{a0}'], " ");
    assert!(text.contains("63 750 received, 20 to 30 per response, 21.2 on average\n"), "{text}");
}

#[test]
fn load_run_without_responses_shows_no_times() {
    let mut result = load_result();
    for times in [&mut result.response_time_us, &mut result.service_time_us, &mut result.schedule_lag_us] {
        *times = HistogramSummary::default();
    }
    result.requests.completed = 0;
    result.requests.sent = 0;
    result.requests.unsent = 3000;
    result.requests.status.clear();
    result.requests.errors.insert("connect: refused \u{1b}[2J".to_owned(), 12);
    result.verdict.valid = false;
    result.verdict.reasons = vec!["errors: no connection could be opened".to_owned()];
    insta::assert_snapshot!(load_text(&result));
}

#[test]
fn rerun_trials_are_marked() {
    let trials = fixture::retaken_trials();
    let summary = fixture::run_of(trials, 9).summary;
    for width in [60, 80, 120] {
        let text = text(&summary, width);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("9 trials recorded of 9 planned, 8 valid. 2 rerun (+)"), "{text}");
        assert!(flat.contains("Excluded: 1 of 4 trials (1 rerun) of gateway"), "{text}");
        assert!(flat.contains("Excluded: 2 of 4 trials (1 rerun) of sidecar"), "{text}");
        assert!(flat.contains("2 trials were rerun"), "{text}");
        let row =
            |mode: &str| text.lines().find(|line| line.starts_with(mode)).unwrap_or_default().to_owned();
        assert!(row("none").contains("3/3 ") && !row("none").contains('+'), "{text}");
        assert!(row("gateway").contains("3/3+1"), "{text}");
        assert!(row("sidecar").contains("2/3+1"), "{text}");
    }
}
