//! xDS acks of proxies, from istiod's list of connections.
//! For each resource type, istiod records what it last sent and what the proxy acknowledged of that. Objects
//! that istiod had processed before it sent are contained in what it sent; once acknowledged, they have taken
//! effect at the proxy.

use crate::Result;
use crate::admin::Admin;
use crate::wait::{Progress, wait_with_progress, with_last_state};
use experiment::environment::ErrorContext;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Path of istiod's list: one response covers all proxies of a mesh.
const PATH: &str = "/debug/syncz";
/// A proxy acknowledges within milliseconds, or within seconds in a large mesh.
const ACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until all proxies have acknowledged everything that istiod sent them. Each is given by its
/// component's name and its name at istiod (`name.namespace`). Returns an error as soon as `check` does, which
/// reports rejected updates: proxies do not acknowledge them.
pub fn wait_until_acknowledged(
    istiod: &Admin,
    proxies: &[(&str, &str)],
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    let mut last = None;
    let what = "the proxies have acknowledged what istiod sent";
    let waited = wait_with_progress(what, ACKNOWLEDGED_TIMEOUT, || {
        check()?;
        let status: Vec<Connection> = istiod.ask_long_json(PATH).context("query the xDS status of istiod")?;
        let pending =
            |(component, proxy): &(&str, &str)| Some(format!("{component} {}", pending_ack(&status, proxy)?));
        let pending: Vec<String> = proxies.iter().filter_map(pending).collect();
        last = pending.first().cloned();
        Ok(if pending.is_empty() { Progress::Done(()) } else { Progress::At(pending.len()) })
    });
    waited.map_err(|error| with_last_state(error, &last.unwrap_or_default()))
}

#[derive(Deserialize)]
pub(crate) struct Connection {
    /// `name.namespace`.
    proxy: String,
    /// Ack state by type URL.
    #[serde(default)]
    resources: BTreeMap<String, Sent>,
}

/// Nonces of the last response of a resource type and of the last ack.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Sent {
    sent: String,
    acked: String,
}

/// Description of the pending ack of `proxy`; absent once it has acknowledged everything. A proxy that
/// reconnected may still be listed with its earlier connection.
pub(crate) fn pending_ack(connections: &[Connection], proxy: &str) -> Option<String> {
    let mut own = connections.iter().filter(|connection| connection.proxy == proxy).peekable();
    if own.peek().is_none() {
        return Some("is not connected to istiod".to_owned());
    }
    let mut resources = own.flat_map(|connection| &connection.resources);
    let (type_url, _) = resources.find(|(_, sent)| sent.sent != sent.acked)?;
    // `Cluster` of `type.googleapis.com/envoy.config.cluster.v3.Cluster`.
    let resource_type = type_url.rsplit('.').next().unwrap_or(type_url);
    Some(format!("has not acknowledged its {resource_type}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

    fn status(listener: &serde_json::Value) -> Vec<Connection> {
        let resources = json!({
            CLUSTER: {"sent": "a", "acked": "a", "sentTime": "2026-11-20T22:00:00Z"},
            LISTENER: listener,
            "type.googleapis.com/istio.networking.nds.v1.NameTable": {"sentTime": "0001-01-01T00:00:00Z"},
        });
        serde_json::from_value(json!([
            {"proxy": "client.mesh-1", "proxy_type": "sidecar", "resources": resources},
            {"proxy": "idle.mesh-1", "cluster_sent": "x"},
        ]))
        .unwrap()
    }

    #[test]
    fn pending_ack_is_absent_once_last_response_of_each_type_is_acked() {
        let all = status(&json!({"sent": "b", "acked": "b"}));
        assert_eq!(pending_ack(&all, "client.mesh-1"), None);
        assert_eq!(pending_ack(&all, "idle.mesh-1"), None);
        assert_eq!(pending_ack(&all, "server.mesh-1").as_deref(), Some("is not connected to istiod"));
        for listener in
            [json!({"sent": "b"}), json!({"sent": "b", "acked": "a", "lastError": "no such filter"})]
        {
            let pending = pending_ack(&status(&listener), "client.mesh-1");
            assert_eq!(pending.as_deref(), Some("has not acknowledged its Listener"));
        }
    }
}
