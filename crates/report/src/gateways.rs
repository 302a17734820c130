//! Gateways by their own counters, and the load as counted by generator, gateway and destination: the same
//! figures for the terminal and for HTML.

use crate::drivers::groups;
use crate::format::{self, Interval, SizeUnit};
use crate::tables::{Column, Group, MAX_UNFOLDED_ROWS, Table, TableCell, TableRow};
use results::{
    Cell, CellRates, ComponentSummary, Estimate, GatewayPercentiles, GatewaySummary, Metric, Summary,
};
use serde::Serialize;
use std::cmp::Ordering;

/// Maximum difference at which the observers agree, as a fraction.
const AGREES: f64 = 0.01;
const AGREE: &str = "agree";
const MILLISECOND_US: f64 = 1000.0;

/// Every cell that has a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayTable {
    /// Unit of memory.
    pub memory_unit: &'static str,
    /// True if some gateway has a CPU limit.
    pub has_limit: bool,
    /// True if the observers' rates differ in some cell.
    pub differ: bool,
    /// Rates by observer, one row per cell.
    pub rates: Table,
    /// The gateways, one group per cell. On a terminal, the first of a cell has the rates too.
    pub gateways: Table,
}

impl GatewayTable {
    /// `None` for a run without gateways.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let with_gateways = summary.cells.iter().filter(|cell| !cell.gateways.is_empty());
        let cells: Vec<&Cell> = with_gateways.filter(|cell| cell.rates.is_some()).collect();
        let gateways =
            || cells.iter().flat_map(|cell| cell.gateways.iter().map(move |gateway| (*cell, gateway)));
        let memory = gateways().filter_map(|(cell, gateway)| memory(component(cell, gateway)?));
        let unit = SizeUnit::for_sizes(memory.map(|memory| memory.estimate));
        let has_limit = gateways().any(|(_, gateway)| gateway.throttled.is_some());
        let rates =
            groups(summary, &cells, |cell, place| Group::new(String::new(), vec![rates(cell, place)]));
        let own = groups(summary, &cells, |cell, place| {
            let gateways = by_cpu(cell).into_iter().enumerate();
            let rows = gateways.map(|(index, gateway)| {
                let mut row = on_terminal(cell, gateway, &place, index == 0);
                row.extend(own(cell, gateway, unit, has_limit));
                row
            });
            Group::selected(place.clone(), String::new(), rows.collect(), Vec::new(), "with most CPU")
        });
        (!cells.is_empty()).then(|| Self {
            memory_unit: unit.symbol(),
            has_limit,
            differ: cells.iter().any(|cell| agreement(cell) != AGREE),
            rates: Table { columns: rate_columns(), groups: rates },
            gateways: Table { columns: own_columns(has_limit), groups: own },
        })
    }
}

fn rate_columns() -> Vec<Column> {
    let rates = ["Requests, all windows", "Generator", "Gateway", "Destination"].map(Column::number);
    std::iter::once(Column::name("Phase")).chain(rates).chain([Column::text("They")]).collect()
}

fn rates(cell: &Cell, place: String) -> TableRow {
    let requests = format::count(cell.gateways.iter().map(|gateway| gateway.requests).sum());
    [place.into(), requests.into()].into_iter().chain(observers(cell)).collect()
}

/// Requests per second by each observer, and whether they agree.
fn observers(cell: &Cell) -> [TableCell; 4] {
    let rate = |read: fn(&CellRates) -> Option<Estimate>| {
        TableCell::figure(cell.rates.as_ref().and_then(read), Interval::new)
    };
    [
        rate(|rates| Some(rates.generator)),
        rate(|rates| rates.gateway),
        rate(|rates| rates.destination),
        agreement(cell).into(),
    ]
}

fn own_columns(has_limit: bool) -> Vec<Column> {
    let on_terminal = ["", "generator", "gateway", "destination", "counts"];
    let mut columns: Vec<Column> = on_terminal.into_iter().map(Column::only_terminal).collect();
    columns.extend([Column::name("Gateway"), Column::number("CPU").terminal("cores")]);
    columns.extend(has_limit.then(|| Column::number("Throttled").terminal("throttled")));
    columns.extend([
        Column::number("Memory"),
        Column::number("Downstream"),
        Column::number("Upstream"),
        Column::only_terminal("downstream, ms").wide(),
        Column::only_terminal("upstream, ms").wide(),
        Column::number("In"),
        Column::number("Out"),
        Column::text("Responses"),
        Column::number("Configuration"),
    ]);
    columns
}

/// The first cells of a row: the rates are totals over all gateways of a cell, so only the first has them.
fn on_terminal(cell: &Cell, gateway: &GatewaySummary, place: &str, is_first: bool) -> TableRow {
    let name = match cell.gateways.len() {
        1 => place.to_owned(),
        _ => format!("{place}, {}", gateway.name),
    };
    let rates = match is_first {
        true => observers(cell),
        false => [""; 4].map(TableCell::from),
    };
    std::iter::once(name.into()).chain(rates).collect()
}

