//! Order of the modes.

use super::said::Said;
use results::finding::{Standing, Step};
use results::{Clock, Metric, Mode, OwnedCellKey};
use statistics::words;

/// The baseline of an order of modes, which all its modes share.
pub(super) fn baseline(standing: &Standing) -> Mode {
    let mode = standing.place().mode;
    mode.floor().unwrap_or(mode)
}

/// The modes from the best on: `Median at 1000/s: no mesh < gateway < sidecar`, with a comma between two that are not shown to
/// differ. The detail has the differences, and whether other loads confirm them.
pub(super) fn order(group: &[&Standing]) -> Said {
    let best = group[0].place();
    let (here, elsewhere): (Vec<&Standing>, Vec<&Standing>) =
        group[1..].iter().partition(|standing| standing.place().conditions() == best.conditions());
    let throughput = match group[0] {
        Standing::Alone(best) => best.content.filter(|best| best.figure == Metric::RateCompleted),
        Standing::Against(_) => None,
    };
    let (what, sign) = match Clock::of_load(&best.load) {
        _ if throughput.is_some() => ("Throughput", " > "),
        Clock::FirstEvent => ("Median first token", " < "),
        _ => ("Median", " < "),
    };
    let mut last = best.mode;
    let mut modes = words::mode(last).to_owned();
    let mut clauses = Vec::new();
    for of_mode in here.chunk_by(|one, next| one.place().mode == next.place().mode) {
        let mode = of_mode[0].place().mode;
        let is_worse = steps(of_mode).any(|step| step.against == last && is_shown(step));
        modes += if is_worse { sign } else { ", " };
        modes += words::mode(mode);
        clauses.push(clause(of_mode));
        last = mode;
    }
    let shown = steps(&here).filter(|step| is_shown(step)).count();
    let elsewhere: Vec<&Step> = steps(&elsewhere).collect();
    let best_rate =
        throughput.map(|rate| format!("{} {}; ", words::mode(best.mode), words::rate(rate.value)));
    let detail = words::sentence(&format!("{}{}.", best_rate.unwrap_or_default(), clauses.join("; ")));
    let preposition = if best.load.rate.is_some() { "at" } else { "with" };
    Said::from(format!("{what} {}: {modes}.", words::brief_at(best.conditions())))
        .and(&detail)
        .and(self::elsewhere(best, preposition, shown, &elsewhere).trim_start())
}

fn steps<'a>(standings: &[&'a Standing]) -> impl Iterator<Item = &'a Step> {
    standings.iter().filter_map(|standing| match standing {
        Standing::Against(step) => Some(step),
        Standing::Alone(_) => None,
    })
}

fn is_shown(step: &Step) -> bool {
    step.is_shown_worse()
}

/// Example: `sidecar 0.25 ms (0.24–0.26) above gateway (not shown to differ from ambient)`.
fn clause(of_mode: &[&Standing]) -> String {
    let mode = words::mode(of_mode[0].place().mode);
    let shown = steps(of_mode).filter(|step| is_shown(step));
    let Some((shown, by)) = shown.filter_map(|step| Some((step, step.difference?))).next() else {
        return format!("{mode} (not shown to differ from a better one)");
    };
    let better = words::mode(shown.against);
    let by = if shown.figure == Some(Metric::RateCompletedChange) {
        let less = by.map_reversed(std::ops::Neg::neg);
        format!("{} below {better}", words::change(&less))
    } else {
        format!("{} above {better}", words::latency(&by))
    };
    let alike = steps(of_mode).filter(|step| !is_shown(step));
    let alike: Vec<String> = alike.map(|step| words::mode(step.against).to_owned()).collect();
    if alike.is_empty() {
        format!("{mode} {by}")
    } else {
        format!("{mode} {by} (not shown to differ from {})", words::list(&alike))
    }
}

/// Whether the other loads show the same steps.
fn elsewhere(best: &OwnedCellKey, preposition: &str, steps: usize, others: &[&Step]) -> String {
    let (mut same, mut lacking) = (Vec::new(), Vec::new());
    for at in others.chunk_by(|one, next| one.place.conditions() == next.place.conditions()) {
        let missing = at.iter().filter(|step| !is_shown(step));
        let missing: Vec<String> = missing
            .map(|step| format!("{} against {}", words::mode(step.place.mode), words::mode(step.against)))
            .collect();
        let offered = words::brief(at[0].place.conditions());
        if missing.is_empty() && at.len() == steps {
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
