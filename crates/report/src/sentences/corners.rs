//! All factors at their last values compared with all at their first.

use super::said::Said;
use super::word_factors::change;
use super::{Context, with_place};
use experiment::file::label::step;
use results::finding::Corner;
use results::{Conditions, Factors, short_names};
use statistics::words;

/// Example: `Access log off → json, mTLS off → strict (sidecar, 300/s): median +35 µs (11–60); proxy CPU per request +3 % (−2 to
/// 8), not shown.`
pub(super) fn corner(run: &Context<'_>, group: &[&Corner]) -> Said {
    let (first, none) = (group[0], Factors::new());
    let steps: Vec<String> = changed(first).map(|(key, to, from)| step(key, &from, &to)).collect();
    let clauses = group.iter().filter_map(|corner| change(&corner.measured, corner.verdict));
    let (steps, clauses) = (words::sentence(&steps.join(", ")), clauses.collect::<Vec<_>>().join("; "));
    let said = |at: &str| Said::from(format!("{steps} {at}: {clauses}."));
    with_place(first.place.mode, Conditions { factors: &none, load: &first.place.load }, said)
        .and(&run.chance(group.iter().map(|corner| &corner.measured.estimate)))
}

/// Factors that both ends of a corner have, each with short names of its last and its first value.
pub(super) fn changed(corner: &Corner) -> impl Iterator<Item = (&str, String, String)> {
    corner.place.factors.iter().filter_map(move |(key, value)| {
        let (to, from) = short_names(value, corner.from.get(key)?);
        Some((key.as_str(), to, from))
    })
}
