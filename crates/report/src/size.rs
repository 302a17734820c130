//! The answer of `meshmeter size` in parts: the same sentences and figures on the terminal, in Markdown and on a
//! page.

use crate::format::{self, Interval, SizeUnit};
use crate::sentences::size::{
    beside_number, binding, currency, size_basis, size_name, size_next_run, size_opening, size_place,
    size_recommendation, size_without_one,
};
use results::{Estimate, SizeAnswer, SizeNote, SizeOption, SizeResult};
use serde::Serialize;

/// Scope of every figure.
const SCOPE: &str = "Intervals are 95 % and cover these runs alone; other payloads, protocols, settings and machines were not \
                     measured.";

/// An answer in parts.
#[derive(Debug, Serialize)]
pub(crate) struct SizeParts {
    /// Name of the command.
    pub command: &'static str,
    /// The first answer.
    pub headline: String,
    /// Caveats for the whole answer, said before anything else.
    pub warnings: Vec<String>,
    /// The question and the machine.
    pub opening: String,
    pub answers: Vec<AnswerParts>,
    /// Parts of the question without an answer.
    pub refusals: Vec<String>,
    pub scope: &'static str,
    /// One line per figure.
    pub formula: Vec<String>,
}

/// The answer for one proxy.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AnswerParts {
    /// Component, mode and load.
    pub place: String,
    /// The recommended option, what remains of it without one replica, and the run that would find what one carries.
    pub said: Vec<String>,
    pub header: Vec<String>,
    /// A row per size; the first cell is its name.
    pub rows: Vec<Vec<String>>,
    /// Basis of the recommendation.
    pub basis: Vec<String>,
    pub notes: Vec<String>,
}

impl SizeParts {
    pub(crate) fn new(result: &SizeResult) -> Self {
        let refusals = result.refusals.iter().map(|refusal| format!("Not answered. {}", refusal.text));
        let mut answers: Vec<_> =
            result.answers.iter().map(|answer| AnswerParts::new(result, answer)).collect();
        Self {
            command: "size",
            headline: headline(result, &mut answers),
            warnings: result.notes.iter().map(|note| note.text.clone()).collect(),
            opening: size_opening(result),
            answers,
            refusals: refusals.collect(),
            scope: SCOPE,
            formula: result.formula.clone(),
        }
    }
}

/// The recommended option of the only answer, which then has the other sentences; of several, that of the first with its proxy.
fn headline(result: &SizeResult, answers: &mut [AnswerParts]) -> String {
    match answers {
        [only] if !only.said.is_empty() => only.said.remove(0),
        several => {
            let all = result.answers.iter().zip(several);
            let named =
                all.map(|(answer, parts)| Some(format!("{}: {}", answer.component, parts.said.first()?)));
            named.flatten().next().unwrap_or_else(|| "Not answered".to_owned())
        }
    }
}

impl AnswerParts {
    fn new(result: &SizeResult, answer: &SizeAnswer) -> Self {
        let planned_memory = |option: &SizeOption| Some(option.planned.memory_bytes?.estimate);
        let memory = SizeUnit::for_sizes(answer.options.iter().filter_map(planned_memory));
        let has_cost = answer.options.iter().any(|option| option.planned.monthly_cost.is_some());
        let has_headroom = result.asked.headroom > 0.0;
        let mut header = vec![
            "size".to_owned(),
            "a replica carries, /s".to_owned(),
            "limited by".to_owned(),
            "replicas".to_owned(),
            "CPU, cores".to_owned(),
            format!("memory, {}", memory.symbol()),
        ];
        header.extend(has_cost.then(|| format!("per month{}", currency(result.asked.prices.as_ref(), ", "))));
        header.push("without one, /s".to_owned());
        header.extend(has_headroom.then(|| "with headroom, /s".to_owned()));
        let row = |option: &SizeOption| {
            let planned = &option.planned;
            let mut row = vec![
                size_name(option),
                capacity(option),
                binding(option).to_owned(),
                replicas(option),
                figure(planned.cpu_cores.as_ref(), 1.0),
                figure(planned.memory_bytes.as_ref(), memory.bytes()),
            ];
            row.extend(has_cost.then(|| figure(planned.monthly_cost.as_ref(), 1.0)));
            let without = &planned.without_one;
            let rate = |rps: f64| beside_number(rps, result.asked.target_rps);
            row.push(rate(without.remaining_rps));
            row.extend(has_headroom.then(|| rate(without.remaining_rps_with_headroom)));
            row
        };
        let said =
            [size_recommendation(result, answer), size_without_one(result, answer), size_next_run(answer)];
        Self {
            place: size_place(answer),
            said: said.into_iter().flatten().collect(),
            header,
            rows: answer.options.iter().map(row).collect(),
            basis: size_basis(result, answer),
            notes: notes(answer),
        }
    }
}

/// A figure in a unit; without an interval that has the digits of the estimate.
pub(crate) fn figure(estimate: Option<&Estimate>, unit: f64) -> String {
    let Some(estimate) = estimate else { return format::ABSENT.to_owned() };
    let interval = Interval::scaled(estimate, 1.0 / unit);
    let digits = interval.estimate.clone();
    if interval.range == Some(format!("{digits}–{digits}")) { digits } else { interval.text() }
}

/// `3980 (3900–4060)`; `1000 or more` without an upper end.
fn capacity(option: &SizeOption) -> String {
    let rps = &option.capacity.rps;
    match (rps.low, rps.high) {
        (Some(low), None) => format!("{} or more", format::digits(low)),
        _ if option.capacity.lower_bound => format!("{} or more", Interval::new(rps).text()),
        _ => Interval::new(rps).text(),
    }
}

/// The planned number, and the interval.
fn replicas(option: &SizeOption) -> String {
    let (planned, count) = (option.planned.replicas, option.replicas);
    if option.planned.upper_bound {
        return format!("at most {planned}");
    }
    match (count.low, count.high) {
        (Some(low), Some(high)) if low != high => format!("{planned} ({low}–{high})"),
        _ => planned.to_string(),
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
        count if count == answer.options.len() => note.text.clone(),
        _ => format!("{}: {}", sizes.join("; "), note.text),
    });
    let of_all = answer.notes.iter().map(|note| note.text.clone());
    of_all.chain(of_options).collect()
}
