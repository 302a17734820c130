//! Calls between services: requests, response times as seen by the callers, errors, proof of the path.

use crate::drivers::{groups, over_copies_estimate, qualified};
use crate::format::{self, Interval, TimeUnit};
use crate::services::with_copies;
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{Cell, CensoredPercentiles, EdgeSummary, Estimate, Figure, Percentiles, Summary};
use serde::Serialize;
use statistics::copies::{Spread, grouped, local_name};

/// Maximum number of edges named in a headline.
const MAX_NAMED: usize = 3;

/// Requests and times of each edge.
#[derive(Clone, Debug, Serialize)]
pub struct EdgeTable {
    /// Unit of every time in the table.
    pub unit: &'static str,
    /// One group per cell with edges of which something was measured, or that failed.
    pub table: Table,
}

/// Edges between the same services, ignoring the namespace.
pub(crate) struct EdgeGroup<'a> {
    pub(crate) edges: Vec<&'a EdgeSummary>,
}

impl EdgeTable {
    /// The table of a run; `None` if services call no others, or nothing is known of their calls.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let says_something = |edge: &EdgeSummary| {
            let is_measured = edge.requests_per_s.is_some() || edge.response_time_us.is_some();
            is_measured || edge.errors > 0.0 || !edge.proven
        };
        let has_figures = |cell: &&Cell| cell.edges.iter().any(says_something);
        let cells: Vec<&Cell> = summary.cells.iter().filter(has_figures).collect();
        let unit = unit(&cells);
        let columns = vec![
            Column::only_terminal("call"),
            Column::name("From"),
            Column::name("To"),
            Column::number("Copies").of_copies(),
            Column::number("Requests/s").terminal("requests/s"),
            Column::number("p50").terminal(&format!("p50, {}", unit.symbol())),
            Column::number("p99").terminal(&format!("p99, {}", unit.symbol())),
            Column::number("Errors").terminal("errors"),
            Column::text("Proven").terminal("proven"),
        ];
        let group = |cell: &Cell, place: String| {
            let all = all(cell).iter().map(|group| group.row(unit)).collect();
            let copies = edge_groups(cell).iter().map(|group| group.row(unit)).collect();
            Group::selected(place, headline(cell, unit), all, copies, "slowest")
        };
        let table = Table { columns, groups: groups(summary, &cells, group) };
        (!cells.is_empty()).then(|| Self { unit: unit.symbol(), table })
    }
}

/// A unit that suits these cells' times.
pub(crate) fn unit(cells: &[&Cell]) -> TimeUnit {
    let edges = cells.iter().flat_map(|cell| &cell.edges);
    TimeUnit::for_times(edges.filter_map(|edge| Some(edge.response_time_us?.p99?.estimate)))
}

/// Every edge separately, the slowest first.
fn all(cell: &Cell) -> Vec<EdgeGroup<'_>> {
    slowest_first(cell.edges.iter().map(|edge| EdgeGroup { edges: vec![edge] }).collect())
}

/// Edges with copies folded together, the slowest first.
pub(crate) fn edge_groups(cell: &Cell) -> Vec<EdgeGroup<'_>> {
    let ends = |edge: &EdgeSummary| (local_name(&edge.from).to_owned(), local_name(&edge.to).to_owned());
    let groups = grouped(&cell.edges, ends);
    slowest_first(groups.into_iter().map(|(_, edges)| EdgeGroup { edges }).collect())
}

fn slowest_first(mut groups: Vec<EdgeGroup<'_>>) -> Vec<EdgeGroup<'_>> {
    let time = |group: &EdgeGroup<'_>| match group.unanswered(Figure::P99) {
        Some(_) => f64::INFINITY,
        None => group.spread(|times| times.p99).map_or(0.0, |spread| spread.median),
    };
    groups.sort_by(|one, other| time(other).total_cmp(&time(one)));
    groups
}

impl EdgeGroup<'_> {
    /// Spread of a percentile over the copies.
    pub(crate) fn spread(&self, read: fn(Percentiles) -> Option<Estimate>) -> Option<Spread> {
        Spread::new(self.edges.iter().filter_map(|edge| Some(read(edge.response_time_us?)?.estimate)))
    }

    /// Caller and callee, without namespaces if there are several copies.
    pub(crate) fn ends(&self) -> (&str, &str) {
        match self.edges.as_slice() {
            [only] => (&only.from, &only.to),
            copies => copies.first().map_or(("", ""), |edge| (local_name(&edge.from), local_name(&edge.to))),
        }
    }

    /// The interval of a single edge; for copies, the median with their range. A time that falls among
    /// requests without a response is shown as such.
    pub(crate) fn time(&self, figure: Figure, unit: TimeUnit) -> Interval {
        if let Some(censored) = self.unanswered(figure) {
            return Interval { estimate: format::above(censored.above_us), range: None };
        }
        self.figure(|edge| edge.response_time_us?.figure(figure), |estimate| unit.interval(estimate))
    }

    /// Set if the figure falls among requests without a response; for copies, in at least half of them.
    fn unanswered(&self, figure: Figure) -> Option<CensoredPercentiles> {
        let mut censored = self.edges.iter().filter_map(|edge| edge.response_time_us?.censored(figure));
        let first = censored.next()?;
        ((1 + censored.count()) * 2 >= self.edges.len()).then_some(first)
    }

    fn figure(
        &self,
        read: impl Fn(&EdgeSummary) -> Option<Estimate>,
        text: impl Fn(&Estimate) -> Interval,
    ) -> Interval {
        let estimate = over_copies_estimate(self.edges.iter().map(|edge| read(edge)));
        estimate.as_ref().map_or_else(Interval::absent, text)
    }

    fn row(&self, unit: TimeUnit) -> TableRow {
        let (from, to) = self.ends();
        let (copies, proven) = (self.edges.len(), self.edges.iter().filter(|edge| edge.proven).count());
        let of_copies = || self.edges.iter().map(|edge| edge.errors);
        let (most, total) = (of_copies().fold(0.0, f64::max), of_copies().sum::<f64>());
        // Copies have nearly equal shares of the requests: with many of them, the mean is more meaningful than the
        // maximum.
        let errors = match copies > 1 && most > 0.0 {
            true => format!("{}, at most {}", format::percent(total / copies as f64), format::percent(most)),
            false => format::percent(most),
        };
        let is_proven = match (copies, proven) {
            (1, 1) => "yes".to_owned(),
            (1, _) => "no".to_owned(),
            _ => format!("{proven} of {copies}"),
        };
        vec![
            with_copies(format!("{from} → {to}"), copies).into(),
            from.into(),
            to.into(),
            copies.into(),
            self.figure(|edge| edge.requests_per_s, Interval::new).into(),
            self.time(Figure::P50, unit).into(),
            self.time(Figure::P99, unit).into(),
            errors.into(),
            TableCell::from(is_proven).flagged(proven < copies),
        ]
    }
}

