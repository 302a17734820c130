//! What the reader takes, what it refuses and in which words.

use super::Override;
use crate::definition::{Experiment, LoadLevels};
use crate::environment::AccessLog;
use crate::plan::Plan;
use proptest::prelude::*;
use std::time::Duration;

const SMALL: &str = "name: small\nmodes: [none, sidecar]\nload: {rate: 1000}\n";
const STUDY: &str = include_str!("../../../../studies/sidecar-cost.yaml");
const FULL: &str = "\
name: full
question: Does every key read?
topology: pair
mesh: envoy
modes: [none, gateway, sidecar]
load:
  {protocol: http/1.1, payload: 2KB, connections: 8, rate: [500/s, 1k], arrival: poisson, warmup: 250ms,
   duration: 1m30s, timeout: 2s, threads: 2}
repeats: 3
seed: 18446744073709551615
objective: {p50: 5ms, p90: 10ms, p99: 20ms, p99.9: 1.5s, errors: 0.1%}
proxy: {workers: 4, mtls: off, access-log: json, cpu: 500m}
server: {delay: 1ms, error-rate: 5%, cpu: 2}
client: {cpu: 0.5}
";

fn rendered(text: &str) -> String {
    Experiment::parse(text, "experiment.yaml").unwrap_err().render(false)
}

fn rendered_with(overrides: &[Override]) -> String {
    Experiment::parse_with(SMALL, "experiment.yaml", overrides).unwrap_err().render(false)
}

