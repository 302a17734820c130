//! Differences as tables, described once for the terminal, Markdown and HTML: what modes add to their baselines, and what values
//! of factors change. Each has its estimate and interval, also where it is not shown.

use crate::conditions::ConditionLabels;
use crate::format::{self, SizeUnit, TimeUnit};
use crate::table::{Difference, ResultTable, floor};
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use experiment::file::label::label;
use results::{
    BACKGROUND_SERVICES, Cell, Clock, Conditions, Estimate, FactorDifference, FactorEffect, Factors, Figure,
    FindingVerdict, Metric, Summary,
};
use serde::Serialize;

/// Percentiles whose differences are in the tables.
pub(crate) const PERCENTILES: [(&str, Figure); 3] =
    [("p50", Figure::P50), ("p90", Figure::P90), ("p99", Figure::P99)];

fn labels(summary: &Summary) -> ConditionLabels {
    ConditionLabels::new(summary.cells.iter().map(Cell::conditions))
}

/// Heading of [`added`].
pub(crate) fn added_heading(summary: &Summary) -> String {
    let of_streams = summary.cells.iter().any(|cell| cell.load.stream.is_some());
    format!("Added to {}{}", floor(summary), if of_streams { ", first token" } else { "" })
}

/// Latency that each mode adds to its baseline; `None` if nothing is compared.
pub(crate) fn added(summary: &Summary) -> Option<Table> {
    let shown = ResultTable::new(summary);
    let labels = labels(summary);
    let mut columns = vec![Column::text("Load").terminal("load"), Column::name("Mode").terminal("mode")];
    columns.extend(PERCENTILES.map(|(name, figure)| {
        let column = Column::number(name).terminal(&format!("{name}, {}", shown.unit.symbol()));
        if figure == Figure::P90 { column.wide() } else { column }
    }));
    let row = |cell: &Cell| -> Option<TableRow> {
        let added = cell.leading_added()?;
        let place = [labels.label(cell.conditions()).into(), cell.mode.name().into()];
        let differences = PERCENTILES
            .map(|(_, figure)| difference(added.judged(figure), |by| Difference::new(by, shown.unit)));
        Some(place.into_iter().chain(differences).collect())
    };
    let rows: Vec<TableRow> = summary.cells.iter().filter_map(row).collect();
    let group = Group::new(String::new(), rows);
    (!group.rows.is_empty() && shown.compares).then(|| Table { columns, groups: vec![group] })
}

/// A difference in one text; a dash without one.
pub(crate) fn difference(
    judged: Option<(Estimate, FindingVerdict)>,
    read: impl Fn((&Estimate, FindingVerdict)) -> Difference,
) -> TableCell {
    let text = judged.map(|(estimate, verdict)| read((&estimate, verdict)).text());
    text.unwrap_or_else(|| format::ABSENT.to_owned()).into()
}

/// Values of factors whose values are words: each against the first.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DifferenceTable {
    /// Unit of times.
    pub(crate) time_unit: &'static str,
    pub(crate) memory_unit: &'static str,
    pub(crate) of_fleets: bool,
    /// One group per factor, mode and load, such as `scenario against no-filters, ingress at 50 clients`; one row
    /// per value.
    pub(crate) table: Table,
}

