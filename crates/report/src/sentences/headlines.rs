//! Headlines by the kind of run: values of factors, a gateway, the entry of a topology, CPU.

use super::word_factors::{figure_name, values};
use super::{Context, at_first};
use crate::format;
use results::finding::{About, Added, Effect, GatewayCapacity, Headline, OfCell, Usage, Value};
use results::{Cell, Conditions, Estimate, Factors, FindingVerdict, LoadPoint, Metric, Mode, Role};
use statistics::words;

/// Requests per second for which replicas of a gateway are counted.
const TARGET_RPS: f64 = 10_000.0;

/// A difference between values of a factor.
struct Change<'a> {
    mode: Mode,
    load: &'a LoadPoint,
    /// Values of the other factors.
    others: Factors,
    subject: &'a str,
    to: String,
    from: String,
    figure: Metric,
    estimate: &'a Estimate,
    verdict: FindingVerdict,
}

/// Example: `Sidecar at 300 requests/s in this run, the median: proxy.access-log json instead of off +35 µs (11–60); proxy.mtls
/// strict instead of off +6 µs (−39 to 50), not shown.`
pub(super) fn differences(run: &Context<'_>, group: &[&Headline]) -> String {
    let changes: Vec<Change<'_>> = group.iter().filter_map(|headline| change(run, headline)).collect();
    let Some(first) = changes.first() else { return String::new() };
    let clauses: Vec<String> = changes.iter().map(|change| clause(run, change)).collect();
    let none = Factors::new();
    let at = words::at(Conditions { factors: &none, load: first.load });
    let place = words::sentence(&format!("{} {at} in this run", words::mode(first.mode)));
    format!("{place}, {}: {}.", figure_name(first.figure).unwrap_or_default(), clauses.join("; "))
}

fn change<'a>(run: &Context<'a>, headline: &'a Headline) -> Option<Change<'a>> {
    match headline {
        Headline::Values(one) => {
            let difference = &one.difference;
            let (to, from) = values(difference)?;
            let mut others = difference.place.factors.clone();
            others.remove(&difference.subject);
            Some(Change {
                mode: difference.place.mode,
                load: &difference.place.load,
                others,
                subject: &difference.subject,
                to,
                from,
                figure: difference.measured.figure,
                estimate: &difference.measured.estimate,
                verdict: difference.verdict,
            })
        }
        Headline::Effect(effect) => {
            let (from, to) = ends(run, effect)?;
            Some(Change {
                mode: effect.mode,
                load: effect.load.as_ref()?,
                others: effect.factors.clone(),
                subject: &effect.subject,
                to,
                from,
                figure: effect.measured.figure,
                estimate: &effect.measured.estimate,
                verdict: effect.verdict,
            })
        }
        _ => None,
    }
}

/// Least and greatest value of a numeric factor, as typed.
fn ends(run: &Context<'_>, effect: &Effect) -> Option<(String, String)> {
    let key = effect.subject.as_str();
    let mut typed: Vec<(f64, String)> = run
        .experiment
        .factor(key)?
        .values
        .iter()
        .filter_map(|value| Some((value.quantity(key)?, value.to_string())))
        .collect();
    typed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Some((typed.first()?.1.clone(), typed.last()?.1.clone()))
}

fn clause(run: &Context<'_>, change: &Change<'_>) -> String {
    let text: fn(&Estimate) -> String = match change.figure {
        figure if figure.is_time() => words::latency,
        Metric::RateCompleted => words::rate_interval,
        Metric::CpuCoresPer1000Rps => words::cpu_time,
        _ => words::change,
    };
    let by = match change.verdict {
        FindingVerdict::Shown => words::signed(change.estimate, text),
        FindingVerdict::NotShown => run.not_shown(change.estimate, text),
        FindingVerdict::CannotTell => {
            format!("{} in one repeat, which shows no difference", words::signed(change.estimate, text))
        }
    };
    let others: Vec<String> = change.others.iter().map(|(key, value)| format!("{key} {value}")).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    format!("{} {} instead of {}{others} {by}", change.subject, change.to, change.from)
}

