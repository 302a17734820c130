//! Which figures of a merged result are usable: those that are usable in every part, if the parts measured at
//! the same time.

use super::placed::{Placed, distinct};
use super::series::is_exact;
use crate::backlog::{Growth, growth};
use results::{Backlog, ClientStage, Figures, LoadResult, Verdict};

/// Generators whose common window is a smaller fraction of the whole did not load the target as one: outside
/// of it the rates do not add up.
const TOGETHER: f64 = 0.90;
/// A smaller fraction is noted.
const ALL_BUT_TOGETHER: f64 = 0.99;

/// `backlog`: that of all parts, if it is known.
pub(super) fn check(
    placed: &[Placed],
    overlap_s: f64,
    duration_s: f64,
    backlog: Option<&Backlog>,
) -> Verdict {
    let mut verdict = Verdict::usable();
    for Placed { part, .. } in placed {
        let of_part = &part.result.verdict;
        verdict.saturated |= of_part.saturated;
        for (reason, figures) in of_part.reasons_with_figures() {
            verdict.spoil(attributed(reason, &part.name), figures);
        }
        verdict.notes.extend(of_part.notes.iter().map(|note| attributed(note, &part.name)));
        if !of_part.valid && of_part.reasons.is_empty() {
            verdict.spoil(format!("not-valid: {} says no reason", part.name), Figures::all());
        }
    }
    check_overlap(placed.len(), overlap_s, duration_s, &mut verdict);
    if overlap_s >= ALL_BUT_TOGETHER * duration_s {
        check_backlog(placed, backlog, &mut verdict);
    }
    note_differences(placed, &mut verdict);
    verdict
}

/// Turns `saturated: …` of one part into `saturated: A.json: …`, so that the text still starts with its kind.
fn attributed(text: &str, name: &str) -> String {
    match text.split_once(": ") {
        Some((kind, rest)) => format!("{kind}: {name}: {rest}"),
        None => format!("{name}: {text}"),
    }
}

fn check_overlap(parts: usize, overlap_s: f64, duration_s: f64, verdict: &mut Verdict) {
    let share = if duration_s > 0.0 { overlap_s / duration_s } else { 1.0 };
    if parts < 2 || share >= ALL_BUT_TOGETHER {
        return;
    }
    let together = if overlap_s > 0.0 {
        format!("overlap: the generators measured together for {overlap_s:.1} s of {duration_s:.1} s")
    } else {
        format!("overlap: at no time in {duration_s:.1} s did all the generators measure together")
    };
    if share < TOGETHER {
        verdict.spoil(format!("{together}, so that the rates do not add up"), Figures::all());
    } else {
        verdict.notes.push(together);
    }
}

/// A backlog that is small for each generator of one target may grow beyond chance for all of them together.
fn check_backlog(placed: &[Placed], backlog: Option<&Backlog>, verdict: &mut Verdict) {
    let mut targets = placed.iter().map(|placed| &placed.part.result.urls);
    let first = targets.next();
    let have_one_target = placed.len() > 1 && targets.all(|urls| Some(urls) == first);
    let growth = backlog.filter(|_| have_one_target && !verdict.saturated).and_then(growth);
    if let Some(Growth { requests: [from, to], response_time_ns }) = growth {
        verdict.saturated = true;
        let [early, late] = response_time_ns.map(|time| time as f64 / 1e6);
        let reason = format!(
            "saturated: the unanswered requests of all generators together grew throughout the window, from {from} to {to}, and \
             their typical times from {early:.1} to {late:.1} ms"
        );
        verdict.spoil(reason, Figures::times());
    }
}

/// Notes settings that differed between the generators.
fn note_differences(placed: &[Placed], verdict: &mut Verdict) {
    let mut differ = |what: &str, of: &dyn Fn(&LoadResult) -> String| {
        let values: Vec<String> = placed.iter().map(|placed| of(&placed.part.result)).collect();
        let values = distinct(values.iter().map(String::as_str));
        if values.len() > 1 {
            verdict
                .notes
                .push(format!("settings: the generators had different {what}: {}", values.join("; ")));
        }
    };
    differ("URLs", &|result| result.urls.join(" "));
    differ("protocols", &|result| result.protocol.name().to_owned());
    differ("versions of Meshmeter", &|result| {
        if result.version.is_empty() { "unknown".to_owned() } else { result.version.clone() }
    });
    differ("networks", &|result| {
        result.generator.network.map_or("unknown", |network| network.name()).to_owned()
    });
    differ("kinds of load", &|result| {
        if result.rate.offered.is_some() { "open loop" } else { "closed loop" }.to_owned()
    });
    differ("stages of clients", &|result| {
        let stage = |stage: &ClientStage| format!("{}..{}:{}s", stage.from, stage.to, stage.duration_s);
        result.client_stages.iter().map(stage).collect::<Vec<_>>().join(",")
    });
    differ("arrivals", &|result| {
        result.arrivals.as_ref().map_or_else(|| "even".to_owned(), ToString::to_string)
    });
    differ("connections", &|result| result.connection_settings.clone().unwrap_or_default().to_string());
    differ("expected statuses", &|result| {
        result.expected_status.as_ref().map_or_else(|| "below 400".to_owned(), ToString::to_string)
    });
    let kinds = |placed: &Placed| -> Vec<(String, u32)> {
        placed.part.result.kinds.iter().map(|kind| (kind.name.clone(), kind.weight)).collect()
    };
    if placed.iter().any(|other| kinds(other) != kinds(&placed[0])) {
        let note = "settings: the generators had different kinds of requests, or other weights: each kind has the first weight, \
                    and kinds are apart only if all generators had some";
        verdict.notes.push(note.to_owned());
    }
    if placed.len() > 1 && !placed.iter().all(|placed| is_exact(&placed.part.result)) {
        verdict.notes.push(
            "series: the percentiles of each second are the greatest among the generators, an upper bound; with \
             --series-histograms in every run they are exact"
                .to_owned(),
        );
    }
}
