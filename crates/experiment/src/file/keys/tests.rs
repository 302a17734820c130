//! The tables against the reader: ranges, words, quantities and defaults.

use super::*;
use crate::definition::Experiment;
use crate::file::{NoFiles, Override};
use crate::keys::{MAX_RUN_DURATION, SWITCH};
use crate::yaml::section::alternatives;
use results::LatencyHistogram;

/// No key accepts this as anything but text.
const GARBAGE: &str = "☃";
const REQUESTS: &str = "\
name: base
mesh: istio
modes: [none, sidecar, ingress]
load: {rate: 1000}
published: {source: a, figures: {figure: cpu, mode: sidecar, value: 1}}
";
/// Each client has a connection, so that streams of any length fit.
const STREAMS: &str = "name: base\nmesh: istio\nmodes: [none, sidecar]\nload: {clients: 4}\n";
const STATIC: &str = "name: base\nmodes: [none, gateway]\nload: {rate: 1000}\n";
const AMBIENT: &str = "name: base\nmesh: istio\nmodes: [none, ambient]\nload: {rate: 1000}\n";
const FLEET: &str = "name: base\nmesh: istio\nmodes: [control-plane]\nfleet: {}\n";

fn dotted(section: &SectionKeys, key: &Key) -> String {
    if section.path.is_empty() { key.name.to_owned() } else { format!("{}.{}", section.path, key.name) }
}

/// Reads an experiment with a key set to a value.
fn with(dotted: &str, value: &str) -> Result<Experiment, Box<crate::ExperimentError>> {
    let base = match dotted {
        _ if dotted.starts_with("fleet") || dotted.starts_with("istio.istiod.") => FLEET,
        _ if dotted.starts_with("load.stream") => STREAMS,
        "istio.ztunnel" => AMBIENT,
        "mesh" | "proxy.cpu-time" | "modes" => STATIC,
        _ => REQUESTS,
    };
    // Some keys have a meaning with another one alone, or without it.
    let beside = match dotted {
        "load.clients" => Some("load.rate=null"),
        "istio.background-services.endpoints" => Some("istio.background-services.services=1"),
        _ if dotted.starts_with("ingress.") => Some("ingress.credentials=1"),
        "load.stream.gap" => Some("load.stream.first=50ms"),
        _ if dotted.starts_with("load.stream.") => Some("load.stream.gap=20ms"),
        _ => None,
    };
    let changes: Vec<Override> =
        beside.into_iter().map(Override::set).chain([Override::set(format!("{dotted}={value}"))]).collect();
    Experiment::parse_with(base, "base", &changes, &NoFiles)
}

/// Sentence by which the reader refuses [`GARBAGE`]; absent for kinds that accept any text, or that the reader
/// refuses in words of its own.
fn refusal(kind: Kind) -> Option<String> {
    Some(match kind {
        Kind::Whole(least, most) => format!("expected a whole number from {least} to {most}"),
        Kind::Duration | Kind::PositiveDuration | Kind::DurationUpTo(_) | Kind::Milliseconds => {
            "is not a duration".to_owned()
        }
        Kind::Size | Kind::SizeFor(..) => "is not a size".to_owned(),
        Kind::Rate => "is not a rate".to_owned(),
        Kind::Fraction => "is not a fraction".to_owned(),
        Kind::Cores => "is not a number of CPU cores".to_owned(),
        Kind::OneOf(words) => format!("expected {}", alternatives(&words())),
        Kind::Switch => format!("expected {}", alternatives(&SWITCH.map(|(word, _)| word))),
        Kind::OneOrSeveral(kind) | Kind::OneOrDistinct(kind) => return refusal(*kind),
        Kind::Named(section) if section != "topology" => format!("`{section}` is not a map"),
        Kind::Either(_) | Kind::Named(_) | Kind::Matching(_) => String::new(),
        Kind::Text => return None,
        Kind::List(..) | Kind::Map(_) | Kind::OneKey(_) | Kind::MapOf(..) => {
            unreachable!("no key of an experiment has such a value")
        }
    })
}

