//! Order of the modes.

use super::at;
use results::{Conditions, Finding, FindingVerdict, Metric, Mode};
use statistics::words;

/// The baseline of an order of modes, which all its modes share.
pub(super) fn baseline(finding: &Finding) -> Option<Mode> {
    finding.mode.map(|mode| mode.floor().unwrap_or(mode))
}

/// The best mode, each further mode against the nearest better one that it differs from, and whether other
/// loads confirm it.
pub(super) fn order(group: &[&Finding]) -> String {
    let best = group[0];
    let (here, elsewhere): (Vec<&Finding>, Vec<&Finding>) =
        group[1..].iter().partition(|finding| finding.conditions() == best.conditions());
    let is_closed = best.is_of(Metric::RateCompleted);
    let what = if is_closed { "throughput" } else { "the median" };
    let first = name(best.mode);
    let first = match best.value {
        Some(rate) if is_closed => format!("{first} ({})", words::rate(rate)),
        _ => first.to_owned(),
    };
    let clauses: Vec<String> = here.chunk_by(|one, next| one.mode == next.mode).map(clause).collect();
    let shown: Vec<&Finding> = here.into_iter().filter(|finding| finding.is_shown()).collect();
    format!(
        "Order in {what} {}: {first}, then {}.{}",
        at(best),
        clauses.join(", then "),
        self::elsewhere(best, &shown, &elsewhere)
    )
}

/// Example: `sidecar, 0.25 ms (0.24–0.26) above gateway (none shown to ambient)`.
fn clause(of_mode: &[&Finding]) -> String {
    let mode = name(of_mode[0].mode);
    let Some((shown, by)) = of_mode
        .iter()
        .find(|finding| finding.is_shown())
        .and_then(|finding| Some((finding, finding.estimate.as_ref()?)))
    else {
        return format!("{mode} (not shown to differ from a better one)");
    };
    let by = if shown.is_of(Metric::RateCompletedChange) {
        let less = by.map_reversed(std::ops::Neg::neg);
        format!("{} below {}", words::change(&less), name(shown.against))
    } else {
        format!("{} above {}", words::latency(by), name(shown.against))
    };
    let alike = of_mode.iter().filter(|finding| !finding.is_shown());
    let alike: Vec<String> = alike.map(|finding| name(finding.against).to_owned()).collect();
    if alike.is_empty() {
        format!("{mode}, {by}")
    } else {
        format!("{mode}, {by} (none shown to {})", words::list(&alike))
    }
}

/// Whether the other loads show the same steps.
fn elsewhere(best: &Finding, steps: &[&Finding], others: &[&Finding]) -> String {
    let preposition = if best.is_of(Metric::RateCompleted) { "with" } else { "at" };
    let (mut same, mut lacking) = (Vec::new(), Vec::new());
    for at in others.chunk_by(|one, next| one.conditions() == next.conditions()) {
        let missing: Vec<String> = at
            .iter()
            .filter(|finding| finding.verdict != Some(FindingVerdict::Shown))
            .map(|finding| format!("{} against {}", name(finding.mode), name(finding.against)))
            .collect();
        let offered = at[0].conditions().map(|at: Conditions<'_>| words::described(at)).unwrap_or_default();
        if missing.is_empty() && at.len() == steps.len() {
            same.push(offered);
        } else {
            lacking.push(format!("{preposition} {offered}: {}", words::list(&missing)));
        }
    }
    let same = match same.as_slice() {
        [] => String::new(),
        _ if lacking.is_empty() && same.len() > 1 => if best.factors.is_empty() {
            " The same steps are shown under all other loads."
        } else {
            " The same steps are shown in all other cells."
        }
        .into(),
        _ => format!(" The same steps are shown {preposition} {}.", words::list(&same)),
    };
    let lacking =
        if lacking.is_empty() { String::new() } else { format!(" Not shown {}.", lacking.join("; ")) };
    same + &lacking
}

fn name(mode: Option<Mode>) -> &'static str {
    mode.map_or("", words::mode)
}