#[test]
fn every_key_is_read_and_the_rest_has_defaults() {
    let full = Experiment::parse(FULL, "full").unwrap();
    assert_eq!(full.proxy.access_log, AccessLog::Json);
    assert!(!full.proxy.mtls);
    assert_eq!(full.load.duration, Duration::from_secs(90));
    assert_eq!(full.objective.p99_9, Some(Duration::from_millis(1500)));
    assert_eq!(full.server.payload_bytes, 2000);
    assert_eq!(full.seed, Some(u64::MAX));
    insta::assert_snapshot!(Experiment::parse(SMALL, "small").unwrap().to_yaml(), @r#"
        name: small
        question: ""
        topology: pair
        mesh: envoy
        modes:
        - none
        - sidecar
        load:
          protocol: http/1.1
          payload: 1KiB
          connections: 4
          rate:
          - 1000
          arrival: uniform
          warmup: 1s
          duration: 10s
          timeout: 5s
          threads: 1
        repeats: 5
        proxy:
          workers: 2
          mtls: true
          access-log: "off"
        server:
          delay: 0s
          error-rate: 0%
    "#);
}

#[test]
fn the_preset_study_ends_within_two_minutes() {
    let study = Experiment::parse(STUDY, "sidecar-cost.yaml").unwrap();
    let time = Plan::new(&study, 1).estimated_time();
    assert!(time < Duration::from_secs(110), "{time:?}");
}

#[test]
fn what_is_written_reads_back_to_the_same() {
    for text in [
        SMALL,
        FULL,
        STUDY,
        "name: closed\nmodes: none\nload: {clients: [1, 8]}\nquestion: 'a: \"b\" # \\ {c}'",
    ] {
        let experiment = Experiment::parse(text, "first").unwrap();
        let written = experiment.to_yaml();
        let again = Experiment::parse(&written, "again")
            .unwrap_or_else(|error| panic!("{}\n{written}", error.render(false)));
        assert_eq!(again, experiment, "{written}");
    }
}

#[test]
fn a_section_that_is_no_map_is_told_what_it_has() {
    for (section, keys) in super::section::SECTIONS.iter().filter(|(section, _)| !section.is_empty()) {
        let other = if *section == "load" { "" } else { "load: {rate: 1}\n" };
        let text = rendered(&format!("name: x\nmodes: [none]\n{other}{section}: text\n"));
        assert!(text.contains(&format!("`{section}` is not a map")), "{text}");
        assert!(text.contains(keys[0]), "{text}");
    }
}

#[test]
fn wrong_files_say_where_and_what_was_expected() {
    let cases = [
        "",
        "just text",
        "name: x\nmodes: [none]\nlod: {rate: 5}\n",
        "name: x\nmodes: [none]\nload: {rate: 5, payloda: 1KB}\n",
        "name: x\nmodes: [none]\nrate: 5\nload: {}\n",
        "name: x\nmodes: [none]\nload:\n  rate: 1000\n  duration: 5\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, clients: 4}\n",
        "name: x\nmodes: [none]\nload: {warmup: 1s}\n",
        "name: x\nmodes: [none]\nload: {rate: 0}\n",
        "name: x\nmodes: [none]\nload: {rate: .inf}\n",
        "name: x\nmodes: [none]\nload: {rate: [1000, 1k]}\n",
        "name: x\nmodes: [none]\nload: {rate: 50000000}\n",
        "name: x\nmodes: [none]\nload: {rate: 1, duration: 2s}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, warmup: 0s}\n",
        "name: x\nmodes: []\nload: {rate: 1000}\n",
        "name: x\nmodes: [none, none]\nload: {rate: 1000}\n",
        "name: x\nmodes: [none, sidcar]\nload: {rate: 1000}\n",
        "name: x\nmodes: [none, ambient]\nload: {rate: 1000}\n",
        "name: x\nmesh: istio\nmodes: [none]\nload: {rate: 1000}\n",
        "name: x\ntopology: tiers.yaml\nmodes: [none]\nload: {rate: 1000}\n",
        "name: ../x\nmodes: [none]\nload: {rate: 1000}\n",
        "modes: [none]\nload: {rate: 1000}\n",
        "name: x\nmodes: [none]\nload: {clients: 8, connections: 4}\n",
        "name: x\nmodes: [none]\nload: {clients: 8, arrival: poisson}\n",
        "name: x\nmodes: [none]\nload: {rate: 100, threads: 8}\n",
        "name: x\nmodes: [none]\nload: {rate: 100, duration: 10s}\nobjective: {p99.9: 5ms}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000}\nobjective: {p50: 5ms, p99: 4ms}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, timeout: 1s}\nobjective: {p99: 2s}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, timeout: 1s}\nserver: {delay: 1s}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000}\nrepeats: 0\n",
        "name: x\nmodes: [none]\nload: {rate: 1000}\nrepeats:\n",
        "name: x\nmodes: [none]\nload: [1000]\n",
        "name: x\nmodes: [none]\nload: {rate: {a: 1}}\n",
        "name: x\nname: y\nmodes: [none]\n",
        "name: x\nmodes: [none\nload: {rate: 1000}\n",
        "name: x\n---\nname: y\n",
        "name: x\n<<: {modes: [none]}\n",
        "name: \u{1b}[31mred\u{7}\nmodes: [none]\n",
        "naïve: \"é\u{1F600}\"\n",
    ];
    let text: Vec<String> = cases.iter().map(|case| rendered(case)).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn overrides_change_the_file_and_errors_name_the_option() {
    let changes = [
        Override::set("load.rate=[500, 1000]"),
        Override::set("proxy.workers=4"),
        Override::set("objective.p99.9=2s"),
        Override::repeats("2"),
        Override::duration("20s"),
        Override::scale("2"),
    ];
    let experiment = Experiment::parse_with(SMALL, "small", &changes).unwrap();
    assert!(matches!(&experiment.load.levels, LoadLevels::Open { rates, .. } if *rates == [1000.0, 2000.0]));
    assert_eq!((experiment.proxy.workers, experiment.repeats), (4, 2));
    assert_eq!(experiment.load.duration, Duration::from_secs(20));
    assert_eq!(experiment.objective.p99_9, Some(Duration::from_secs(2)));

    let closed =
        [Override::set("load.rate=null"), Override::set("load.clients=[3, 8]"), Override::scale("0.1")];
    let error = Experiment::parse_with(SMALL, "small", &closed).unwrap_err();
    assert!(error.message.contains("same level twice"), "{error}");

    let text = [
        rendered_with(&[Override::set("load.rate=abc")]),
        rendered_with(&[Override::set("load.rtae=5")]),
        rendered_with(&[Override::set("load.rtae=null")]),
        rendered_with(&[Override::set("lod.rate=5")]),
        rendered_with(&[Override::set("load.rate=[500, 1000")]),
        rendered_with(&[Override::set("load.rate")]),
        rendered_with(&[Override::set("name.first=5")]),
        rendered_with(&[Override::set("=")]),
        rendered_with(&[Override::set("load.clients=4")]),
        rendered_with(&[Override::repeats("0")]),
        rendered_with(&[Override::duration("5")]),
        rendered_with(&[Override::scale("-1")]),
        rendered_with(&[Override::scale("1000000")]),
    ];
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn hostile_files_end_quickly() {
    let deep = "[".repeat(100_000);
    let deep_block: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let long_line = format!("name: {}", "y".repeat(900_000));
    let huge = "x".repeat(2 << 20);
    for text in [&deep, &deep_block, &bomb, &long_line, &huge] {
        let error = Experiment::parse(text, "hostile").unwrap_err();
        assert!(error.render(true).len() < 2000, "{}", error.render(true).len());
    }
}

#[test]
fn places_count_characters_and_bytes() {
    let error =
        Experiment::parse("name: ok\nquestion: \"é\"\nmodes: [ é ]\nload: {rate: 1000}\n", "x").unwrap_err();
    assert_eq!((error.line, error.column), (3, 10));
    assert_eq!(error.span, 33..35);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
        let _ = Experiment::parse(&text, "any").map_err(|error| error.render(true));
    }

    #[test]
    fn no_yaml_like_text_makes_the_reader_panic(text in "[a-z0-9 :,\\[\\]{}&*<>|'\"#%!\\n\\-.?]{0,120}") {
        let _ = Experiment::parse(&text, "any").map_err(|error| error.render(true));
    }

    #[test]
    fn no_mutation_of_a_good_file_makes_the_reader_panic(
        cuts in prop::collection::vec((0_usize..600, 0_usize..12, "[ -~é\\n\\t]{0,4}"), 1..6),
    ) {
        let mut characters: Vec<char> = FULL.chars().collect();
        for (at, length, insert) in cuts {
            let start = at.min(characters.len());
            let end = (start + length).min(characters.len());
            characters.splice(start..end, insert.chars());
        }
        let text: String = characters.into_iter().collect();
        match Experiment::parse(&text, "mutated") {
            Ok(experiment) => {
                let again = Experiment::parse(&experiment.to_yaml(), "again");
                prop_assert_eq!(again.ok(), Some(experiment));
            }
            Err(error) => prop_assert!(!error.render(false).is_empty()),
        }
    }

    #[test]
    fn no_override_makes_the_reader_panic(text in "[a-z.=\\[\\]{}0-9 é:,-]{0,40}") {
        let _ = Experiment::parse_with(SMALL, "x", &[Override::set(text)]).map_err(|error| error.render(true));
    }
}
