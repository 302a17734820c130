//! Values of a factor compared with its first value.

use super::said::Said;
use super::{Context, bracketed};
use crate::format::Interval;
use experiment::file::label::{instead, label};
use results::finding::{Difference, Headline, Measured, ValuesHeadline};
use results::{Conditions, Estimate, Factors, FindingVerdict, Metric, is_of_components, short_names};
use statistics::words;

/// Example: `access log json instead of off (sidecar, 300/s, mTLS strict): median +35 µs (11–60); proxy CPU per request +6 %
/// (−2 to 13), not shown.`
pub(super) fn difference(run: &Context<'_>, group: &[&Difference]) -> Said {
    let is_stated = |headline: &Headline, one: &Difference| match headline {
        Headline::Values(ValuesHeadline { difference, .. }) => {
            let key = |of: &Difference| (of.place.clone(), of.subject.clone(), of.measured.figure);
            !is_of_components(&one.subject) && key(difference) == key(one)
        }
        _ => false,
    };
    let group = run.beyond_headline(group, is_stated);
    let first = group[0];
    let Some((to, from)) = values(first) else { return Said::default() };
    let clauses = group.iter().filter_map(|one| change(&one.measured, one.verdict));
    let clauses = clauses.collect::<Vec<_>>().join("; ");
    let said = |at: &str| {
        Said::with_names(&[&to, &from], |values| {
            let values = instead(&first.subject, &values[0], &values[1]);
            format!("{}{at}: {clauses}.{}", words::sentence(&values), same_programs(first))
        })
    };
    let at = Conditions { factors: &others(first), load: &first.place.load };
    super::with_place(first.place.mode, at, said)
        .and(&run.chance(group.iter().map(|one| &one.measured.estimate)))
}

/// Example: `Istio 1.30.1 against 1.29.4: proxy CPU per request (sidecar, 1000/s) +10 % (9 to 11). 1 of 8 differences is shown.`
pub(super) fn headline(run: &Context<'_>, group: &[&ValuesHeadline]) -> Said {
    let ValuesHeadline { difference: first, of } = group[0];
    let Some((to, from)) = values(first) else { return Said::default() };
    let with_place = |one: &&&ValuesHeadline| {
        change_at(&one.difference.measured, one.difference.verdict, &place(&one.difference))
    };
    let shown = group.iter().filter(|one| one.difference.verdict == FindingVerdict::Shown);
    let shown: Vec<String> = shown.filter_map(|one| with_place(&one)).collect();
    let same = if first.same_programs { "; both ran the same programs" } else { "" };
    let rest = match (shown.is_empty(), first.verdict) {
        (false, _) => {
            let are = if first.n == 1 { "is" } else { "are" };
            format!("{}{same}. {} of {of} differences {are} shown.", shown.join("; "), first.n)
        }
        (true, FindingVerdict::CannotTell) => format!("one repeat cannot show a difference{same}."),
        (true, _) => {
            let nearest = group
                .first()
                .and_then(|one| with_place(&one))
                .map(|by| format!("; {by}"))
                .unwrap_or_default();
            format!("no difference is shown, of {of}{same}{nearest}.")
        }
    };
    let chance = if first.same_programs { " What differs between equal digests is chance." } else { "" };
    let name = label(&first.subject);
    let text = |values: &[String]| {
        format!("{} {} against {}: {rest}{chance}", words::sentence(&name), values[0], values[1])
    };
    let differences = group.iter().map(|one| &one.difference.measured.estimate);
    Said::with_names(&[&to, &from], text).and(&run.chance(differences))
}

/// Short names of the value and of the first one.
pub(super) fn values(difference: &Difference) -> Option<(String, String)> {
    Some(short_names(difference.place.factors.get(&difference.subject)?, &difference.from))
}

/// Mode, load and values of other factors, such as `(sidecar, 300/s, no access log)`.
fn place(difference: &Difference) -> String {
    let at = Conditions { factors: &others(difference), load: &difference.place.load };
    bracketed(difference.place.mode, at)
}

/// Values of the other factors.
pub(super) fn others(difference: &Difference) -> Factors {
    let mut others = difference.place.factors.clone();
    others.remove(&difference.subject);
    others
}

fn same_programs(difference: &Difference) -> &'static str {
    match difference.same_programs {
        true => " Both ran the same programs, by their digests: what differs between them is chance.",
        false => "",
    }
}

/// A difference with its figure: `median +6 µs (−39 to 50), not shown`.
pub(super) fn change(measured: &Measured, verdict: FindingVerdict) -> Option<String> {
    change_at(measured, verdict, "")
}

/// Like [`change`], with a place behind the figure.
fn change_at(measured: &Measured, verdict: FindingVerdict, place: &str) -> Option<String> {
    let text: fn(&Estimate) -> String = if measured.figure.is_time() { words::latency } else { percent };
    let space = if place.is_empty() { "" } else { " " };
    let by = judged(&measured.estimate, verdict, text);
    Some(format!("{}{space}{place} {by}", figure_name(measured.figure)?))
}

/// Requests per second with the digits that tables have: `3980 requests/s (3900–4060)`.
pub(super) fn requests_per_s(rate: &Estimate) -> String {
    with_unit(&Interval::new(rate), "requests/s")
}

/// A change with the digits that tables have: `+6 % (−2 to 13)` after its sign.
pub(super) fn percent(change: &Estimate) -> String {
    with_unit(&Interval::scaled(change, 100.0), "%")
}

/// Texts of findings have plain spaces.
fn with_unit(interval: &Interval, unit: &str) -> String {
    interval.text_with_unit(unit).replace('\u{a0}', " ")
}

/// A difference with its verdict: `+35 µs (11–60)`, or `+6 µs (−39 to 50), not shown`.
pub(super) fn judged(
    difference: &Estimate,
    verdict: FindingVerdict,
    text: impl Fn(&Estimate) -> String,
) -> String {
    let by = words::signed(difference, text);
    match verdict {
        FindingVerdict::Shown => by,
        FindingVerdict::NotShown => format!("{by}, not shown"),
        FindingVerdict::CannotTell => format!("{by}, not shown: one repeat"),
    }
}

/// Short name of a figure of a difference.
pub(super) fn figure_name(figure: Metric) -> Option<&'static str> {
    Some(match figure {
        Metric::ResponseTimeP50Us => "median",
        Metric::ResponseTimeP90Us => "p90",
        Metric::ResponseTimeP99Us => "p99",
        Metric::FirstEventP50Us => "median first token",
        Metric::FirstEventP90Us => "p90 of the first token",
        Metric::FirstEventP99Us => "p99 of the first token",
        Metric::EventGapP99Us => "p99 between tokens",
        Metric::MemoryAnonymousChange | Metric::MemoryAnonymousBytes => "anonymous proxy memory",
        Metric::ConfigurationSizeChange => "size of the proxies’ configuration",
        Metric::ConfiguredLastUs => "last proxy configured",
        Metric::RateCompletedChange | Metric::RateCompleted => "throughput",
        Metric::CpuPerRequestChange | Metric::CpuCoresPer1000Rps => "proxy CPU per request",
        Metric::ConvergenceP99Us => "p99 of convergence",
        Metric::IstiodCpuS => "istiod CPU time",
        Metric::IstiodMemoryBytes => "resident istiod memory",
        Metric::IstiodMemoryAnonymousBytes => "anonymous istiod memory",
        Metric::BytesPerProxy => "bytes per proxy",
        _ => return None,
    })
}
