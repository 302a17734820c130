//! Noise of the machine, described once for the terminal, Markdown and HTML: the figures that it keeps out of the estimates, and
//! noise that the user accepted in them.

use crate::drivers::{groups, qualified};
use crate::edges::arrow;
use crate::format::{self, Interval, SizeUnit, TimeUnit};
use crate::tables::{Column, Group, Table, TableRow};
use results::{
    AcceptedNoise, Cell, DisturbedFigure, DisturbedFigures, DisturbedTrials, DriverSummary, Estimate,
    ServiceSummary, Summary, TopProcess,
};
use serde::Serialize;
use statistics::words;
use std::collections::BTreeMap;

/// Maximum number of programs named.
const MAX_PROGRAMS: usize = 3;

/// Noise that the user accepted, in the first lines of every output; `None` if the user accepted none.
pub(crate) fn accepted(summary: &Summary) -> Option<String> {
    let AcceptedNoise { trials, of, reasons } = summary.noise_accepted.as_ref()?;
    if *trials == 0 {
        return Some(format!(
            "Noise accepted: in none of {} noise alone keeps a figure out.",
            format::counted(*of as u64, "trial", "trials")
        ));
    }
    let mut by: Vec<String> = reasons.keys().map(|kind| cause(kind).0.to_owned()).collect();
    by.dedup();
    let were = if *trials == 1 { "was" } else { "were" };
    Some(format!(
        "Noise accepted: {trials} of {of} trials {were} disturbed by {}; figures include them.",
        words::list(&by)
    ))
}

/// A kind of noise as what disturbed trials, and as a clause.
fn cause(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "other-processes" => ("other programs", "other programs took CPU"),
        "steal" => ("the hypervisor", "the hypervisor took CPU"),
        "fleet-late" => ("a late fleet", "the fleet was late"),
        "reading-lag" => ("a late generator", "the generator read late"),
        _ => ("a late generator", "the generator sent late"),
    }
}

/// Noise that keeps figures of a run out of the estimates, such as `Other programs (rustc, cargo) took 0.8–1.9 cores in all 4
/// trials`.
pub(crate) fn noise(summary: &Summary) -> String {
    let all: Vec<&DisturbedTrials> =
        summary.cells.iter().filter_map(|cell| cell.disturbed.as_ref()).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, trials) in all.iter().flat_map(|disturbed| &disturbed.reasons) {
        *counts.entry(kind).or_default() += trials;
    }
    let clause = |(kind, trials): (&str, usize)| {
        let what = if kind == "other-processes" { others(&all) } else { cause(kind).1.to_owned() };
        format!("{what} in {}", of_trials(trials, summary))
    };
    words::sentence(&counts.into_iter().map(clause).collect::<Vec<_>>().join("; "))
}

/// Number of disturbed trials, of those recorded; reruns count once.
fn of_trials(trials: usize, summary: &Summary) -> String {
    let of = summary.places_recorded();
    match (trials.min(of), of) {
        (1, 1) => "the only trial".to_owned(),
        (trials, of) if trials == of => format!("all {of} trials"),
        (trials, of) => format!("{trials} of {of} trials"),
    }
}

/// Reason why no trial is valid, and what helps, if noise of the machine is the reason.
pub(crate) fn nothing_valid(summary: &Summary) -> Option<(String, &'static str)> {
    let trials: usize = summary.cells.iter().filter_map(|cell| Some(cell.disturbed.as_ref()?.trials)).sum();
    let line = format!("No trial is valid: noise of the machine disturbed {}.", of_trials(trials, summary));
    (trials > 0).then_some((
        line,
        "`--accept-noise` draws estimates from these trials. Figures that noise does not affect are below.",
    ))
}

/// `other programs (rustc, cargo) took 0.8–1.9 cores`
fn others(all: &[&DisturbedTrials]) -> String {
    let mut programs: Vec<&TopProcess> = all.iter().flat_map(|disturbed| &disturbed.programs).collect();
    programs.sort_by(|one, other| other.cpu_cores.total_cmp(&one.cpu_cores));
    let mut names: Vec<&str> = Vec::new();
    for program in programs {
        if !names.contains(&program.name.as_str()) {
            names.push(&program.name);
        }
    }
    names.truncate(MAX_PROGRAMS);
    let named = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let ends = || all.iter().filter_map(|disturbed| disturbed.other_processes_cores);
    let least = ends().map(|[least, _]| least).reduce(f64::min);
    let greatest = ends().map(|[_, greatest]| greatest).reduce(f64::max);
    let took = match least
        .zip(greatest)
        .map(|(least, greatest)| (format!("{least:.1}"), format!("{greatest:.1}")))
    {
        None => "CPU".to_owned(),
        Some((least, greatest)) if least == greatest => format!("{least} cores"),
        Some((least, greatest)) => format!("{least}–{greatest} cores"),
    };
    format!("other programs{named} took {took}")
}