fn component<'a>(cell: &'a Cell, gateway: &GatewaySummary) -> Option<&'a ComponentSummary> {
    cell.components.iter().find(|usage| usage.name == gateway.name)
}

fn memory(usage: &ComponentSummary) -> Option<Estimate> {
    usage.estimate(Metric::MemoryBytes)
}

/// Gateways sorted by name; of many, those with the most CPU first.
fn by_cpu(cell: &Cell) -> Vec<&GatewaySummary> {
    let mut gateways: Vec<&GatewaySummary> = cell.gateways.iter().collect();
    if gateways.len() > MAX_UNFOLDED_ROWS {
        let cores = |gateway: &GatewaySummary| component(cell, gateway).map(|usage| usage.cpu_cores.estimate);
        gateways.sort_by(|one, other| cores(other).partial_cmp(&cores(one)).unwrap_or(Ordering::Equal));
    }
    gateways
}

/// Its own figures; durations in ms at p50, p90 and p99.
fn own(cell: &Cell, gateway: &GatewaySummary, unit: SizeUnit, has_limit: bool) -> TableRow {
    let usage = component(cell, gateway);
    let absent = || format::ABSENT.to_owned();
    let per_second = |bytes: Option<Estimate>| {
        bytes.map_or_else(absent, |bytes| format!("{}/s", format::size(bytes.estimate)))
    };
    let throttled = gateway.throttled.map(|share| format::percent(share.estimate));
    let [downstream, upstream] =
        [gateway.duration_downstream_us, gateway.duration_upstream_us].map(durations);
    let narrow = |durations: &[String; 3]| durations.join("/").replace("< ", "<");
    let classes = gateway.responses_per_s.iter();
    let responses: Vec<String> =
        classes.map(|(class, rate)| format!("{class} {}", format::rate(rate.estimate))).collect();
    let configuration = usage.and_then(|usage| usage.estimate(Metric::ConfigurationSizeBytes));
    let mut row: TableRow = vec![
        gateway.name.as_str().into(),
        TableCell::figure(usage.map(|usage| usage.cpu_cores), format::cores_interval),
    ];
    row.extend(has_limit.then(|| throttled.unwrap_or_else(|| "no limit".to_owned()).into()));
    row.extend([
        TableCell::figure(usage.and_then(memory), |bytes| Interval::scaled(bytes, 1.0 / unit.bytes())),
        downstream.join(" · ").into(),
        upstream.join(" · ").into(),
        narrow(&downstream).into(),
        narrow(&upstream).into(),
        per_second(gateway.bytes_received_s).into(),
        per_second(gateway.bytes_sent_s).into(),
        if responses.is_empty() { absent() } else { responses.join(", ") }.into(),
        configuration.map_or_else(absent, |size| format::size(size.estimate)).into(),
    ]);
    row
}

/// Text such as `agree`, or `differ by 10 %`.
fn agreement(cell: &Cell) -> String {
    cell.rates.as_ref().map_or_else(String::new, agreement_of)
}

fn agreement_of(rates: &CellRates) -> String {
    let known = [Some(rates.generator), rates.gateway, rates.destination].into_iter().flatten();
    let known: Vec<f64> = known.map(|rate| rate.estimate).collect();
    let (least, greatest) = known
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, greatest), rate| (least.min(*rate), greatest.max(*rate)));
    let apart = if greatest > 0.0 { 1.0 - least / greatest } else { 0.0 };
    if apart <= AGREES { AGREE.to_owned() } else { format!("differ by {}", format::percent(apart)) }
}

fn durations(percentiles: Option<GatewayPercentiles>) -> [String; 3] {
    let Some(GatewayPercentiles { p50, p90, p99, .. }) = percentiles else {
        return [format::ABSENT; 3].map(str::to_owned);
    };
    [p50, p90, p99].map(|duration| milliseconds(duration.estimate))
}

/// Envoy measures whole milliseconds, so a shorter time is only known to be less than one.
fn milliseconds(duration_us: f64) -> String {
    if duration_us < MILLISECOND_US {
        "< 1".to_owned()
    } else {
        let decimals = usize::from(duration_us < 100.0 * MILLISECOND_US);
        format!("{:.decimals$}", duration_us / MILLISECOND_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_limited_to_envoy_resolution() {
        assert_eq!([515.0, 1000.0, 2499.0, 123_456.0].map(milliseconds), ["< 1", "1.0", "2.5", "123"]);
    }

    #[test]
    fn observers_agree_within_one_percent() {
        let rates = |generator, gateway, destination| {
            let rate = |rate: f64| Estimate::single(rate);
            agreement_of(&CellRates {
                generator: rate(generator),
                gateway: Some(rate(gateway)),
                destination: Some(rate(destination)),
            })
        };
        assert_eq!(rates(1000.0, 1002.0, 998.0), "agree");
        assert_eq!(rates(1000.0, 1000.0, 900.0), "differ by 10\u{a0}%");
    }
}