/// Figures of requests, with the titles of their columns.
const OF_REQUESTS: [(Metric, &str); 12] = [
    (Metric::ResponseTimeP50Us, "p50"),
    (Metric::ResponseTimeP90Us, "p90"),
    (Metric::ResponseTimeP99Us, "p99"),
    (Metric::FirstEventP50Us, "First token, p50"),
    (Metric::FirstEventP90Us, "First token, p90"),
    (Metric::FirstEventP99Us, "First token, p99"),
    (Metric::EventGapP99Us, "Between tokens, p99"),
    (Metric::RateCompleted, "Throughput"),
    (Metric::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request"),
    (Metric::ProxiesMemoryAnonymousBytes, "Anonymous memory of all proxies"),
    (Metric::ProxiesConfigurationBytes, "Configuration of all proxies"),
    (Metric::ConfiguredLastUs, "Last proxy configured"),
];

/// Figures of fleets.
const OF_FLEETS: [(Metric, &str); 9] = [
    (Metric::ConvergenceP50Us, "p50"),
    (Metric::ConvergenceP90Us, "p90"),
    (Metric::ConvergenceP99Us, "p99"),
    (Metric::ConvergenceLastUs, "Last"),
    (Metric::FirstConfigurationLastUs, "First configuration, last"),
    (Metric::IstiodCpuS, "CPU time of istiod"),
    (Metric::IstiodMemoryBytes, "Resident memory of istiod"),
    (Metric::IstiodMemoryAnonymousBytes, "Anonymous memory of istiod"),
    (Metric::BytesPerProxy, "Bytes per proxy"),
];

/// Columns that only some factors have.
const OF_SOME_FACTORS: [Metric; 12] = [
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP90Us,
    Metric::ResponseTimeP99Us,
    Metric::FirstEventP50Us,
    Metric::FirstEventP90Us,
    Metric::FirstEventP99Us,
    Metric::EventGapP99Us,
    Metric::RateCompleted,
    Metric::ProxiesConfigurationBytes,
    Metric::ConfiguredLastUs,
    Metric::IstiodMemoryBytes,
    Metric::IstiodMemoryAnonymousBytes,
];

/// Columns of narrow terminals.
const NARROW: [Metric; 9] = [
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP99Us,
    Metric::FirstEventP50Us,
    Metric::EventGapP99Us,
    Metric::RateCompleted,
    Metric::ProxiesCpuCoresPer1000Rps,
    Metric::ConvergenceP99Us,
    Metric::IstiodCpuS,
    Metric::IstiodMemoryBytes,
];

/// Heading of a column on a terminal.
fn heading(figure: Metric, time_unit: TimeUnit, memory_unit: SizeUnit) -> String {
    match figure {
        Metric::RateCompleted => "throughput".to_owned(),
        Metric::ProxiesCpuCoresPer1000Rps => "proxy CPU".to_owned(),
        Metric::ProxiesMemoryAnonymousBytes => format!("anonymous memory, {}", memory_unit.symbol()),
        Metric::ProxiesConfigurationBytes => "configuration".to_owned(),
        Metric::ConfiguredLastUs => format!("configured, {}", time_unit.symbol()),
        Metric::ConvergenceLastUs => format!("last, {}", time_unit.symbol()),
        Metric::FirstConfigurationLastUs => format!("first, {}", time_unit.symbol()),
        Metric::IstiodCpuS => "istiod CPU".to_owned(),
        Metric::IstiodMemoryBytes => "istiod memory".to_owned(),
        Metric::IstiodMemoryAnonymousBytes => "anonymous".to_owned(),
        Metric::BytesPerProxy => "bytes".to_owned(),
        gap if gap.clock() == Some(Clock::EventGap) => {
            format!("gap {}, {}", gap.spoiled_by().name(), time_unit.symbol())
        }
        time => format!("{}, {}", time.spoiled_by().name(), time_unit.symbol()),
    }
}

fn column(title: &str, figure: Metric, time_unit: TimeUnit, memory_unit: SizeUnit) -> Column {
    let column = Column::number(title).terminal(&heading(figure, time_unit, memory_unit));
    if NARROW.contains(&figure) { column } else { column.wide() }
}

impl DifferenceTable {
    /// Unit of the times in the table.
    pub(crate) fn unit(summary: &Summary) -> TimeUnit {
        let times = summary.factor_differences.iter().filter(|one| one.figure.is_time());
        TimeUnit::for_times(times.map(|one| one.estimate.estimate))
    }

    /// `None` if no factor has non-numeric values.
    pub(crate) fn new(summary: &Summary) -> Option<Self> {
        let (all, labels) = (&summary.factor_differences, labels(summary));
        let time_unit = Self::unit(summary);
        let memory = all.iter().filter(|one| one.figure == Metric::ProxiesMemoryAnonymousBytes);
        let memory_unit = SizeUnit::for_sizes(memory.map(|one| one.estimate.estimate));
        let of_fleets = all.iter().any(|one| one.load.is_fleet());
        let figures: &[(Metric, &str)] = if of_fleets { &OF_FLEETS } else { &OF_REQUESTS };
        let is_compared =
            |figure: Metric| !OF_SOME_FACTORS.contains(&figure) || all.iter().any(|one| one.figure == figure);
        let figures: Vec<(Metric, &str)> =
            figures.iter().copied().filter(|(figure, _)| is_compared(*figure)).collect();
        let groups = grouped(all, &labels).into_iter().map(|(name, of_group)| {
            let rows = values(&of_group).into_iter().map(|to| {
                let cells = figures.iter().map(|(figure, _)| {
                    let of_value = of_group.iter().find(|one| one.figure == *figure && one.to == to.to);
                    of_value.map_or_else(String::new, |one| text(one, time_unit, memory_unit)).into()
                });
                std::iter::once((&to.to).into()).chain(cells).collect()
            });
            Group::new(name, rows.collect())
        });
        let groups = groups.collect();
        let titles = figures.iter().map(|(figure, name)| column(name, *figure, time_unit, memory_unit));
        let columns = std::iter::once(Column::name("Value").terminal("value")).chain(titles).collect();
        (!all.is_empty()).then(|| Self {
            time_unit: time_unit.symbol(),
            memory_unit: memory_unit.symbol(),
            of_fleets,
            table: Table { columns, groups },
        })
    }
}

/// Differences of the same factor, mode, load and other factors, with a heading such as `mTLS against off, sidecar at 300/s`.
pub(crate) fn grouped<'a>(
    all: &'a [FactorDifference],
    labels: &ConditionLabels,
) -> Vec<(String, Vec<&'a FactorDifference>)> {
    let mut groups: Vec<(String, Vec<&FactorDifference>)> = Vec::new();
    for difference in all {
        let FactorDifference { factor, mode, factors, load, from, .. } = difference;
        let mut with_value = factors.clone();
        with_value.insert(factor.clone(), from.clone());
        let at = labels.label_without(Conditions { factors: &with_value, load }, factor);
        let name = format!("{} against {from}, {mode} at {at}", label(factor));
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of_group)) => of_group.push(difference),
            None => groups.push((name, vec![difference])),
        }
    }
    groups
}