/// Disturbed figures of one kind of things.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DisturbedTable {
    pub(crate) heading: &'static str,
    /// True if there is a group per cell.
    pub(crate) by_cell: bool,
    pub(crate) table: Table,
}

/// Explains the tables.
pub(crate) const MEANING: &str = "Measured in trials that noise of the machine disturbed: median, and range. In no estimate without --accept-noise.";

/// Disturbed figures of cells, drivers, services and calls; those without any are left out.
pub(crate) fn tables(summary: &Summary) -> Vec<DisturbedTable> {
    let tables = [
        cells(summary).map(|table| ("Disturbed figures", false, table)),
        parts(summary, "Driver", of_drivers).map(|table| ("Disturbed figures of drivers", true, table)),
        parts(summary, "Service", of_services).map(|table| ("Disturbed figures of services", true, table)),
        parts(summary, "Call", of_edges)
            .map(|table| ("Disturbed figures of calls between services", true, table)),
    ];
    let tables = tables.into_iter().flatten();
    tables.map(|(heading, by_cell, table)| DisturbedTable { heading, by_cell, table }).collect()
}

fn cells(summary: &Summary) -> Option<Table> {
    let disturbed = summary.cells.iter().filter_map(|cell| Some((cell, &cell.disturbed.as_ref()?.figures)));
    let (cells, figures): (Vec<&Cell>, Vec<&DisturbedFigures>) =
        disturbed.filter(|(_, figures)| FIGURES.iter().any(|shown| figures.contains_key(shown.key))).unzip();
    let units = Units::new(&figures);
    let mut columns =
        vec![Column::name("Cell").terminal("cell"), Column::number("Trials").terminal("trials")];
    columns.extend(units.columns());
    let row = |cell: &Cell, place: String| -> Group {
        let figures =
            cell.disturbed.as_ref().map_or_else(Vec::new, |disturbed| units.row(&disturbed.figures));
        let trials = cell.disturbed.as_ref().map_or(0, |disturbed| disturbed.trials);
        let lead = [place.into(), format!("{trials} of {}", cell.places()).into()];
        Group::new(String::new(), vec![lead.into_iter().chain(figures).collect()])
    };
    let rows: Vec<TableRow> = groups(summary, &cells, row).into_iter().flat_map(|group| group.rows).collect();
    (!units.present.is_empty()).then(|| Table { columns, groups: vec![Group::new(String::new(), rows)] })
}

/// Names of the parts of a cell, each with its disturbed figures.
type Parts<'a> = Vec<(String, &'a DisturbedFigures)>;

fn of_drivers(cell: &Cell) -> Parts<'_> {
    let named = |driver: &DriverSummary| qualified(&driver.namespace, &driver.name);
    let several = cell.drivers.iter().filter(|_| cell.drivers.len() > 1);
    several.map(|driver| (named(driver), &driver.disturbed)).collect()
}

fn of_services(cell: &Cell) -> Parts<'_> {
    let named = |service: &ServiceSummary| qualified(&service.namespace, &service.name);
    let several = cell.services.iter().filter(|_| cell.services.len() > 1);
    several.map(|service| (named(service), &service.disturbed)).collect()
}

fn of_edges(cell: &Cell) -> Parts<'_> {
    cell.edges.iter().map(|edge| (arrow(edge), &edge.disturbed)).collect()
}

/// A group per cell with disturbed parts, those with the greatest last figure first.
fn parts(summary: &Summary, name: &str, of: fn(&Cell) -> Parts<'_>) -> Option<Table> {
    let disturbed = |cell: &Cell| of(cell).iter().any(|(_, figures)| !figures.is_empty());
    let cells: Vec<&Cell> = summary.cells.iter().filter(|cell| disturbed(cell)).collect();
    let all: Vec<&DisturbedFigures> =
        cells.iter().flat_map(|cell| of(cell)).map(|(_, figures)| figures).collect();
    let units = Units::new(&all);
    let mut columns = vec![Column::name(name).terminal(&name.to_lowercase())];
    columns.extend(units.columns());
    let group = |cell: &Cell, place: String| {
        let mut parts: Parts<'_> = of(cell).into_iter().filter(|(_, figures)| !figures.is_empty()).collect();
        parts.sort_by(|(_, one), (_, other)| units.rank(other).total_cmp(&units.rank(one)));
        let row = |(name, figures): (String, &DisturbedFigures)| -> TableRow {
            std::iter::once(name.into()).chain(units.row(figures)).collect()
        };
        let rows = parts.into_iter().map(row).collect();
        let trials = cell.disturbed.as_ref().map_or(0, |disturbed| disturbed.trials);
        let note = format!("{trials} of {} trials", cell.places());
        Group::selected(place, note, rows, Vec::new(), "greatest")
    };
    (!cells.is_empty()).then(|| Table { columns, groups: groups(summary, &cells, group) })
}

