//! Real sidecars beside the fleet.

use super::super::style::Options;
use super::super::tables::drawn_table;
use super::wrapped;
use crate::witnesses::rows;
use results::FleetResult;

const HEADER: [&str; 6] =
    ["Real sidecars", "compared", "later than the mean, ms", "had it before", "nearest, ms", "outside, ms"];
const METHOD: &str = "Own time of update of real sidecars, which Envoy sets once it has applied a change, against its arrivals at the \
                      simulated proxies: later than their mean, the share that had it before, and the greatest distances from the \
                      nearest arrival and from all.";

pub(super) fn lines(result: &FleetResult, options: Options) -> Vec<String> {
    let rows = rows(result.witnesses.iter());
    if rows.is_empty() {
        return Vec::new();
    }
    let rows = rows
        .into_iter()
        .map(|row| vec![row.kind, row.compared, row.later.text(), row.rank, row.nearest, row.outside]);
    let mut lines = drawn_table(&HEADER.map(ToOwned::to_owned), rows, options);
    lines.extend(wrapped(METHOD, options));
    lines
}
