//! Response times.

use super::said::Said;
use super::word_factors::{figure_name, judged};
use super::{
    Context, MAX_LINE, at_first, fleets, headlines, higher_or_lower, place, sizes, throughput,
    with_conditions, word_factors,
};
use crate::disturbed::nothing_valid;
use crate::marks::mark;
use experiment::HeadlineFigure;
use results::finding::{Added, Against, Headline, OfCell, Value};
use results::{Cell, Clock, Figure, FindingVerdict, Metric, Mode, OwnedCellKey};
use statistics::words;

/// The answer, and the far corner of several factors behind it.
pub(super) fn headline(run: &Context<'_>, group: &[&Headline]) -> Said {
    match group {
        [rest @ .., corner @ Headline::Corner(_)] if !headlines::are_differences(group[0]) => {
            answer(run, rest).and(&headlines::far_corner(run, corner))
        }
        group => answer(run, group),
    }
}

/// The answer in one line.
fn answer(run: &Context<'_>, group: &[&Headline]) -> Said {
    macro_rules! all {
        ($form:ident) => {
            group.iter().filter_map(|part| match part {
                Headline::$form(content) => Some(content),
                _ => None,
            })
        };
    }
    let cpu = || {
        let cpu = all!(Cpu).next();
        cpu.map_or_else(String::new, |cpu| {
            format!("; each proxy uses {}", words::cores_value(cpu.content.value))
        })
    };
    let median = |of: &OwnedCellKey, figure: Metric, text: &str| {
        let through = match of.mode {
            Mode::None => "without a mesh".to_owned(),
            Mode::EgressBypass => "past the sidecar".to_owned(),
            mode => format!("through {}", run.subject(mode)),
        };
        let what = match figure {
            Metric::ResponseTimeP50Us => "the median response time",
            other if other.clock() == Some(Clock::ResponseTime) => {
                &format!("{} of the response time", percentile_name(other))
            }
            other => percentile_name(other),
        };
        let comma = if of.load.stream.is_some() { "," } else { "" };
        Said::from(format!("{}{comma} {what} {through} {text}{}.", at_first(of.conditions()), cpu()))
    };
    match group[0] {
        first if headlines::are_differences(first) => headlines::differences(run, group),
        Headline::Values(_) => word_factors::headline(run, &all!(Values).collect::<Vec<_>>()),
        Headline::Capacity(_) => headlines::capacity(run, &all!(Capacity).collect::<Vec<_>>()),
        Headline::Proxies(_) => headlines::proxies(run, &all!(Proxies).collect::<Vec<_>>()).into(),
        Headline::Added(added) if all!(Call).next().is_some() => {
            let (call, wanted) = (all!(Call).next(), all!(Added).nth(1));
            let differences = [added].into_iter().chain(wanted);
            let compared = |of: &str| compared(run, added, of) + &behind_median(run, added, wanted);
            headlines::entry(run, compared, added, call, all!(Proxies).next())
                .and(&run.chance(differences.map(|added| &added.content.added.difference)))
        }
        Headline::Fleet(_) => fleets::convergence(&all!(Fleet).collect::<Vec<_>>(), true),
        Headline::Effect(_) => sizes::held(run, &all!(Effect).collect::<Vec<_>>()),
        Headline::Measured(baseline) if baseline.content.figure == Metric::RateCompleted => {
            throughput::headline(baseline, &all!(Loss).collect::<Vec<_>>()).into()
        }
        Headline::Measured(one) => {
            median(&one.place, one.content.figure, &format!("is {}", words::latency(&one.content.estimate)))
        }
        Headline::Unanswered(one) if one.content.figure.spoiled_by() != Figure::P50 => {
            median(&one.place, one.content.figure, "falls among requests without a response")
        }
        Headline::Unanswered(one) => median(
            &one.place,
            one.content.figure,
            "falls among requests without a response; every second request or more had none",
        ),
        Headline::Added(first) if first.content.value.figure.clock() == Some(Clock::FirstEvent) => {
            streams(run, &all!(Added).collect::<Vec<_>>())
        }
        Headline::Added(added) => {
            let text = format!("{}{}", compared(run, added, ""), cpu());
            with_conditions(added.place.conditions(), &text)
                .and(&run.chance([&added.content.added.difference]))
        }
        Headline::Nothing(_)
        | Headline::Loss(_)
        | Headline::Cpu(_)
        | Headline::Call(_)
        | Headline::Corner(_) => match nothing_valid(run.summary) {
            Some((line, detail)) => Said::from(line).and(detail),
            None => Said::from("Nothing can be said: no trial is valid.".to_owned()),
        },
    }
}