/// Unit of a column.
#[derive(Clone, Copy)]
enum Kind {
    Time,
    Size,
    Cores,
    /// The unit of the result files, by name.
    Plain(&'static str),
}

/// Column of a figure.
#[derive(Clone, Copy)]
struct Shown {
    key: &'static str,
    title: &'static str,
    kind: Kind,
    /// True if only wide terminals have it.
    is_wide: bool,
}

const fn narrow(key: &'static str, title: &'static str, kind: Kind) -> Shown {
    Shown { key, title, kind, is_wide: false }
}

const fn wide(key: &'static str, title: &'static str, kind: Kind) -> Shown {
    Shown { key, title, kind, is_wide: true }
}

/// Columns of figures, in their order.
const FIGURES: [Shown; 18] = [
    wide("response_time_mean_us", "mean", Kind::Time),
    narrow("response_time_p50_us", "p50", Kind::Time),
    wide("response_time_p90_us", "p90", Kind::Time),
    narrow("response_time_p99_us", "p99", Kind::Time),
    narrow("rate_completed", "requests/s", Kind::Plain("")),
    narrow("requests_per_s", "requests/s", Kind::Plain("")),
    narrow("cpu_cores", "CPU", Kind::Cores),
    narrow("proxy_cpu_cores", "CPU of proxies", Kind::Cores),
    // Cores per 1000 requests/s equal milliseconds per request.
    wide("proxies_cpu_cores_per_1000_rps", "proxy CPU per request", Kind::Plain("ms")),
    wide("proxies_memory_anonymous_bytes", "proxy memory", Kind::Size),
    wide("convergence_p50_us", "convergence p50", Kind::Time),
    wide("convergence_p90_us", "convergence p90", Kind::Time),
    narrow("convergence_p99_us", "convergence p99", Kind::Time),
    narrow("convergence_last_us", "convergence last", Kind::Time),
    narrow("first_configuration_last_us", "first configuration", Kind::Time),
    narrow("istiod_cpu_s", "istiod CPU", Kind::Plain("s")),
    narrow("istiod_memory_bytes", "istiod memory", Kind::Size),
    wide("bytes_per_proxy", "bytes per proxy", Kind::Size),
];

/// Figures that a table has, with the units of all its rows.
struct Units {
    present: Vec<Shown>,
    time: TimeUnit,
    size: SizeUnit,
}

impl Units {
    fn new(all: &[&DisturbedFigures]) -> Self {
        let is_present = |shown: &Shown| all.iter().any(|figures| figures.contains_key(shown.key));
        let present: Vec<Shown> = FIGURES.into_iter().filter(is_present).collect();
        let values = |is_of_kind: fn(Kind) -> bool| {
            let of_kind = present.iter().filter(|shown| is_of_kind(shown.kind));
            let figures = of_kind.flat_map(|shown| all.iter().filter_map(|figures| figures.get(shown.key)));
            figures.map(|figure| figure.value).collect::<Vec<f64>>()
        };
        let time = TimeUnit::for_times(values(|kind| matches!(kind, Kind::Time)));
        let size = SizeUnit::for_sizes(values(|kind| matches!(kind, Kind::Size)));
        Self { present, time, size }
    }

    fn columns(&self) -> impl Iterator<Item = Column> {
        self.present.iter().map(|Shown { title, kind, is_wide, .. }| {
            let unit = match kind {
                Kind::Time => self.time.symbol(),
                Kind::Size => self.size.symbol(),
                Kind::Cores => "cores",
                Kind::Plain(name) => name,
            };
            let heading = if unit.is_empty() { (*title).to_owned() } else { format!("{title}, {unit}") };
            let column = Column::number(&heading).terminal(&heading);
            if *is_wide { column.wide() } else { column }
        })
    }

    fn row(&self, figures: &DisturbedFigures) -> TableRow {
        let text = |shown: &Shown| {
            let figure = figures.get(shown.key);
            figure.map_or_else(|| format::ABSENT.to_owned(), |figure| self.text(figure, shown.kind)).into()
        };
        self.present.iter().map(text).collect()
    }

    /// `0.48 (0.45–0.61)`
    fn text(&self, figure: &DisturbedFigure, kind: Kind) -> String {
        let DisturbedFigure { value, least, greatest, n } = *figure;
        let is_range = least < greatest;
        let estimate = Estimate {
            low: Some(least).filter(|_| is_range),
            high: Some(greatest).filter(|_| is_range),
            n,
            ..Estimate::single(value)
        };
        let interval = match kind {
            Kind::Time => self.time.interval(&estimate),
            Kind::Size => Interval::scaled(&estimate, 1.0 / self.size.bytes()),
            Kind::Cores => format::cores_interval(&estimate),
            Kind::Plain(_) => Interval::new(&estimate),
        };
        interval.text()
    }

    /// The last figure, by which rows are ordered.
    fn rank(&self, figures: &DisturbedFigures) -> f64 {
        let last = self.present.iter().rev().find_map(|shown| figures.get(shown.key));
        last.map_or(0.0, |figure| figure.value)
    }
}

#[cfg(test)]
mod tests;
