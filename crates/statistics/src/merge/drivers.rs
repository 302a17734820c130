//! Merges the results of a trial's drivers, and of a driver's generators.

use super::{MergeError, MergeInput, merge};
use results::{LoadResult, MergedPart, MergedResults, Verdict};
use std::collections::BTreeMap;

/// The generators of one driver should start within this time of each other, in milliseconds.
const MAX_START_SPREAD_MS: f64 = 10.0;

/// Merges the results of a trial's drivers; `None` if there are none. The parts are left out: a trial stores
/// them with its drivers.
///
/// # Errors
/// Returns an error if a result cannot be read, or if two are identical.
pub fn merge_drivers(parts: Vec<MergeInput>) -> Result<Option<LoadResult>, MergeError> {
    if parts.is_empty() {
        return Ok(None);
    }
    let result = merge(parts)?;
    let merged = result.merged.map(|merged| MergedResults { parts: Vec::new(), ..merged });
    Ok(Some(LoadResult { merged, ..result }))
}

/// Merges the results of the generators that share the load of one driver; `None` if there are none. The
/// parts are summarised.
///
/// # Errors
/// Returns an error if a result cannot be read, or if two are identical.
pub fn merge_generators(parts: Vec<MergeInput>) -> Result<Option<LoadResult>, MergeError> {
    if parts.is_empty() {
        return Ok(None);
    }
    let mut result = merge(parts)?;
    let parts = result.merged.as_ref().map(|merged| merged.parts.as_slice()).unwrap_or_default();
    result.verdict = with_reasons_by_kind(&result.verdict, parts);
    note_late_starts(result.merged.as_ref(), &mut result.verdict);
    result.series_histograms = Vec::new();
    for part in result.merged.iter_mut().flat_map(|merged| &mut merged.parts) {
        part.result = None;
    }
    Ok(Some(result))
}

fn note_late_starts(merged: Option<&MergedResults>, verdict: &mut Verdict) {
    let parts = merged.into_iter().flat_map(|merged| &merged.parts);
    let late = parts.filter_map(|part| Some((&part.name, part.start_offset_us? / 1000.0)));
    let latest =
        late.filter(|(_, ms)| *ms > MAX_START_SPREAD_MS).max_by(|one, other| one.1.total_cmp(&other.1));
    if let Some((name, ms)) = latest {
        verdict.notes.push(format!(
            "generator-late: {name} began {ms:.0} ms after the first; requests that it sent late for it are in its lag"
        ));
    }
}

/// Folds reasons and notes that differ only in their figures: the first generator's text stays, with the
/// number of other generators.
fn with_reasons_by_kind(verdict: &Verdict, parts: &[MergedPart]) -> Verdict {
    let mut together = Verdict { valid: verdict.valid, saturated: verdict.saturated, ..Verdict::default() };
    let mut kinds: Vec<(&str, &str, _, usize)> = Vec::new();
    for (reason, figures) in verdict.reasons_with_figures() {
        let kind = kind_of(reason);
        match kinds.iter_mut().find(|(known, _, of_known, _)| *known == kind && *of_known == figures) {
            Some((.., others)) => *others += 1,
            None => kinds.push((kind, reason, figures, 0)),
        }
    }
    for (_, reason, figures, others) in kinds {
        together.spoil(with_others(reason, others), figures);
    }
    let mut notes: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut order = Vec::new();
    // They share protocol, URL and pacing by design.
    for note in verdict.notes.iter().filter(|note| !note.starts_with("series: ")) {
        let kind = kind_of(note);
        let of_part = parts.iter().any(|part| note.contains(&part.name));
        match notes.get_mut(kind).filter(|_| of_part) {
            Some((_, others)) => *others += 1,
            None => {
                order.push(kind);
                notes.insert(kind, (note, 0));
            }
        }
    }
    together.notes = order.into_iter().map(|kind| with_others(notes[kind].0, notes[kind].1)).collect();
    together
}

fn kind_of(text: &str) -> &str {
    text.split(':').next().unwrap_or(text)
}

fn with_others(text: &str, others: usize) -> String {
    match others {
        0 => text.to_owned(),
        1 => format!("{text} (and 1 other generator)"),
        _ => format!("{text} (and {others} other generators)"),
    }
}