/// Clause on the percentile that a topology's headline wants, behind a median that leads because the percentile cannot be judged;
/// with the reason.
fn behind_median(run: &Context<'_>, median: &OfCell<Added>, wanted: Option<&OfCell<Added>>) -> String {
    let figure = match run.experiment.headline {
        Some(HeadlineFigure::P50) => return String::new(),
        Some(HeadlineFigure::P90) => Metric::ResponseTimeP90Us,
        _ => Metric::ResponseTimeP99Us,
    };
    if median.content.value.figure != Metric::ResponseTimeP50Us {
        return String::new();
    }
    let what = match wanted {
        Some(wanted) => clause(&wanted.content, ""),
        None => format!("{} is not compared", percentile_name(figure)),
    };
    let why = why_not(run, median, figure.spoiled_by()).map(|why| format!(" ({why})"));
    format!("; {what}{}", why.unwrap_or_default())
}

/// Reason why a percentile of a cell, or of its baseline, is not that of every trial, or rests on few events, such as `sidecar:
/// unusable in 2 of 3 trials: other-processes`.
fn why_not(run: &Context<'_>, added: &OfCell<Added>, figure: Figure) -> Option<String> {
    let modes = [added.place.mode, added.content.added.against];
    let is_of =
        |cell: &&Cell, mode: Mode| cell.mode == mode && cell.conditions().covers(added.place.conditions());
    let cells = modes.map(|mode| run.summary.cells.iter().find(|cell| is_of(cell, mode)));
    let of_cell = |cell: &Cell| {
        let times = cell.response_time_us?;
        let mode = words::mode(cell.mode);
        if times.censored(figure).is_some() {
            return Some(format!("{mode}: among requests without a response"));
        }
        let n = times.figure(figure).map_or(0, |estimate| estimate.n);
        let reason = mark(cell, figure, n)?.reason;
        let (first, rest) = reason.split_at(1);
        Some(format!("{mode}: {}{}", first.to_lowercase(), rest.trim_end_matches('.')))
    };
    cells.into_iter().flatten().find_map(of_cell)
}

fn is_shown(added: &Added) -> bool {
    added.added.verdict == FindingVerdict::Shown
}

/// Clause on what a mode adds to its baseline, worded as strongly as the interval allows. `of` follows the figure.
fn compared(run: &Context<'_>, added: &OfCell<Added>, of: &str) -> String {
    let (subject, added) = (run.subject(added.place.mode), &added.content);
    let (what, difference) = (percentile(added), &added.added.difference);
    if difference.low.is_none() {
        let by = higher_or_lower(difference, words::latency);
        let whose = if of.is_empty() { format!(" of {subject}") } else { format!("{of} with {subject}") };
        return format!("{what}{whose} is {by}, not shown: one trial each");
    }
    if is_shown(added) {
        return format!("{subject} {}{of}{}", changes(added), relative(added));
    }
    format!("{subject}: {}", clause(added, of))
}

/// A difference after the subject, such as `p99 of web +0.38 ms (−0.35 to 1.11), not shown`.
fn clause(added: &Added, of: &str) -> String {
    let Against { difference, verdict, .. } = &added.added;
    let name = figure_name(added.value.figure).unwrap_or_default();
    format!("{name}{of} {}", judged(difference, *verdict, words::latency))
}

/// What a mode adds, clause by clause; the first one names it.
fn clauses(run: &Context<'_>, group: &[&OfCell<Added>]) -> String {
    let one = |(place, added): (usize, &&OfCell<Added>)| match place {
        0 => compared(run, added, ""),
        _ => clause(&added.content, ""),
    };
    group.iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
}

/// `adds 0.38 ms (0.35–0.41) to the median`, for a difference that is shown.
fn changes(added: &Added) -> String {
    let (difference, what) = (&added.added.difference, percentile(added));
    if difference.estimate > 0.0 {
        return format!("adds {} to {what}", words::latency(difference));
    }
    let less = difference.map_reversed(std::ops::Neg::neg);
    format!("lowers {what} by {}", words::latency(&less))
}

