//! Values of a factor compared with its first value.

use super::Context;
use results::finding::{Difference, ValuesHeadline};
use results::{Conditions, Estimate, Factors, FindingVerdict, Metric, short_names};
use statistics::words;

/// Example: `waf instead of no-filters adds 0.21 ms (0.18–0.24) to the median and takes 18 % (16 to 20) of
/// throughput`.
pub(super) fn difference(run: &Context<'_>, group: &[&Difference]) -> String {
    let first = group[0];
    let key = &first.subject;
    let Some((to, from)) = values(first) else { return String::new() };
    let shown: Vec<String> = group.iter().filter_map(|difference| shown(difference)).collect();
    let rest: Vec<&Difference> =
        group.iter().copied().filter(|difference| difference.verdict != FindingVerdict::Shown).collect();
    let not_shown: Vec<String> = rest.iter().filter_map(|difference| by_name(difference)).collect();
    let cannot_tell = group.iter().all(|difference| difference.verdict == FindingVerdict::CannotTell);
    let why = rest.iter().find_map(|difference| run.chance(&difference.measured.estimate));
    let not_shown = match (not_shown.is_empty(), cannot_tell) {
        (true, _) => String::new(),
        (false, true) => format!("one repeat shows no difference: {}", words::list(&not_shown)),
        (false, false) => {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            format!("not shown: {}{why}", words::list(&not_shown))
        }
    };
    let clauses: Vec<String> =
        [words::list(&shown), not_shown].into_iter().filter(|clause| !clause.is_empty()).collect();
    format!(
        "{to} instead of {from} ({key}, mode {}, {} in this run): {}.{}",
        first.place.mode,
        at(first),
        clauses.join("; "),
        same_programs(first)
    )
}

/// Example: `+6 µs (−39 to 50) in the median`.
fn by_name(difference: &Difference) -> Option<String> {
    let text = text_of(difference.measured.figure);
    Some(format!("{} in {}", words::signed(&difference.measured.estimate, text), name(difference)?))
}

/// Example: `1.30.1 against 1.29.4 (components.istio): raises CPU of all proxies per request by 10 % (9 to
/// 11) in mode sidecar at 1000 requests/s`.
pub(super) fn headline(run: &Context<'_>, group: &[&ValuesHeadline]) -> String {
    let ValuesHeadline { difference: first, of } = group[0];
    let Some((to, from)) = values(first) else { return String::new() };
    let clauses: Vec<String> = group.iter().filter_map(|one| clause(&one.difference)).collect();
    let rest = match (clauses.is_empty(), first.verdict) {
        (false, _) => {
            format!("{}. {} of {of} differences are shown in this run.", clauses.join("; "), first.n)
        }
        (true, FindingVerdict::CannotTell) => "it cannot be told: one repeat shows no difference.".into(),
        (true, _) => {
            let nearest = by_name(first).map(|by| format!("; {by}{}", place(first))).unwrap_or_default();
            let why = run.chance(&first.measured.estimate).map(|why| format!(": {why}")).unwrap_or_default();
            format!("no difference is shown, of {of} in this run{nearest}{why}.")
        }
    };
    format!("{to} against {from} ({}): {rest}{}", first.subject, same_programs(first))
}

/// Short names of the value and of the first one.
pub(super) fn values(difference: &Difference) -> Option<(String, String)> {
    Some(short_names(difference.place.factors.get(&difference.subject)?, &difference.from))
}

/// A difference that is shown, with its mode and load.
fn clause(difference: &Difference) -> Option<String> {
    Some(format!("{}{}", shown(difference)?, place(difference)))
}

/// Example: ` in mode sidecar at 1000 requests/s`.
fn place(difference: &Difference) -> String {
    format!(" in mode {} at {}", difference.place.mode, at(difference))
}

/// The load, and the values of other factors.
fn at(difference: &Difference) -> String {
    let mut others: Factors = difference.place.factors.clone();
    others.remove(&difference.subject);
    words::described(Conditions { factors: &others, load: &difference.place.load })
}

fn same_programs(difference: &Difference) -> &'static str {
    match difference.same_programs {
        true => " Both ran the same programs, by their digests: what differs between them is chance.",
        false => "",
    }
}

fn name(difference: &Difference) -> Option<&'static str> {
    figure_name(difference.measured.figure)
}

pub(super) fn figure_name(figure: Metric) -> Option<&'static str> {
    Some(match figure {
        Metric::ResponseTimeP50Us => "the median",
        Metric::ResponseTimeP90Us => "the 90th percentile",
        Metric::ResponseTimeP99Us => "the 99th percentile",
        Metric::MemoryAnonymousChange => "anonymous memory of all proxies",
        Metric::ConfigurationSizeChange => "the size of the proxies' configuration",
        Metric::ConfiguredLastUs => "the time until the last proxy is configured",
        Metric::RateCompletedChange | Metric::RateCompleted => "throughput",
        Metric::CpuPerRequestChange | Metric::CpuCoresPer1000Rps => "CPU of all proxies per request",
        Metric::ConvergenceP99Us => "the 99th percentile of convergence",
        Metric::IstiodCpuS => "CPU time of istiod",
        Metric::IstiodMemoryBytes => "resident memory of istiod",
        Metric::IstiodMemoryAnonymousBytes => "anonymous memory of istiod",
        Metric::BytesPerProxy => "bytes per proxy",
        _ => return None,
    })
}

/// Text of a difference of this figure: a time, or a change.
pub(super) fn text_of(figure: Metric) -> fn(&Estimate) -> String {
    if figure.is_time() { words::latency } else { words::change }
}

fn is_time(difference: &Difference) -> bool {
    difference.measured.figure.is_time()
}

fn shown(difference: &Difference) -> Option<String> {
    let estimate =
        Some(difference.measured.estimate).filter(|_| difference.verdict == FindingVerdict::Shown)?;
    let is_less = estimate.estimate < 0.0;
    let size = if is_less { estimate.map_reversed(std::ops::Neg::neg) } else { estimate };
    let size = text_of(difference.measured.figure)(&size);
    let name = name(difference)?;
    Some(match (difference.measured.figure, is_less) {
        (_, false) if is_time(difference) => format!("adds {size} to {name}"),
        (_, true) if is_time(difference) => format!("takes {size} off {name}"),
        (Metric::RateCompletedChange, true) => format!("takes {size} of throughput"),
        (_, less) => format!("{} {name} by {size}", if less { "lowers" } else { "raises" }),
    })
}
