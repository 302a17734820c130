//! Headlines by the kind of run: values of factors, a gateway, the entry of a topology, CPU.

use super::corners::changed;
use super::said::Said;
use super::word_factors::{figure_name, judged, others, percent, requests_per_s, values};
use super::{Context, at_first, bracketed, with_place};
use crate::edges::{arrow, caller_exceeded_us};
use crate::format;
use experiment::file::label::{instead, setting, step};
use results::finding::{About, Added, Corner, Effect, GatewayCapacity, Headline, OfCell, Usage, Value};
use results::{
    Cell, Conditions, Estimate, FactorValue, Factors, Figure, FindingVerdict, LoadPoint, Metric, Mode, Role,
    is_of_components,
};
use statistics::size::is_shown_to_meet;
use statistics::words;

/// Requests per second for which replicas of a gateway are counted.
const TARGET_RPS: f64 = 10_000.0;

/// A difference between values of a factor, or of all factors.
struct Change<'a> {
    mode: Mode,
    load: &'a LoadPoint,
    /// Values of the other factors.
    others: Factors,
    /// Factors with the value and the one it is compared with.
    changed: Vec<(&'a str, String, String)>,
    figure: Metric,
    estimate: &'a Estimate,
    verdict: FindingVerdict,
}

impl Change<'_> {
    /// Values in the order of [`Self::steps`].
    fn names(&self) -> Vec<String> {
        self.changed.iter().flat_map(|(_, to, from)| [to.clone(), from.clone()]).collect()
    }

    /// Text of the changed factors, with names of their values.
    fn steps(&self, names: &[String]) -> String {
        if let ([(key, ..)], [to, from]) = (&self.changed[..], names) {
            return instead(key, to, from);
        }
        let pairs = self.changed.iter().zip(names.chunks_exact(2));
        pairs.map(|((key, ..), names)| step(key, &names[1], &names[0])).collect::<Vec<_>>().join(", ")
    }
}

/// True for a difference between values of factors under a load; those of versions have a sentence of their own.
pub(super) fn are_differences(first: &Headline) -> bool {
    match first {
        Headline::Values(values) => !is_of_components(&values.difference.subject),
        Headline::Effect(effect) => effect.load.is_some(),
        Headline::Corner(_) => true,
        _ => false,
    }
}

/// Example: `Access log json instead of off (sidecar, 300/s, mTLS strict): median +35 µs (11–60); mTLS strict instead of off (no
/// access log): +6 µs (−39 to 50), not shown; access log off → json, mTLS off → strict: +41 µs (15–66).`
pub(super) fn differences(run: &Context<'_>, group: &[&Headline]) -> Said {
    let changes: Vec<Change<'_>> = group.iter().filter_map(|headline| change(run, headline)).collect();
    let Some(first) = changes.first() else { return Said::default() };
    let at = Conditions { factors: &first.others, load: first.load };
    let figure = figure_name(first.figure).unwrap_or_default();
    let others: String = changes[1..].iter().map(|change| format!("; {}", further(change, first))).collect();
    let said = |at: &str| {
        Said::with_names(&first.names(), |names| {
            format!("{}{at}: {figure} {}{others}.", words::sentence(&first.steps(names)), size(first))
        })
    };
    let chance = run.chance(changes.iter().map(|change| change.estimate));
    with_place(first.mode, at, said).and(&chance)
}

/// The far corner as a sentence behind an answer.
pub(super) fn far_corner(run: &Context<'_>, corner: &Headline) -> String {
    let Some(corner) = change(run, corner) else { return String::new() };
    let at = bracketed(corner.mode, Conditions { factors: &corner.others, load: corner.load });
    let figure = figure_name(corner.figure).unwrap_or_default();
    let text = format!("{} {at}: {figure} {}.", corner.steps(&corner.names()), size(&corner));
    let chance = run.chance([corner.estimate]);
    words::sentence(&format!("{text} {chance}")).trim_end().to_owned()
}

/// A change after the first one, whose load and figure it shares.
fn further(change: &Change<'_>, first: &Change<'_>) -> String {
    let mode = Some(change.mode).filter(|mode| *mode != first.mode).map(|mode| words::mode(mode).to_owned());
    let others = change.others.iter().map(|(key, value)| setting(key, value));
    let others: Vec<String> = mode.into_iter().chain(others).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    format!("{}{others}: {}", change.steps(&change.names()), size(change))
}

fn change<'a>(run: &Context<'a>, headline: &'a Headline) -> Option<Change<'a>> {
    match headline {
        Headline::Values(one) => {
            let difference = &one.difference;
            let (to, from) = values(difference)?;
            Some(Change {
                mode: difference.place.mode,
                load: &difference.place.load,
                others: others(difference),
                changed: vec![(&difference.subject, to, from)],
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
                changed: vec![(&effect.subject, to, from)],
                figure: effect.measured.figure,
                estimate: &effect.measured.estimate,
                verdict: effect.verdict,
            })
        }
        Headline::Corner(corner) => Some(of_corner(corner)),
        _ => None,
    }
}