/// ` (×7.1)`, relative to the baseline.
fn relative(added: &Added) -> String {
    let value = added.value.value;
    let relative = words::relative(value, value - added.added.difference.estimate);
    relative.map_or_else(String::new, |relative| format!(" ({relative})"))
}

fn percentile(added: &Added) -> &'static str {
    percentile_name(added.value.figure)
}

pub(super) fn percentile_name(figure: Metric) -> &'static str {
    match figure {
        Metric::ResponseTimeP99Us => "p99",
        Metric::ResponseTimeP90Us => "p90",
        Metric::FirstEventP50Us => "the median first token",
        Metric::FirstEventP90Us => "p90 of the first token",
        Metric::FirstEventP99Us => "p99 of the first token",
        Metric::EventGapP99Us => "p99 between tokens",
        _ => "the median",
    }
}

/// What a mode adds to the first token and between tokens. Percentiles and conditions are in the detail, so that both fit into a
/// line.
fn streams(run: &Context<'_>, group: &[&OfCell<Added>]) -> Said {
    let first = group[0];
    let rises =
        |added: &&OfCell<Added>| is_shown(&added.content) && added.content.added.difference.estimate > 0.0;
    let (text, percentiles) = match group {
        [first, gap] if group.iter().all(rises) => {
            let [first_us, gap_us] =
                [first, gap].map(|added| words::latency(&added.content.added.difference));
            let subject = run.subject(first.place.mode);
            let [of_first, of_gap] = [first, gap].map(|added| added.content.value.figure.spoiled_by().name());
            (
                format!("{subject} adds {first_us} to the first token, {gap_us} between tokens"),
                format!("At {of_first} of the first token and {of_gap} between tokens. "),
            )
        }
        _ => (clauses(run, group), String::new()),
    };
    let conditions = at_first(first.place.conditions());
    let against = words::mode(first.content.added.against);
    Said::from(format!("{}.", words::sentence(&text)))
        .and(&format!("{percentiles}{conditions}, compared with {against}."))
        .and(&run.chance(group.iter().map(|added| &added.content.added.difference)))
}

/// What a mode adds to both percentiles.
pub(super) fn added(run: &Context<'_>, group: &[&OfCell<Added>]) -> Said {
    let first = group[0];
    if first.content.value.figure.clock() == Some(Clock::FirstEvent) {
        return streams(run, group);
    }
    let text = match group {
        [median, tail] if is_shown(&median.content) && is_shown(&tail.content) => {
            let second = changes(&tail.content);
            let rises = median.content.added.difference.estimate > 0.0;
            let second = if rises { second.trim_start_matches("adds ") } else { &second };
            let (subject, median) = (run.subject(first.place.mode), changes(&median.content));
            let whole = format!("{subject} {median} and {second}");
            // Two clauses, if both are too long for a line.
            let room = MAX_LINE.saturating_sub(at_first(first.place.conditions()).chars().count() + 2);
            if whole.chars().count() > room { format!("{subject} {median}; {second}") } else { whole }
        }
        _ => clauses(run, group),
    };
    let against = format!("Compared with {}.", words::mode(first.content.added.against));
    let pauses = match group.iter().any(|added| added.content.share.is_some()) {
        true => " Pauses of the machine can cause this p99.",
        false => "",
    };
    let chance = run.chance(group.iter().map(|added| &added.content.added.difference));
    with_conditions(first.place.conditions(), &text).and(&format!("{against}{pauses}")).and(&chance)
}

/// Service time that looks good because requests waited before they were sent.
pub(super) fn hidden_waiting(group: &[&OfCell<Value>]) -> Said {
    let of =
        |figure: Metric| group.iter().find(|one| one.content.figure == figure).map(|one| one.content.value);
    let time = |figure: Metric| of(figure).map(words::latency_value).unwrap_or_default();
    let text = format!(
        "{}: p99 of the response time is {}, of the service time {}.",
        place(&group[0].place),
        time(Metric::ResponseTimeP99Us),
        time(Metric::ServiceTimeP99Us)
    );
    Said::from(text).and(
        "Requests waited for their turn behind slow ones, and service time, which counts from the actual send, hides that.",
    )
}
