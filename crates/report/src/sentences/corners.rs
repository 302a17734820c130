//! All factors at their last values compared with all at their first.

use super::Context;
use super::word_factors::{figure_name, text_of};
use results::finding::Corner;
use results::{Conditions, Factors, FindingVerdict};
use statistics::words;

/// Example: `proxy.access-log json and proxy.mtls strict instead of proxy.access-log off and proxy.mtls off (mode sidecar, 300
/// requests/s in this run): the median +35 µs (11–60); CPU of all proxies per request not shown (−2 to 8 %).`.
pub(super) fn corner(run: &Context<'_>, group: &[&Corner]) -> String {
    let (first, none) = (group[0], Factors::new());
    let named = |factors: &Factors| {
        words::list(&factors.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>())
    };
    let clauses: Vec<String> = group.iter().filter_map(|corner| clause(run, corner)).collect();
    format!(
        "{} instead of {} (mode {}, {} in this run): {}.",
        named(&first.place.factors),
        named(&first.from),
        first.place.mode,
        words::described(Conditions { factors: &none, load: &first.place.load }),
        clauses.join("; ")
    )
}

fn clause(run: &Context<'_>, corner: &Corner) -> Option<String> {
    let name = figure_name(corner.measured.figure)?;
    let estimate = &corner.measured.estimate;
    let size = text_of(corner.measured.figure);
    Some(match corner.verdict {
        FindingVerdict::Shown => format!("{name} {}", words::signed(estimate, size)),
        FindingVerdict::NotShown => format!("{name} {}", run.not_shown(estimate, size)),
        FindingVerdict::CannotTell => {
            format!("{name} {}, which one repeat cannot show", words::signed(estimate, size))
        }
    })
}
