//! Number of messages that a ztunnel has received from its control plane.

use crate::admin::{Admin, AdminError};
use crate::exposition::samples;
use std::collections::BTreeMap;

const PATH: &str = "/stats/prometheus";
const MESSAGES: &str = "istio_xds_message_total";

/// Message counts by type URL; empty if the program is not a ztunnel, or is not connected.
pub fn read(statistics: &Admin) -> Result<BTreeMap<String, u64>, AdminError> {
    Ok(by_url(&String::from_utf8_lossy(&statistics.get_long(PATH)?)))
}

fn by_url(page: &str) -> BTreeMap<String, u64> {
    let messages = samples(page).filter(|sample| sample.name == MESSAGES);
    messages.filter_map(|sample| Some((sample.label("url")?.into_owned(), sample.value as u64))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_type() {
        let page = "# TYPE istio_xds_message counter\n\
                    istio_xds_message_total{url=\"type.googleapis.com/istio.workload.Address\"} 12\n\
                    istio_xds_message_bytes_total{url=\"type.googleapis.com/istio.workload.Address\"} 4096\n";
        let expected = BTreeMap::from([("type.googleapis.com/istio.workload.Address".to_owned(), 12)]);
        assert_eq!(by_url(page), expected);
    }
}
