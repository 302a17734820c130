//! Gateways by their own counters, and the load as counted by generator, gateway and destination: the same
//! figures for the terminal and for HTML.

use crate::conditions::ConditionLabels;
use crate::drivers::{MAX_UNFOLDED_ROWS, Rows, interval};
use crate::format::{self, Interval, SizeUnit};
use results::{
    Cell, CellRates, ComponentSummary, Estimate, GatewayPercentiles, GatewaySummary, Mode, Summary,
};
use serde::Serialize;
use std::cmp::Ordering;

/// Maximum difference at which the observers agree, as a fraction.
const AGREES: f64 = 0.01;
const MILLISECOND_US: f64 = 1000.0;

/// Every cell that has a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayTable {
    /// Unit of memory.
    pub memory_unit: &'static str,
    /// True if some gateway has a CPU limit.
    pub has_limit: bool,
    /// Cells by condition and mode.
    pub cells: Vec<GatewayCell>,
}

/// A cell with its gateways.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayCell {
    /// Load such as `50 clients, gateway.cpu 200m`.
    pub load: String,
    /// Mode of the cell.
    pub mode: Mode,
    /// Number of requests in all windows together.
    pub requests: String,
    /// Responses per second that the generators received.
    pub generator: Interval,
    /// Requests per second that the gateways received.
    pub gateway: Interval,
    /// Requests per second that the destinations received.
    pub destination: Interval,
    /// Whether the observers agree, or by how much they differ.
    pub agreement: String,
    /// Which gateways are shown, if not all: such as `The 5 with most CPU`.
    pub selection: Option<String>,
    /// All gateways, or the first of many.
    pub gateways: Vec<GatewayRow>,
    /// Every gateway, if `gateways` does not have them all.
    pub all: Vec<GatewayRow>,
}

/// A gateway of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayRow {
    /// Name of the proxy.
    pub name: String,
    /// CPU in cores.
    pub cpu: Interval,
    /// Fraction of the CFS periods in which its CPU limit throttled it.
    pub throttled: String,
    /// Memory, in the table's unit.
    pub memory: Interval,
    /// Downstream request durations in ms: p50, p90 and p99.
    pub downstream: [String; 3],
    /// Upstream request durations in ms: p50, p90 and p99.
    pub upstream: [String; 3],
    /// Bytes per second received from clients.
    pub received: String,
    /// Bytes per second sent to clients.
    pub sent: String,
    /// Responses per second by status class.
    pub responses: String,
    /// Size of its configuration.
    pub configuration: String,
}

impl GatewayTable {
    /// `None` for a run without gateways.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let with_gateways = || summary.cells.iter().filter(|cell| !cell.gateways.is_empty());
        let components = with_gateways()
            .flat_map(|cell| cell.gateways.iter().filter_map(|gateway| component(cell, gateway)));
        let unit = SizeUnit::for_sizes(components.filter_map(|usage| Some(usage.memory_bytes?.estimate)));
        let cells: Vec<GatewayCell> = with_gateways()
            .filter_map(|cell| Some(row(cell, cell.rates.as_ref()?, labels.label(cell.conditions()), unit)))
            .collect();
        let has_limit =
            with_gateways().flat_map(|cell| &cell.gateways).any(|gateway| gateway.throttled.is_some());
        (!cells.is_empty()).then(|| Self { memory_unit: unit.symbol(), has_limit, cells })
    }
}

fn component<'a>(cell: &'a Cell, gateway: &GatewaySummary) -> Option<&'a ComponentSummary> {
    cell.components.iter().find(|usage| usage.name == gateway.name)
}

fn row(cell: &Cell, rates: &CellRates, load: String, unit: SizeUnit) -> GatewayCell {
    let per_second = |estimate: Option<Estimate>| interval(estimate, Interval::new);
    let Rows { selection, rows: gateways, all, .. } = gateway_rows(cell, unit);
    GatewayCell {
        load,
        mode: cell.mode,
        requests: format::count(cell.gateways.iter().map(|gateway| gateway.requests).sum()),
        generator: per_second(Some(rates.generator)),
        gateway: per_second(rates.gateway),
        destination: per_second(rates.destination),
        agreement: agreement(rates),
        selection,
        gateways,
        all,
    }
}

/// Gateways sorted by name; of many, those with the most CPU first.
fn gateway_rows(cell: &Cell, unit: SizeUnit) -> Rows<GatewayRow> {
    let mut gateways: Vec<&GatewaySummary> = cell.gateways.iter().collect();
    if gateways.len() > MAX_UNFOLDED_ROWS {
        let cores = |gateway: &GatewaySummary| component(cell, gateway).map(|usage| usage.cpu_cores.estimate);
        gateways.sort_by(|one, other| cores(other).partial_cmp(&cores(one)).unwrap_or(Ordering::Equal));
    }
    let rows = gateways.into_iter().map(|gateway| gateway_row(cell, gateway, unit)).collect();
    Rows::new(String::new(), rows, Vec::new(), "with most CPU")
}

/// Text such as `agree`, or `differ by 10 %`.
fn agreement(rates: &CellRates) -> String {
    let known = [Some(rates.generator), rates.gateway, rates.destination].into_iter().flatten();
    let known: Vec<f64> = known.map(|rate| rate.estimate).collect();
    let (least, greatest) = known
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, greatest), rate| (least.min(*rate), greatest.max(*rate)));
    let apart = if greatest > 0.0 { 1.0 - least / greatest } else { 0.0 };
    if apart <= AGREES { "agree".to_owned() } else { format!("differ by {}", format::percent(apart)) }
}

fn gateway_row(cell: &Cell, gateway: &GatewaySummary, unit: SizeUnit) -> GatewayRow {
    let usage = component(cell, gateway);
    let rate_of = |estimate: Option<Estimate>| {
        estimate
            .map_or_else(|| format::ABSENT.to_owned(), |bytes| format!("{}/s", format::size(bytes.estimate)))
    };
    let classes = gateway.responses_per_s.iter();
    let responses: Vec<String> =
        classes.map(|(class, rate)| format!("{class} {}", format::rate(rate.estimate))).collect();
    let configuration = usage.and_then(|usage| usage.configuration.as_ref());
    GatewayRow {
        name: gateway.name.clone(),
        cpu: interval(usage.map(|usage| usage.cpu_cores), format::cores_interval),
        throttled: gateway
            .throttled
            .map_or_else(|| "no limit".to_owned(), |share| format::percent(share.estimate)),
        memory: interval(usage.and_then(|usage| usage.memory_bytes), |bytes| {
            Interval::scaled(bytes, 1.0 / unit.bytes())
        }),
        downstream: durations(gateway.duration_downstream_us),
        upstream: durations(gateway.duration_upstream_us),
        received: rate_of(gateway.bytes_received_s),
        sent: rate_of(gateway.bytes_sent_s),
        responses: if responses.is_empty() { format::ABSENT.to_owned() } else { responses.join(", ") },
        configuration: configuration
            .map_or_else(|| format::ABSENT.to_owned(), |read| format::size(read.size_bytes.estimate)),
    }
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
            agreement(&CellRates {
                generator: rate(generator),
                gateway: Some(rate(gateway)),
                destination: Some(rate(destination)),
            })
        };
        assert_eq!(rates(1000.0, 1002.0, 998.0), "agree");
        assert_eq!(rates(1000.0, 1000.0, 900.0), "differ by 10\u{a0}%");
    }
}
