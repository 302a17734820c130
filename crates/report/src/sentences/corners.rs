//! All factors at their last values compared with all at their first.

use super::said::Said;
use super::word_factors::change;
use super::{Context, bracketed};
use experiment::file::label::step;
use results::finding::Corner;
use results::{Conditions, FactorValue, Factors};
use statistics::words;

/// Example: `access log off → json, mTLS off → strict (sidecar, 300/s): median +35 µs (11–60); proxy CPU per request +3 % (−2 to
/// 8), not shown.`
pub(super) fn corner(run: &Context<'_>, group: &[&Corner]) -> Said {
    let (first, none) = (group[0], Factors::new());
    let changed = |(key, from): (&String, &FactorValue)| {
        Some(step(key, &from.to_string(), &first.place.factors.get(key)?.to_string()))
    };
    let steps: Vec<String> = first.from.iter().filter_map(changed).collect();
    let clauses = group.iter().filter_map(|corner| change(&corner.measured, corner.verdict));
    let (steps, clauses) = (steps.join(", "), clauses.collect::<Vec<_>>().join("; "));
    let said = |at: &str| Said::from(format!("{steps} {at}: {clauses}."));
    said(&bracketed(first.place.mode, Conditions { factors: &none, load: &first.place.load }))
        .or(|| said(&format!("({})", words::mode(first.place.mode))))
        .and(&run.chance(group.iter().map(|corner| &corner.measured.estimate)))
}
