//! xDS acks of proxies, from istiod's list of connections.
//! For each resource type, istiod records what it last sent, what the proxy acknowledged of that, and the
//! error of a NACK. Objects that istiod had processed before it sent are contained in what it sent; once
//! acknowledged, they have taken effect at the proxy.

use super::nack::Nack;
use crate::Result;
use crate::admin::Admin;
use crate::wait::{Progress, wait_with_progress, with_last_state};
use experiment::environment::ErrorContext;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

/// Path of istiod's list: one response covers all proxies of a mesh.
const PATH: &str = "/debug/syncz";
/// A proxy acknowledges within milliseconds, or within seconds in a large mesh.
const ACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until all proxies have acknowledged everything that istiod sent them. Each is given by its
/// component's name and its name at istiod (`name.namespace`). Returns an error at once if one rejects an update.
pub fn wait_until_acknowledged(
    istiod: &Admin,
    proxies: &[(&str, &str)],
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    let mut last = String::new();
    let what = "the proxies have taken what istiod sent them";
    let waited = wait_with_progress(what, ACKNOWLEDGED_TIMEOUT, || {
        check()?;
        let status: XdsStatus = istiod.ask_long_json(PATH).context("look at what istiod sent")?;
        let mut count = 0;
        for (component, proxy) in proxies {
            match status.pending_ack(proxy) {
                None => continue,
                Some(PendingAck::Rejected(refusal)) => return Err(refusal.for_proxy(component)),
                Some(pending) if count == 0 => last = format!("{component} {pending}"),
                Some(_) => {}
            }
            count += 1;
        }
        Ok(if count == 0 { Progress::Done(()) } else { Progress::At(count) })
    });
    waited.map_err(|error| with_last_state(error, &last))
}

/// Connections by proxy (`name.namespace`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<Connection>")]
struct XdsStatus(HashMap<String, Vec<Resources>>);

/// Ack state by type URL.
type Resources = BTreeMap<String, Sent>;

#[derive(Deserialize)]
struct Connection {
    proxy: String,
    #[serde(default)]
    resources: Resources,
}

/// Nonces of the last response of a resource type and of the last ack.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sent {
    sent: String,
    acked: String,
    last_error: String,
}

impl From<Vec<Connection>> for XdsStatus {
    fn from(connections: Vec<Connection>) -> Self {
        let mut proxies: HashMap<String, Vec<Resources>> = HashMap::new();
        for Connection { proxy, resources } in connections {
            // A proxy that reconnected may still be listed with its earlier connection.
            proxies.entry(proxy).or_default().push(resources);
        }
        Self(proxies)
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum PendingAck {
    NotConnected,
    /// The proxy has not yet responded to the last resources of this type, such as `Cluster`.
    Unacknowledged(String),
    Rejected(Nack),
}

impl fmt::Display for PendingAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("is not connected to istiod"),
            Self::Unacknowledged(resource_type) => write!(f, "has not acknowledged its {resource_type}"),
            Self::Rejected(refusal) => refusal.fmt(f),
        }
    }
}

impl XdsStatus {
    /// The pending ack of `proxy` (`name.namespace`); absent once it has acknowledged everything.
    fn pending_ack(&self, proxy: &str) -> Option<PendingAck> {
        let Some(connections) = self.0.get(proxy) else { return Some(PendingAck::NotConnected) };
        let all = || connections.iter().flatten();
        let rejected = all().find(|(_, sent)| !sent.last_error.is_empty()).map(|(type_url, sent)| {
            PendingAck::Rejected(Nack { kind: short(type_url), reason: sent.last_error.clone() })
        });
        rejected.or_else(|| {
            let unacknowledged = all().find(|(_, sent)| sent.sent != sent.acked);
            unacknowledged.map(|(type_url, _)| PendingAck::Unacknowledged(short(type_url)))
        })
    }
}

/// Extracts `Cluster` from `type.googleapis.com/envoy.config.cluster.v3.Cluster`.
fn short(type_url: &str) -> String {
    type_url.rsplit('.').next().unwrap_or(type_url).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

    fn status(listener: &serde_json::Value) -> XdsStatus {
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
        assert_eq!(all.pending_ack("client.mesh-1"), None);
        assert_eq!(all.pending_ack("idle.mesh-1"), None);
        assert_eq!(all.pending_ack("server.mesh-1"), Some(PendingAck::NotConnected));
        let pending = status(&json!({"sent": "b"}));
        let unacknowledged = PendingAck::Unacknowledged("Listener".to_owned());
        assert_eq!(pending.pending_ack("client.mesh-1"), Some(unacknowledged));
    }

    #[test]
    fn pending_ack_of_nack_has_reason_from_proxy() {
        let all = status(&json!({"sent": "b", "acked": "a", "lastError": "no such filter"}));
        let pending = all.pending_ack("client.mesh-1").expect("it was rejected");
        assert_eq!(pending.to_string(), "it refused its Listener: no such filter");
    }
}