fn of_corner(corner: &Corner) -> Change<'_> {
    let (last, first) = (&corner.place.factors, &corner.from);
    // A factor that cannot touch one of the two cells has one value.
    let is_of_one =
        |(key, _): &(&String, &FactorValue)| !(last.contains_key(*key) && first.contains_key(*key));
    let others = last.iter().chain(first).filter(is_of_one);
    Change {
        mode: corner.place.mode,
        load: &corner.place.load,
        others: others.map(|(key, value)| (key.clone(), value.clone())).collect(),
        changed: changed(corner).collect(),
        figure: corner.measured.figure,
        estimate: &corner.measured.estimate,
        verdict: corner.verdict,
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

fn size(change: &Change<'_>) -> String {
    let text: fn(&Estimate) -> String = match change.figure {
        figure if figure.is_time() => words::latency,
        Metric::RateCompleted => requests_per_s,
        Metric::CpuCoresPer1000Rps => words::cpu_time,
        _ => percent,
    };
    judged(change.estimate, change.verdict, text)
}

/// Example: `A core of ingress-gateway carries 4010/s (3950–4080) with 64 clients; 10000/s: 3 replicas of 1 CPU or 10 of 0.25
/// CPU.` Replicas are counted of sizes that are shown to meet the objective.
pub(super) fn capacity(run: &Context<'_>, group: &[&OfCell<GatewayCapacity>]) -> Said {
    let objective = &run.experiment.objective;
    let is_shown = |one: &&OfCell<GatewayCapacity>| {
        run.cell(one.place.key()).is_some_and(|cell| is_shown_to_meet(objective, cell))
    };
    let (shown, others): (Vec<_>, Vec<_>) = group.iter().rev().copied().partition(is_shown);
    let Some(greatest) = shown.first().or(others.first()) else { return Said::default() };
    let short = |rate: String| rate.replacen(" requests/s", "/s", 1);
    let per_core = short(requests_per_s(&greatest.content.per_core));
    let none = Factors::new();
    let at = words::brief_at(Conditions { factors: &none, load: &greatest.place.load });
    let replicas = match shown.as_slice() {
        [] => format!("no size is shown to meet {objective}"),
        shown => shown.iter().map(|one| replicas(&one.content)).collect::<Vec<_>>().join(" or "),
    };
    let text = |names: &[String]| {
        let target = short(words::rate(TARGET_RPS));
        format!("A core of {} carries {per_core} {at}; {target}: {replicas}.", names[0])
    };
    let carried = details(&shown, "");
    let not_shown = details(&others, &format!(", not shown to meet {objective}"));
    Said::with_names(&[&greatest.content.subject], text).and(&carried).and(&not_shown)
}

/// What a replica of each size carries, as a sentence with an end; empty without sizes.
fn details(sizes: &[&OfCell<GatewayCapacity>], end: &str) -> String {
    let carried: Vec<String> = sizes.iter().map(|one| carried(&one.content)).collect();
    if carried.is_empty() {
        String::new()
    } else {
        words::sentence(&format!("{}{end}.", words::list(&carried)))
    }
}

fn limit(capacity: &GatewayCapacity) -> String {
    let of = |cores| format!("of {} CPU", format::tick(cores));
    capacity.cpu_limit_cores.map_or("without a CPU limit".to_owned(), of)
}

fn replicas(capacity: &GatewayCapacity) -> String {
    let count = (TARGET_RPS / capacity.measured.estimate.estimate).ceil() as u64;
    format!("{} {}", format::counted(count, "replica", "replicas"), limit(capacity))
}

fn carried(capacity: &GatewayCapacity) -> String {
    format!("a replica {} carries {}", limit(capacity), requests_per_s(&capacity.measured.estimate))
}

/// Example: `At 100/s a sidecar in every pod adds 2.66 ms (2.27–3.09) to p99 of web; slowest call web → cart (p99 2.9 ms); 16
/// proxies use 0.42 cores (0.40–0.43).`
pub(super) fn entry(
    run: &Context<'_>,
    compared: impl Fn(&str) -> String,
    added: &OfCell<Added>,
    call: Option<&OfCell<About<String, Value>>>,
    proxies: Option<&Usage>,
) -> Said {
    let cell = run.cell(added.place.key());
    let entry = cell.and_then(entry_of);
    let call_name = call.map_or("", |call| call.content.subject.as_str());
    let mut edges = cell.into_iter().flat_map(|cell| cell.edges.iter().map(move |edge| (cell, edge)));
    let is_slower = edges
        .find(|(_, edge)| arrow(edge) == call_name)
        .is_some_and(|(cell, edge)| caller_exceeded_us(cell, edge, Figure::P99).is_some());
    let why = if is_slower { "; not all requests wait for it" } else { "" };
    let text = |names: &[String]| {
        let of = if names[0].is_empty() { String::new() } else { format!(" of {}", names[0]) };
        let call = call.map(|call| {
            let p99 = words::latency_value(call.content.figure.value);
            format!("; slowest call {} (p99 {p99}{why})", names[1])
        });
        let proxies = proxies.map(|usage| format!("; {}", of_proxies(run, usage)));
        let at = at_first(added.place.conditions());
        format!("{at} {}{}{}.", compared(&of), call.unwrap_or_default(), proxies.unwrap_or_default())
    };
    Said::with_names(&[entry.unwrap_or_default(), call_name], text)
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
    let total = run.cell(usage.place.key()).and_then(|cell| cell.total(Role::Proxy));
    let total = total.map(|total| total.components as u64);
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
