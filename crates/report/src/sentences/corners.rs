//! All factors at their last values compared with all at their first.

use super::said::Said;
use super::word_factors::change;
use super::{Context, with_place};
use experiment::file::label::step;
use results::finding::{Corner, Headline};
use results::{Conditions, Factors, short_names};
use statistics::words;

/// Example: `Access log off → json, mTLS off → strict (sidecar, 300/s): median +35 µs (11–60); proxy CPU per request +3 % (−2 to
/// 8), not shown.`
pub(super) fn corner(run: &Context<'_>, group: &[&Corner]) -> Said {
    let is_stated = |headline: &Headline, one: &Corner| match headline {
        Headline::Corner(stated) => {
            (&stated.place, stated.measured.figure) == (&one.place, one.measured.figure)
        }
        _ => false,
    };
    let group = run.beyond_headline(group, is_stated);
    let (first, none) = (group[0], Factors::new());
    let steps: Vec<String> = changed(first).map(|(key, to, from)| step(key, &from, &to)).collect();
    let clauses = group.iter().filter_map(|corner| change(&corner.measured, corner.verdict));
    let clauses = clauses.collect::<Vec<_>>().join("; ");
    let place = Conditions { factors: &none, load: &first.place.load };
    let of = |steps: &str| {
        with_place(first.place.mode, place, |at| Said::from(format!("{steps}{at}: {clauses}.")))
    };
    let count = steps.len();
    let steps = words::sentence(&steps.join(", "));
    let mut said = of(&steps);
    if !said.is_whole() {
        said = of(&format!("All {count} factors at their last values instead of their first"))
            .beginning_with(&format!("{steps}."));
    }
    said.and(&run.chance(group.iter().map(|corner| &corner.measured.estimate)))
}

/// Factors that both ends of a corner have, each with short names of its last and its first value.
pub(super) fn changed(corner: &Corner) -> impl Iterator<Item = (&str, String, String)> {
    corner.place.factors.iter().filter_map(move |(key, value)| {
        let (to, from) = short_names(value, corner.from.get(key)?);
        Some((key.as_str(), to, from))
    })
}
