//! Time of an Envoy's last configuration updates, by its own clock: the `update_time` of its subscriptions.

use mesh::admin::{Admin, AdminError};
use mesh::names::UPDATE_TIME;
use results::exposition::samples;
use std::collections::BTreeMap;

const PATH: &str = "/stats/prometheus?filter=update_time$";

/// Time of the last update per type (`cds`, `eds`, `lds`, `rds`), in milliseconds since 1970; for `eds` and
/// `rds`, that of any resource.
pub fn read(statistics: &Admin) -> Result<BTreeMap<&'static str, u64>, AdminError> {
    Ok(last_updates(&String::from_utf8_lossy(&statistics.get_long(PATH)?)))
}

fn last_updates(page: &str) -> BTreeMap<&'static str, u64> {
    let mut updates = BTreeMap::new();
    for sample in samples(page).filter(|sample| sample.name.ends_with(UPDATE_TIME)) {
        let of = match sample.name {
            "envoy_cluster_manager_cds_update_time" => "cds",
            "envoy_listener_manager_lds_update_time" => "lds",
            "envoy_cluster_update_time" => "eds",
            name if name.contains("rds") => "rds",
            _ => continue,
        };
        let update = updates.entry(of).or_insert(0);
        *update = (*update).max(sample.value as u64);
    }
    updates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_update_per_type_is_read() {
        let page = "# TYPE envoy_cluster_manager_cds_update_time gauge\n\
                    envoy_cluster_manager_cds_update_time{} 1763836800123\n\
                    envoy_cluster_update_time{cluster_name=\"outbound|80||a\"} 1763836800100\n\
                    envoy_cluster_update_time{cluster_name=\"outbound|80||b\"} 1763836800200\n\
                    envoy_http_rds_update_time{rds_route_config=\"80\"} 1763836800050\n\
                    envoy_sds_update_time{} 1\n\
                    envoy_cluster_update_success{} 7\n";
        let expected = [("cds", 1_763_836_800_123), ("eds", 1_763_836_800_200), ("rds", 1_763_836_800_050)];
        assert_eq!(last_updates(page), expected.into());
    }
}
