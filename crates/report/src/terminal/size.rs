//! The answer of `meshmeter size` on a terminal.

use super::style::{Options, bold, plain, wrap};
use super::tables::drawn_table;
use crate::format::{self, Interval, SizeUnit};
use crate::sentences::size::{
    binding, money, size_comparison, size_name, size_opening, size_place, size_recommendation,
};
use results::{Estimate, SizeAnswer, SizeNote, SizeOption, SizeResult};
use std::fmt::Write as _;

/// The answer as text, ending with a line break. It includes refusals if there are answers; refusals without
/// any answer go to standard error.
#[must_use]
pub fn size_text(result: &SizeResult, options: Options) -> String {
    let mut lines = wrapped(&size_opening(result), options);
    for answer in &result.answers {
        lines.push(String::new());
        lines.extend(answer_lines(result, answer, options));
    }
    if result.is_answered() {
        if !result.refusals.is_empty() {
            lines.push(String::new());
        }
        let refusals = result.refusals.iter().map(|refusal| format!("Not answered. {}", refusal.text));
        lines.extend(refusals.flat_map(|refusal| wrapped(&refusal, options)));
        lines.push(String::new());
        lines.extend(wrapped(SCOPE, options));
        lines.extend(result.formula.iter().flat_map(|line| wrapped(line, options)));
    }
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// Scope of every figure.
const SCOPE: &str = "Intervals are 95 % and cover these runs alone; other payloads, protocols, settings and machines were not \
                     measured.";

fn wrapped(text: &str, options: Options) -> Vec<String> {
    wrap(&format::unbroken(&plain(text)), options.width)
}

fn answer_lines(result: &SizeResult, answer: &SizeAnswer, options: Options) -> Vec<String> {
    let heading = wrapped(&size_place(answer), options);
    let mut lines: Vec<String> = heading.iter().map(|line| bold(line, options)).collect();
    let memory =
        SizeUnit::for_sizes(answer.options.iter().filter_map(|option| Some(option.memory_bytes?.estimate)));
    let has_cost = answer.options.iter().any(|option| option.monthly_cost.is_some());
    let mut header = vec![
        "size".to_owned(),
        "a replica carries, /s".to_owned(),
        "limited by".to_owned(),
        "replicas".to_owned(),
        "CPU, cores".to_owned(),
        format!("memory, {}", memory.symbol()),
    ];
    if has_cost {
        header.push("per month".to_owned());
    }
    header.push("without one, /s".to_owned());
    let row = |option: &SizeOption| {
        let figure = |estimate: Option<Estimate>, unit: f64| {
            estimate.map_or_else(
                || format::ABSENT.to_owned(),
                |estimate| Interval::scaled(&estimate, 1.0 / unit).text(),
            )
        };
        let mut row = vec![
            plain(&size_name(option)),
            capacity(option),
            binding(option).to_owned(),
            replicas(option),
            figure(option.cpu_cores, 1.0),
            figure(option.memory_bytes, memory.bytes()),
        ];
        if has_cost {
            row.push(
                option.monthly_cost.map_or_else(|| format::ABSENT.to_owned(), |cost| money(result, &cost)),
            );
        }
        row.push(format::digits(option.without_one.remaining_rps));
        row
    };
    lines.extend(drawn_table(&header, answer.options.iter().map(row), options));
    let sentences = [size_recommendation(result, answer), size_comparison(result, answer)];
    let said = sentences.into_iter().flatten().chain(notes(answer));
    lines.extend(said.flat_map(|line| wrapped(&line, options)));
    lines
}

/// `3980 (3900–4060)`; `1000 or more` without an upper end.
fn capacity(option: &SizeOption) -> String {
    let rps = &option.capacity.rps;
    match (rps.low, rps.high) {
        (Some(low), None) => format!("{} or more", format::digits(low)),
        _ => Interval::new(rps).text(),
    }
}

fn replicas(option: &SizeOption) -> String {
    let count = option.replicas;
    match (count.low, count.high) {
        (Some(low), Some(high)) if low != high => format!("{} ({low}–{high})", count.estimate),
        _ => count.estimate.to_string(),
    }
}

/// Distinct notes, each with the sizes that it applies to if these are not all.
fn notes(answer: &SizeAnswer) -> Vec<String> {
    let mut notes: Vec<(&SizeNote, Vec<String>)> = Vec::new();
    for option in &answer.options {
        for note in &option.notes {
            match notes.iter_mut().find(|(known, _)| known.text == note.text) {
                Some((_, sizes)) => sizes.push(size_name(option)),
                None => notes.push((note, vec![size_name(option)])),
            }
        }
    }
    let of_options = notes.into_iter().map(|(note, sizes)| match sizes.len() {
        count if count == answer.options.len() => format!("· {}", note.text),
        _ => format!("· {}: {}", sizes.join("; "), note.text),
    });
    let of_all = answer.notes.iter().map(|note| format!("· {}", note.text));
    of_all.chain(of_options).collect()
}