#[test]
fn reader_refuses_values_in_the_words_of_the_table() {
    let mut checked = 0;
    for section in SECTION_KEYS.iter() {
        for DescribedKey { key, .. } in &section.keys {
            let dotted = dotted(section, key);
            let Some(mut expected) = refusal(key.value) else { continue };
            if dotted == "modes" {
                // Which modes there are depends on the mesh.
                expected = "is not a mode".to_owned();
            }
            let error = with(&dotted, GARBAGE).expect_err(&dotted);
            let text = format!("{}: {}", error.message, error.label);
            assert!(text.contains(&expected), "{dotted}: `{text}` lacks `{expected}`");
            checked += 1;
        }
    }
    assert!(checked > 100, "most keys refuse some text; {checked} do");
}

#[test]
fn sections_may_be_empty_in_the_schema_as_in_the_reader() {
    for section in SECTION_KEYS.iter().filter(|section| !["", "published.figures"].contains(&section.path)) {
        let empty = match section.path.split_once('.') {
            Some((outer, inner)) => format!("{outer}:\n  {inner}:\n"),
            None => format!("{}:\n", section.path),
        };
        let load = if section.path.starts_with("load") { "" } else { "load: {rate: 1000}\n" };
        let empty = empty.replace("load:\n  ", "load:\n  clients: 4\n  ");
        let text = format!("name: base\nmesh: istio\nmodes: [none, sidecar, ingress]\n{load}{empty}");
        let read = Experiment::parse(&text, "base");
        assert_eq!(
            read.is_ok(),
            section.may_be_empty(),
            "{text}: {:?}",
            read.err().map(|error| error.message)
        );
    }
}

#[test]
fn shape_parameters_have_the_ranges_of_the_table() {
    for parameter in shape_parameters() {
        let shape = SHAPES.iter().find(|shape| shape.parameter(parameter.name).is_some()).unwrap();
        let changes = [
            Override::set(format!("topology={}", shape.name)),
            Override::set(format!("topology.{}={GARBAGE}", parameter.name)),
        ];
        let error = Experiment::parse_with(STATIC, "base", &changes, &NoFiles).unwrap_err();
        let expected = match parameter.value {
            Kind::Whole(least, most) => format!("expected {least} to {most}"),
            Kind::Switch => "expected `true` or `false`".to_owned(),
            kind => refusal(kind).unwrap(),
        };
        let text = format!("{}: {}", error.message, error.label);
        assert!(text.contains(&expected), "{}: `{text}` lacks `{expected}`", parameter.name);
    }
}

#[test]
fn defaults_of_the_table_change_nothing() {
    let mut checked = 0;
    for section in SECTION_KEYS.iter() {
        for DescribedKey { key, default } in &section.keys {
            let Some(default) = default else { continue };
            // JSON is YAML.
            let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            let dotted = dotted(section, key);
            if section.path == "published" {
                // Kept as given; the default applies when figures are compared.
                assert_eq!(results::units::parse_fraction(&default), Ok(crate::published::DEFAULT_MARGIN));
                continue;
            }
            let (absent, given) = (with(&dotted, "null"), with(&dotted, &default));
            let given = given.unwrap_or_else(|error| panic!("{dotted}: {}: {}", error.message, error.label));
            assert_eq!(absent.unwrap(), given, "{dotted}: {default}");
            checked += 1;
        }
    }
    assert!(checked > 40, "most keys have a default; {checked} do");
}

#[test]
fn histograms_hold_the_longest_response_time_of_a_run() {
    // Due as the window opens, sent with the last of its backlog, answered just before the timeout.
    let longest = 3 * MAX_RUN_DURATION;
    let mut times = LatencyHistogram::new();
    times.record(longest);
    assert!((times.max_us() / (longest.as_secs_f64() * 1e6) - 1.0).abs() < 0.001, "{} µs", times.max_us());
}