/// Example: `A core of ingress-gateway carries 4010 requests/s (3950–4080) with 64 clients in this run; 10 000 requests/s take 3
/// replicas of 1 CPU or 10 of 250m.`
pub(super) fn capacity(group: &[&OfCell<GatewayCapacity>]) -> String {
    let Some(greatest) = group.last() else { return String::new() };
    let per_core = words::rate_interval(&greatest.content.per_core);
    let none = Factors::new();
    let at = words::at(Conditions { factors: &none, load: &greatest.place.load });
    let replicas: Vec<String> = group.iter().rev().map(|one| replicas(&one.content)).collect();
    format!(
        "A core of {} carries {per_core} {at} in this run; {} take {}.",
        greatest.content.subject,
        words::rate(TARGET_RPS),
        replicas.join(" or ")
    )
}

fn replicas(capacity: &GatewayCapacity) -> String {
    let rate = capacity.measured.estimate.estimate;
    let count = (TARGET_RPS / rate).ceil() as u64;
    let of = capacity
        .cpu_limit_cores
        .map_or("without a CPU limit".to_owned(), |cores| format!("of {} CPU", format::tick(cores)));
    format!("{} {of} ({} each)", format::counted(count, "replica", "replicas"), words::rate(rate))
}

/// Example: `At 100 requests/s in this run a sidecar in every pod adds 2.66 ms (2.27–3.09) to the 99th percentile of web; slowest
/// call web → cart (p99 2.9 ms); 16 proxies use 0.42 cores (0.40–0.43).`
pub(super) fn entry(
    run: &Context<'_>,
    compared: &str,
    added: &OfCell<Added>,
    call: Option<&OfCell<About<String, Value>>>,
    proxies: Option<&Usage>,
) -> String {
    let cell = run.cell(added.place.key());
    let of = cell.and_then(entry_of).map(|entry| format!(" of {entry}")).unwrap_or_default();
    let call = call.map(|call| {
        let About { subject, figure } = &call.content;
        format!("; slowest call {subject} (p99 {})", words::latency_value(figure.value))
    });
    let proxies = proxies.map(|usage| format!("; {}", of_proxies(run, usage)));
    format!(
        "{} {compared}{of}{}{}.",
        at_first(added.place.conditions()),
        call.unwrap_or_default(),
        proxies.unwrap_or_default()
    )
}

/// The only service that no other calls.
fn entry_of(cell: &Cell) -> Option<&str> {
    let is_called = |name: &str| cell.edges.iter().any(|edge| edge.to == name);
    let mut entries: Vec<&str> =
        cell.edges.iter().map(|edge| edge.from.as_str()).filter(|from| !is_called(from)).collect();
    entries.dedup();
    match entries.as_slice() {
        [entry] => Some(entry),
        _ => None,
    }
}

fn of_proxies(run: &Context<'_>, usage: &Usage) -> String {
    let total = run.cell(usage.place.key()).and_then(|cell| {
        cell.totals.iter().find(|total| total.role == Role::Proxy).map(|total| total.components as u64)
    });
    let cores = words::cores(&usage.content.figure.estimate);
    match total {
        Some(1) => format!("the proxy uses {cores}"),
        Some(count) => format!("{} use {cores}", format::counted(count, "proxy", "proxies")),
        None => format!("all proxies use {cores}"),
    }
}

/// CPU of all proxies, by mode.
pub(super) fn proxies(run: &Context<'_>, group: &[&Usage]) -> String {
    let clauses: Vec<String> = group
        .iter()
        .map(|usage| format!("with {} {}", run.subject(usage.place.mode), of_proxies(run, usage)))
        .collect();
    format!("{} {}.", at_first(group[0].place.conditions()), clauses.join("; "))
}