/// `20 edges: 2000 requests/s in all, slowest tenant-3/b1 → tenant-3/c (p99 2.31 ms)`.
fn headline(cell: &Cell, unit: TimeUnit) -> String {
    let mut text = format::counted(cell.edges.len() as u64, "edge", "edges");
    let rates = cell.edges.iter().filter_map(|edge| Some(edge.requests_per_s?.estimate));
    if let Some(rate) = rates.reduce(|sum, next| sum + next) {
        text += &format!(": {} requests/s in all", format::digits(rate));
    }
    let slowest = all(cell).into_iter().next();
    if let Some((slowest, p99)) =
        slowest.and_then(|slowest| Some((slowest.edges[0], slowest.spread(|times| times.p99)?)))
    {
        text += &format!(", slowest {} (p99 {})", arrow(slowest), unit.time(p99.median));
    }
    let with = |what: &str, edges: Vec<&EdgeSummary>| match edges.len() {
        0 => String::new(),
        count => {
            let more =
                if count > MAX_NAMED { format!(" and {} more", count - MAX_NAMED) } else { String::new() };
            let named: Vec<String> = edges.iter().take(MAX_NAMED).map(|edge| arrow(edge)).collect();
            format!("; {what} {}{more}", named.join(", "))
        }
    };
    text += &with("errors on", cell.edges.iter().filter(|edge| edge.errors > 0.0).collect());
    text += &with("not proven:", cell.edges.iter().filter(|edge| !edge.proven).collect());
    let mut slower = cell.edges.iter().filter_map(|edge| slower_than_caller(cell, edge, unit));
    if let Some(first) = slower.next() {
        text += &format!("; {first}");
    }
    match slower.count() {
        0 => text,
        others => text + &format!("; {others} more take longer than the requests of their callers"),
    }
}

/// Percentiles in the table, the highest first.
const SHOWN: [Figure; 2] = [Figure::P99, Figure::P50];

/// Explains a percentile of a call above that of its caller's requests, which no call exceeds that they all wait for:
/// `web → cart takes longer (p99 29 ms) than the requests of web (3.1 ms): only 5 % of them make this call`.
fn slower_than_caller(cell: &Cell, edge: &EdgeSummary, unit: TimeUnit) -> Option<String> {
    let exceeded = |figure: &Figure| Some((*figure, caller_exceeded_us(cell, edge, *figure)?));
    let (figure, [part, whole]) = SHOWN.iter().find_map(exceeded)?;
    let makers = calls_per_request(cell, edge).filter(|calls| *calls < 0.995);
    let why = match makers {
        Some(calls) => format!("only {} of them make this call", format::percent(calls)),
        None => "not all of them wait for it".to_owned(),
    };
    Some(format!(
        "{} takes longer ({} {}) than the requests of {} ({}): {why}",
        arrow(edge),
        figure.name(),
        unit.time(part),
        edge.from,
        unit.time(whole)
    ))
}

/// A percentile of a call and the lower one of all requests to its caller, microseconds; absent if it is not lower, or unknown.
pub(crate) fn caller_exceeded_us(cell: &Cell, edge: &EdgeSummary, figure: Figure) -> Option<[f64; 2]> {
    let calls = cell.edges.iter().filter(|call| call.to == edge.from).map(|call| call.response_time_us);
    let drivers = cell.drivers.iter().filter(|driver| driver.target == edge.from);
    let all = calls.chain(drivers.map(|driver| driver.response_time_us));
    let times = all.map(|times| Some(times?.figure(figure)?.estimate)).collect::<Option<Vec<f64>>>()?;
    let whole = times.into_iter().reduce(f64::max)?;
    let part = edge.response_time_us?.figure(figure)?.estimate;
    (part > whole).then_some([part, whole])
}

/// Calls over an edge for each request to its caller.
fn calls_per_request(cell: &Cell, edge: &EdgeSummary) -> Option<f64> {
    let mut services = cell.services.iter();
    let caller = services.find(|service| qualified(&service.namespace, &service.name) == edge.from)?;
    Some(edge.requests_per_s?.estimate / caller.requests_per_s?.estimate)
}

pub(crate) fn arrow(edge: &EdgeSummary) -> String {
    format!("{} → {}", edge.from, edge.to)
}
