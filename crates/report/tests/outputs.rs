//! Terminal, Markdown, HTML and JSON hold the same differences, and no verdict contradicts the interval beside it.

mod fixture;

use fixture::Chance;
use report::format::TimeUnit;
use report::table::{Difference, ResultTable};
use report::terminal::{Options, render};
use report::{RunData, html, markdown};
use results::{FactorValue, Figure, FindingVerdict, Mode, Summary};
use std::collections::BTreeMap;

/// Two words crossed with two modes, with differences that chance may or may not explain.
fn crossed(seed: u64) -> RunData {
    let mut chance = Chance::new(seed);
    let mut trials = fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 8);
    for trial in &mut trials {
        let is_second = trial.repeat % 2 == 1;
        trial.repeat /= 2;
        let value = if is_second { "json" } else { "off" };
        trial.factors.insert("proxy.access-log".to_owned(), FactorValue::from_typed(value));
        let of_mode = if trial.mode == Mode::None { 1.0 } else { 1.0 + 0.05 * (seed % 5) as f64 };
        let of_word = if is_second { 1.0 + 0.02 * (seed % 7) as f64 } else { 1.0 };
        let times = &mut trial.result.as_mut().expect("the fixture has a result").response_time_us;
        let mut time = |us: f64| Some(us * of_mode * of_word * (0.02 * chance.normal()).exp());
        (times.p50, times.p90, times.p99) = (time(500.0), time(700.0), time(1200.0));
    }
    fixture::run(trials)
}

/// Every difference of the summary that tables state, as text.
fn texts(summary: &Summary) -> Vec<String> {
    let unit = ResultTable::new(summary).unit;
    let added = summary.cells.iter().filter_map(|cell| cell.added_us);
    let added = added.flat_map(|added| [Figure::P50, Figure::P99].map(|figure| added.judged(figure)));
    let added = added.flatten().map(|(by, verdict)| Difference::new((&by, verdict), unit).text());
    let times = || summary.factor_differences.iter().filter(|one| one.figure.is_time());
    let unit = TimeUnit::for_times(times().map(|one| one.estimate.estimate));
    let values = times().map(|one| Difference::new((&one.estimate, one.verdict), unit).text());
    let others = summary.factor_differences.iter().filter(|one| one.figure.key().contains("cpu"));
    let others = others.filter_map(|one| {
        Some(Difference::percent((one.relative.as_ref()?, one.verdict)).text_with_unit("%"))
    });
    added.chain(values).chain(others).collect()
}

fn outputs(run: &RunData) -> [(&'static str, String); 3] {
    let terminal = render(&run.summary, Options { width: 400, colours: false });
    [("terminal", terminal), ("Markdown", markdown::render(run)), ("HTML", html::render(run))]
}

#[test]
fn every_difference_is_in_all_outputs() {
    for seed in 0..6 {
        let run = crossed(seed);
        let texts = texts(&run.summary);
        assert!(texts.len() >= 8, "{texts:?}");
        for (name, output) in outputs(&run) {
            for text in &texts {
                assert!(output.contains(text.as_str()), "{text:?} is not in {name} (seed {seed}):\n{output}");
            }
        }
    }
}

#[test]
fn services_and_calls_are_in_all_outputs() {
    let run = fixture::run(fixture::tiered::tiered_trials(1));
    let cell = run.summary.cells.iter().find(|cell| cell.mode == Mode::Sidecar).expect("a cell");
    for (name, output) in outputs(&run) {
        for edge in &cell.edges {
            assert!(output.contains(edge.to.as_str()), "{} is not in {name}", edge.to);
        }
        for service in &cell.services {
            assert!(output.contains(service.name.as_str()), "{} is not in {name}", service.name);
        }
    }
}

/// Numbers of an interval such as `(0.35–0.41` or `(−39 to 50`.
fn interval(text: &str) -> Option<(f64, f64)> {
    let number = |text: &str| text.trim().replace('−', "-").parse::<f64>().ok();
    let text = text.split(')').next()?;
    let (low, high) = text.split_once(" to ").or_else(|| text.split_once('–'))?;
    Some((number(low)?, number(high)?))
}

/// Differences in a text: the text, their interval, and whether they are shown.
fn differences(text: &str) -> Vec<(String, (f64, f64), bool)> {
    let mut found = Vec::new();
    for (place, _) in text.match_indices('(') {
        let (before, after) = (&text[..place], &text[place + 1..]);
        let Some(ends) = interval(after) else { continue };
        let clause = clause(before);
        let mut words = clause.split_whitespace().rev().take(2);
        let behind = after.split_once(')').map_or("", |(_, behind)| behind);
        let is_not_shown = behind.starts_with(", not shown")
            || ["not shown: ", "no difference is shown", "no loss is shown"]
                .iter()
                .any(|said| clause.contains(said));
        let is_difference = words.any(|word| word.starts_with('+') || word.starts_with('−'));
        if is_not_shown || (is_difference && !behind.starts_with(", no interval")) {
            let end = after.char_indices().nth(60).map_or(after.len(), |(end, _)| end);
            found.push((format!("{clause}({}", &after[..end]), ends, !is_not_shown));
        }
    }
    found
}

/// The clause at the end of a text.
fn clause(text: &str) -> &str {
    let ends = ["\n", "; ", ". ", ">"].iter().filter_map(|end| Some(text.rfind(end)? + end.len()));
    &text[ends.max().unwrap_or(0)..]
}

#[test]
fn no_text_contradicts_the_interval_beside_it() {
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    let mut corrected = 0;
    for seed in 0..25 {
        let run = crossed(seed);
        let all = run.summary.factor_differences.iter();
        corrected += all.filter(|one| one.estimate.alone.is_some()).count();
        for (name, output) in outputs(&run) {
            for (text, (low, high), is_shown) in differences(&output) {
                let excludes_zero = low > 0.0 || high < 0.0;
                assert_eq!(excludes_zero, is_shown, "{name}, seed {seed}: {text}");
                *counts.entry((name, is_shown)).or_default() += 1;
            }
            let says_why = output.contains("comparisons in this run, chance is not excluded");
            let has_any = run.summary.findings.iter().any(|stated| {
                let json = serde_json::to_value(stated).expect("JSON");
                json["estimate"].get("alone").is_some()
            });
            assert!(says_why || !has_any, "{name}, seed {seed}");
        }
        of_json(&run.summary);
    }
    assert_eq!(counts.len(), 6, "{counts:?}");
    assert!(counts.values().all(|count| *count > 50) && corrected > 3, "{counts:?}, {corrected}");
}

fn of_json(summary: &Summary) {
    for one in &summary.factor_differences {
        match one.verdict {
            FindingVerdict::Shown => assert!(one.estimate.excludes_zero(), "{one:?}"),
            _ => assert!(!one.estimate.excludes_zero(), "{one:?}"),
        }
    }
}
