//! Values of a factor against its first one.

use experiment::schema::finding::figures;
use experiment::schema::{Conditions, Estimate, Factors, Finding, FindingVerdict};
use statistics::words;

/// Such as `waf instead of no-filters adds 0.21 ms (0.18–0.24) to the median and takes 18 % (16 to 20) of throughput`.
pub(super) fn difference(group: &[&Finding]) -> String {
    let first = group[0];
    let (Some(key), Some(from), Some(mode)) = (first.subject.as_deref(), &first.from, first.mode) else {
        return String::new();
    };
    let Some(to) = first.factors.get(key) else { return String::new() };
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
        "{to} instead of {from} ({key}, mode {mode}, {} in this run): {}.",
        at.unwrap_or_default(),
        clauses.join("; ")
    )
}

fn name(finding: &Finding) -> Option<&'static str> {
    Some(match finding.figure.as_deref()? {
        figures::P50 => "the median",
        figures::COMPLETED_CHANGE => "throughput",
        figures::CPU_PER_REQUEST_CHANGE => "CPU of all proxies per request",
        figures::CONVERGENCE_P99 => "the 99th percentile of convergence",
        figures::ISTIOD_CPU => "CPU time of istiod",
        figures::ISTIOD_MEMORY => "memory of istiod",
        figures::BYTES_PER_PROXY => "bytes per proxy",
        _ => return None,
    })
}

fn is_time(finding: &Finding) -> bool {
    finding.is_of(figures::P50) || finding.is_of(figures::CONVERGENCE_P99)
}

fn shown(finding: &Finding) -> Option<String> {
    let estimate = finding.estimate.filter(|_| finding.is_shown())?;
    let is_less = estimate.estimate < 0.0;
    let size = if is_less { estimate.map_reversed(std::ops::Neg::neg) } else { estimate };
    let text: fn(&Estimate) -> String = if is_time(finding) { words::latency } else { words::change };
    let size = text(&size);
    Some(match (finding.figure.as_deref()?, is_less) {
        (figures::P50 | figures::CONVERGENCE_P99, false) => format!("adds {size} to {}", name(finding)?),
        (figures::P50 | figures::CONVERGENCE_P99, true) => format!("takes {size} off {}", name(finding)?),
        (figures::COMPLETED_CHANGE, true) => format!("takes {size} of throughput"),
        (_, less) => format!("{} {} by {size}", if less { "lowers" } else { "raises" }, name(finding)?),
    })
}
