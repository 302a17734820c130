//! Values of a factor compared with its first value.

use results::{Conditions, Estimate, Factors, Finding, FindingVerdict, Metric, short_names};
use statistics::words;

/// Example: `waf instead of no-filters adds 0.21 ms (0.18–0.24) to the median and takes 18 % (16 to 20) of
/// throughput`.
pub(super) fn difference(group: &[&Finding]) -> String {
    let first = group[0];
    let (Some(key), Some(from), Some(mode)) = (first.subject.as_deref(), &first.from, first.mode) else {
        return String::new();
    };
    let Some(to) = first.factors.get(key) else { return String::new() };
    let (to, from) = short_names(to, from);
    let others: Factors = first.factors.clone().into_iter().filter(|(other, _)| other != key).collect();
    let at = first.load.as_ref().map(|load| words::described(Conditions { factors: &others, load }));
    let shown: Vec<String> = group.iter().filter_map(|finding| shown(finding)).collect();
    let not_shown: Vec<&str> =
        group.iter().filter(|finding| !finding.is_shown()).filter_map(|finding| name(finding)).collect();
    let cannot_tell = group.iter().all(|finding| finding.verdict == Some(FindingVerdict::CannotTell));
    let not_shown = match (not_shown.is_empty(), cannot_tell) {
        (true, _) => String::new(),
        (false, true) => "one repeat shows no difference".to_owned(),
        (false, false) => {
            let names: Vec<String> = not_shown.iter().map(ToString::to_string).collect();
            format!("no difference is shown in {}", words::list(&names))
        }
    };
    let clauses: Vec<String> =
        [words::list(&shown), not_shown].into_iter().filter(|clause| !clause.is_empty()).collect();
    format!(
        "{to} instead of {from} ({key}, mode {mode}, {} in this run): {}.{}",
        at.unwrap_or_default(),
        clauses.join("; "),
        same_programs(first)
    )
}

/// Example: `1.30.1 against 1.29.4 (components.istio): raises CPU of all proxies per request by 10 % (9 to
/// 11) in mode sidecar at 1000 requests/s`.
pub(super) fn headline(group: &[&Finding]) -> String {
    let first = group[0];
    let (Some(key), Some(from)) = (first.subject.as_deref(), &first.from) else { return String::new() };
    let Some(to) = first.factors.get(key) else { return String::new() };
    let (to, from) = short_names(to, from);
    let clauses: Vec<String> = group.iter().filter_map(|finding| clause(finding, key)).collect();
    let (shown, of) = (first.n.unwrap_or_default(), first.of.unwrap_or_default());
    let rest = match (clauses.is_empty(), first.verdict) {
        (false, _) => format!("{}. {shown} of {of} differences are shown in this run.", clauses.join("; ")),
        (true, Some(FindingVerdict::CannotTell)) => {
            "it cannot be told: one repeat shows no difference.".into()
        }
        (true, _) => {
            let nearest = first.estimate.filter(|_| is_time(first)).map(|estimate| {
                format!(
                    "; {}{}: {}",
                    name(first).unwrap_or_default(),
                    place(first, key),
                    words::latency(&estimate)
                )
            });
            format!("no difference is shown, of {of} in this run{}.", nearest.unwrap_or_default())
        }
    };
    format!("{to} against {from} ({key}): {rest}{}", same_programs(first))
}

/// A difference that is shown, with its mode and load.
fn clause(finding: &Finding, key: &str) -> Option<String> {
    Some(format!("{}{}", shown(finding)?, place(finding, key)))
}

/// Example: ` in mode sidecar at 1000 requests/s`.
fn place(finding: &Finding, key: &str) -> String {
    let others: Factors = finding.factors.clone().into_iter().filter(|(other, _)| other != key).collect();
    let at = finding.load.as_ref().map(|load| words::described(Conditions { factors: &others, load }));
    let mode = finding.mode.map_or_else(String::new, |mode| format!(" in mode {mode}"));
    format!("{mode}{}", at.map_or_else(String::new, |at| format!(" at {at}")))
}

fn same_programs(finding: &Finding) -> &'static str {
    match finding.same_programs {
        true => " Both ran the same programs, by their digests: what differs between them is chance.",
        false => "",
    }
}

fn name(finding: &Finding) -> Option<&'static str> {
    Some(match finding.metric()? {
        Metric::ResponseTimeP50Us => "the median",
        Metric::ResponseTimeP99Us => "the 99th percentile",
        Metric::MemoryAnonymousChange => "anonymous memory of all proxies",
        Metric::ConfigurationSizeChange => "the size of the proxies' configuration",
        Metric::ConfiguredLastUs => "the time until the last proxy is configured",
        Metric::RateCompletedChange => "throughput",
        Metric::CpuPerRequestChange => "CPU of all proxies per request",
        Metric::ConvergenceP99Us => "the 99th percentile of convergence",
        Metric::IstiodCpuS => "CPU time of istiod",
        Metric::IstiodMemoryBytes => "resident memory of istiod",
        Metric::IstiodMemoryAnonymousBytes => "anonymous memory of istiod",
        Metric::BytesPerProxy => "bytes per proxy",
        _ => return None,
    })
}

fn is_time(finding: &Finding) -> bool {
    finding.metric().is_some_and(Metric::is_time)
}

fn shown(finding: &Finding) -> Option<String> {
    let estimate = finding.estimate.filter(|_| finding.is_shown())?;
    let is_less = estimate.estimate < 0.0;
    let size = if is_less { estimate.map_reversed(std::ops::Neg::neg) } else { estimate };
    let text: fn(&Estimate) -> String = if is_time(finding) { words::latency } else { words::change };
    let size = text(&size);
    Some(match (finding.metric()?, is_less) {
        (_, false) if is_time(finding) => format!("adds {size} to {}", name(finding)?),
        (_, true) if is_time(finding) => format!("takes {size} off {}", name(finding)?),
        (Metric::RateCompletedChange, true) => format!("takes {size} of throughput"),
        (_, less) => format!("{} {} by {size}", if less { "lowers" } else { "raises" }, name(finding)?),
    })
}