/// One difference per value.
fn values<'a>(of_group: &[&'a FactorDifference]) -> Vec<&'a FactorDifference> {
    let mut values: Vec<&FactorDifference> = Vec::new();
    for difference in of_group {
        if !values.iter().any(|known| known.to == difference.to) {
            values.push(difference);
        }
    }
    values
}

fn text(difference: &FactorDifference, time_unit: TimeUnit, memory_unit: SizeUnit) -> String {
    let FactorDifference { figure, estimate, relative, verdict, .. } = difference;
    match (figure, relative) {
        (figure, _) if figure.is_time() => Difference::new((estimate, *verdict), time_unit).text(),
        (Metric::ProxiesMemoryAnonymousBytes, _) => {
            Difference::size((estimate, *verdict), memory_unit).text()
        }
        (_, Some(relative)) => Difference::percent((relative, *verdict)).text_with_unit("%"),
        (_, None) => String::new(),
    }
}

/// Changes of figures over numeric factors.
const CHANGES: [(Metric, &str); 8] = [
    (Metric::ResponseTimeP50Us, "p50"),
    (Metric::ResponseTimeP99Us, "p99"),
    (Metric::FirstEventP50Us, "first token p50"),
    (Metric::FirstEventP99Us, "first token p99"),
    (Metric::EventGapP99Us, "between tokens p99"),
    (Metric::RateCompleted, "Throughput, requests/s"),
    (Metric::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request"),
    (Metric::ProxiesMemoryAnonymousBytes, "anonymous memory of all proxies"),
];

/// Changes from the least to the greatest value of each factor with numbers, except of the size of the mesh, which has its own
/// tables: one group per factor, one row per mode and load. `None` if there are none.
pub(crate) fn effects(summary: &Summary) -> Option<Table> {
    let labels = labels(summary);
    let medians_us = summary.cells.iter().filter_map(|cell| Some(cell.leading_times()?.p50?.estimate));
    let unit = TimeUnit::for_times(medians_us);
    let all = || summary.factor_effects.iter().filter(|effect| effect.factor != BACKGROUND_SERVICES);
    let is_known = |figure: Metric| all().any(|effect| effect.figure == figure);
    let figures: Vec<(Metric, &str)> = CHANGES.into_iter().filter(|(figure, _)| is_known(*figure)).collect();
    let mut factors: Vec<&str> = Vec::new();
    let medians = || {
        all().filter(|effect| matches!(effect.figure, Metric::ResponseTimeP50Us | Metric::FirstEventP50Us))
    };
    for effect in medians() {
        if !factors.contains(&effect.factor.as_str()) {
            factors.push(&effect.factor);
        }
    }
    let group = |factor: &str| {
        let of_factor = || medians().filter(|effect| effect.factor == factor);
        let row = |median: &FactorEffect| -> Option<TableRow> {
            let at = Conditions { factors: &median.factors, load: median.load.as_ref()? };
            let name = format!("{} at {}", median.mode, labels.label_without(at, factor));
            let value = |(figure, _): &(Metric, &str)| {
                let mut same = all().filter(|effect| effect.is_beside(median));
                let found = same.find(|effect| effect.figure == *figure);
                TableCell::from(found.map_or_else(String::new, |effect| change(effect, unit)))
            };
            Some(std::iter::once(name.into()).chain(figures.iter().map(value)).collect())
        };
        let ends = of_factor().next().map(|effect| typed_ends(summary, effect)).unwrap_or_default();
        Group::new(format!("{}{ends}", label(factor)), of_factor().filter_map(row).collect())
    };
    let groups: Vec<Group> = factors.iter().map(|factor| group(factor)).collect();
    let titles = figures.iter().map(|(figure, name)| {
        let of_unit = match figure {
            Metric::ProxiesMemoryAnonymousBytes => format!("{name}, MB"),
            Metric::RateCompleted => (*name).to_owned(),
            _ => format!("{name}, {}", unit.symbol()),
        };
        let heading = match figure {
            Metric::ProxiesMemoryAnonymousBytes => "memory, MB".to_owned(),
            Metric::ProxiesCpuCoresPer1000Rps => format!("CPU per request, {}", unit.symbol()),
            Metric::RateCompleted => "requests/s".to_owned(),
            _ => of_unit.clone(),
        };
        let column = Column::number(&of_unit).terminal(&heading);
        if NARROW.contains(figure) { column } else { column.wide() }
    });
    let columns = std::iter::once(Column::name("Mode").terminal("mode")).chain(titles).collect();
    (!groups.is_empty()).then_some(Table { columns, groups })
}

fn change(effect: &FactorEffect, unit: TimeUnit) -> String {
    let (change, verdict) = (in_us(effect), effect.verdict);
    match effect.figure {
        Metric::ProxiesMemoryAnonymousBytes => {
            Difference::size((&change, verdict), SizeUnit::Megabytes).text()
        }
        Metric::RateCompleted => Difference::plain((&change, verdict)).text(),
        _ => Difference::new((&change, verdict), unit).text(),
    }
}

/// The change of a figure in its unit, of a time in microseconds; cores per 1000 requests/s equal milliseconds per request.
pub(crate) fn in_us(effect: &FactorEffect) -> Estimate {
    let factor = if effect.figure == Metric::ProxiesCpuCoresPer1000Rps { 1e3 } else { 1.0 };
    effect.change().map(|difference| difference * factor)
}

/// Such as ` from 250m to 1`, as typed in the experiment.
fn typed_ends(summary: &Summary, effect: &FactorEffect) -> String {
    let key = effect.factor.as_str();
    let typed = |number: &f64| {
        let value = |factors: &Factors| {
            let value = factors.get(key)?;
            (value.quantity(key) == Some(*number)).then(|| value.to_string())
        };
        summary.cells.iter().find_map(|cell| value(&cell.factors))
    };
    let ends = effect.values.first().and_then(typed).zip(effect.values.last().and_then(typed));
    ends.map(|(least, greatest)| format!(" from {least} to {greatest}")).unwrap_or_default()
}
