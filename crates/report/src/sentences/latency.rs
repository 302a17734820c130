//! Response times.

use super::{Context, at_first, fleets, headlines, higher_or_lower, place, sizes, throughput, word_factors};
use results::finding::{Added, Headline, OfCell, Value};
use results::{FindingVerdict, Metric, Mode, OwnedCellKey, is_of_components};
use statistics::words;

/// The answer in one sentence.
pub(super) fn headline(run: &Context<'_>, group: &[&Headline]) -> String {
    macro_rules! all {
        ($form:ident) => {
            group.iter().filter_map(|part| match part {
                Headline::$form(content) => Some(content),
                _ => None,
            })
        };
    }
    let cpu = |join: &str| {
        all!(Cpu).next().map_or_else(String::new, |cpu| {
            format!("{join} uses {} a proxy", words::cores_value(cpu.content.value))
        })
    };
    let median = |of: &OwnedCellKey, figure: Metric, text: &str| {
        let through = match of.mode {
            Mode::None => "without a mesh".to_owned(),
            Mode::EgressBypass => "past the sidecar".to_owned(),
            mode => format!("through {}", run.subject(mode)),
        };
        let at = at_first(of.conditions());
        let what = match figure {
            Metric::ResponseTimeP50Us => "the median response time".to_owned(),
            other => format!("{} of the response time", percentile_name(other)),
        };
        format!("{at} {what} {through} {text}{}.", cpu("; it"))
    };
    match group[0] {
        Headline::Values(first) if is_of_components(&first.difference.subject) => {
            word_factors::headline(run, &all!(Values).collect::<Vec<_>>())
        }
        Headline::Values(_) => headlines::differences(run, group),
        Headline::Effect(effect) if effect.load.is_some() => headlines::differences(run, group),
        Headline::Capacity(_) => headlines::capacity(&all!(Capacity).collect::<Vec<_>>()),
        Headline::Proxies(_) => headlines::proxies(run, &all!(Proxies).collect::<Vec<_>>()),
        Headline::Added(added) if all!(Call).next().is_some() => {
            let call = all!(Call).next();
            headlines::entry(run, &compared(run, added), added, call, all!(Proxies).next())
        }
        Headline::Fleet(_) => fleets::convergence(&all!(Fleet).collect::<Vec<_>>()),
        Headline::Effect(_) => sizes::held(run, &all!(Effect).collect::<Vec<_>>()),
        Headline::Measured(baseline) if baseline.content.figure == Metric::RateCompleted => {
            throughput::headline(baseline, &all!(Loss).collect::<Vec<_>>())
        }
        Headline::Measured(one) => {
            median(&one.place, one.content.figure, &format!("is {}", words::latency(&one.content.estimate)))
        }
        Headline::Unanswered(one) if one.content.figure != Metric::ResponseTimeP50Us => {
            median(&one.place, one.content.figure, "falls among requests without a response")
        }
        Headline::Unanswered(one) => median(
            &one.place,
            one.content.figure,
            "falls among requests without a response: every second request or more had none",
        ),
        Headline::Added(added) => {
            let join = if is_shown(&added.content) { " and" } else { "; it" };
            format!("{} {}{}.", at_first(added.place.conditions()), compared(run, added), cpu(join))
        }
        Headline::Nothing(_) | Headline::Loss(_) | Headline::Cpu(_) | Headline::Call(_) => {
            "Nothing can be said: no trial is valid.".to_owned()
        }
    }
}

fn is_shown(added: &Added) -> bool {
    added.added.verdict == FindingVerdict::Shown
}

/// Clause on what a mode adds to its baseline, worded as strongly as the interval allows.
fn compared(run: &Context<'_>, added: &OfCell<Added>) -> String {
    let (subject, added) = (run.subject(added.place.mode), &added.content);
    let baseline = words::mode(added.added.against);
    let (what, difference) = (percentile(added), &added.added.difference);
    if difference.low.is_none() {
        let by = higher_or_lower(difference, words::latency);
        return format!("{what} of {subject} is {by} (one trial each, which shows no difference)");
    }
    if is_shown(added) {
        return format!("{subject} {}", changes(added));
    }
    let difference = words::signed(difference, words::latency);
    let why = run.chance(&added.added.difference).map(|why| format!("; {why}")).unwrap_or_default();
    format!("no difference is shown between {subject} and {baseline} in {what}: {difference}{why}")
}

/// `adds 0.38 ms (0.35–0.41) to the median (×7.1)`, for a difference that is shown.
fn changes(added: &Added) -> String {
    let (value, difference) = (added.value.value, &added.added.difference);
    let relative = words::relative(value, value - difference.estimate);
    let relative = relative.map_or_else(String::new, |relative| format!(" ({relative})"));
    let what = percentile(added);
    if difference.estimate > 0.0 {
        return format!("adds {} to {what}{relative}", words::latency(difference));
    }
    let less = difference.map_reversed(std::ops::Neg::neg);
    format!("takes {} off {what}{relative}", words::latency(&less))
}

fn percentile(added: &Added) -> &'static str {
    percentile_name(added.value.figure)
}

pub(super) fn percentile_name(figure: Metric) -> &'static str {
    match figure {
        Metric::ResponseTimeP99Us => "the 99th percentile",
        Metric::ResponseTimeP90Us => "the 90th percentile",
        _ => "the median",
    }
}

/// What a mode adds to both percentiles.
pub(super) fn added(run: &Context<'_>, group: &[&OfCell<Added>]) -> String {
    let first = group[0];
    let clauses = match group {
        [median, tail] if is_shown(&median.content) && is_shown(&tail.content) => {
            let second = changes(&tail.content);
            let rises = median.content.added.difference.estimate > 0.0;
            let second = if rises { second.trim_start_matches("adds ") } else { &second };
            format!("{} {} and {second}", run.subject(first.place.mode), changes(&median.content))
        }
        clauses => {
            let clauses: Vec<String> = clauses.iter().map(|added| compared(run, added)).collect();
            clauses.join("; ")
        }
    };
    let pauses = match group.iter().any(|added| added.content.share.is_some()) {
        true => " Pauses of the machine can make this 99th percentile.",
        false => "",
    };
    format!("{} {clauses}.{pauses}", at_first(first.place.conditions()))
}

/// Service time that looks good because requests waited before they were sent.
pub(super) fn hidden_waiting(group: &[&OfCell<Value>]) -> String {
    let of =
        |figure: Metric| group.iter().find(|one| one.content.figure == figure).map(|one| one.content.value);
    let time = |figure: Metric| of(figure).map(words::latency_value).unwrap_or_default();
    format!(
        "{}: the 99th percentile of the response time is {}, while that of the service time is {}. Requests waited for their \
         turn behind slow ones, and service time, which counts from the actual send, hides that.",
        place(&group[0].place),
        time(Metric::ResponseTimeP99Us),
        time(Metric::ServiceTimeP99Us)
    )
}
