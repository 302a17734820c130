//! Gateways on a terminal: one line per cell with the rates of the three observers, and the gateway's own
//! figures.

use super::drivers::drawn_table;
use super::style::{Options, WIDE, bold, plain};
use crate::gateways::GatewayTable;

/// The section, starting with its heading.
pub(super) fn lines(table: &GatewayTable, options: Options) -> Vec<String> {
    let is_wide = options.width >= WIDE;
    let durations = if is_wide { "; durations at p50/p90/p99" } else { "" };
    let mut lines = vec![bold(&format!("Gateways: requests per second by observer{durations}"), options)];
    let mut header = vec!["", "generator", "gateway", "destination", "they", "cores"];
    if table.has_limit {
        header.push("throttled");
    }
    if is_wide {
        header.extend(["downstream, ms", "upstream, ms"]);
    }
    let header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    let rows = table.cells.iter().flat_map(|cell| {
        cell.gateways.iter().enumerate().map(move |(index, gateway)| {
            // Rates are totals over all gateways of a cell.
            let first = |text: &str| if index == 0 { plain(text) } else { String::new() };
            let name = match cell.gateways.len() {
                1 => format!("{} at {}", cell.mode, cell.load),
                _ => format!("{} at {}, {}", cell.mode, cell.load, gateway.name),
            };
            let mut row = vec![
                plain(&name),
                first(&cell.generator.estimate),
                first(&cell.gateway.estimate),
                first(&cell.destination.estimate),
                first(&cell.agreement),
                gateway.cpu.estimate.clone(),
            ];
            if table.has_limit {
                row.push(plain(&gateway.throttled));
            }
            if is_wide {
                row.extend(
                    [&gateway.downstream, &gateway.upstream]
                        .map(|durations| durations.join("/").replace("< ", "<")),
                );
            }
            row
        })
    });
    lines.extend(drawn_table(&header, rows, options));
    let folded = table.cells.iter().find_map(|cell| Some((cell.selection.as_deref()?, cell.all.len())));
    lines.extend(folded.map(|(selection, all)| format!("{selection} of {all}; report.html has all.")));
    lines.push(String::new());
    lines
}
