//! Whether proxies have taken all that istiod sent them, from its own list of who is connected (`/debug/syncz`).
//!
//! istiod notes what it sent last of each kind of configuration, what the proxy has acknowledged of that, and why it refused
//! where it did. Objects that istiod knew before it sent are in what it sent: once all of it is acknowledged, whatever they
//! mean for the proxy is in force, though nobody knows what that is.

use super::ControlPlane;
use crate::istio::refusal::Refusal;
use experiment::environment::EnvironmentError;
use serde::Deserialize;
use std::collections::BTreeMap;

impl ControlPlane {
    /// What the first of these proxies has not taken of all that istiod sent it, with its name; nothing where all have taken
    /// everything. Proxies are named as istiod does, all in this namespace.
    pub(in crate::istio) fn first_outstanding<'a>(
        &self,
        namespace: &str,
        proxies: &[&'a str],
    ) -> Result<Option<(&'a str, Outstanding)>, EnvironmentError> {
        let connected: Vec<Connected> = self
            .istiod()
            .ask_long_json(&list_of(namespace))
            .map_err(|error| EnvironmentError::new("look at what istiod sent", error))?;
        Ok(proxies.iter().find_map(|proxy| Some((*proxy, outstanding(proxy, &connected)?))))
    }
}

/// Where istiod lists the proxies of a namespace.
fn list_of(namespace: &str) -> String {
    format!("/debug/syncz?namespace={namespace}")
}

/// A proxy as istiod has it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
struct Connected {
    /// Its name and namespace, with a point between them.
    proxy: String,
    /// By the URL of its type.
    #[serde(default)]
    resources: BTreeMap<String, Sent>,
}

/// What was sent of one kind of configuration: numbers that say nothing but which is which.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
struct Sent {
    sent: String,
    acked: String,
    last_error: String,
}

/// Why a proxy has not taken all.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outstanding {
    /// istiod knows of no such proxy.
    NotConnected,
    /// It has not said yet whether it takes what was sent last of this kind.
    Unanswered(String),
    /// It has refused it.
    Refused(Refusal),
}

/// What a proxy has not taken of all that it was sent; nothing where it has taken everything.
fn outstanding(proxy: &str, connected: &[Connected]) -> Option<Outstanding> {
    // One that connected anew may still be there as it was before.
    let connections: Vec<&Connected> = connected.iter().filter(|other| other.proxy == proxy).collect();
    if connections.is_empty() {
        return Some(Outstanding::NotConnected);
    }
    let all = || connections.iter().flat_map(|connection| &connection.resources);
    let refused = all().find(|(_, sent)| !sent.last_error.is_empty()).map(|(kind, sent)| {
        Outstanding::Refused(Refusal { kind: short(kind), reason: sent.last_error.clone() })
    });
    refused.or_else(|| {
        let unanswered = all().find(|(_, sent)| sent.sent != sent.acked);
        unanswered.map(|(kind, _)| Outstanding::Unanswered(short(kind)))
    })
}

/// `Cluster` of `type.googleapis.com/envoy.config.cluster.v3.Cluster`.
fn short(kind: &str) -> String {
    kind.rsplit('.').next().unwrap_or(kind).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

    fn connected(listener: &serde_json::Value) -> Vec<Connected> {
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
    fn all_is_taken_once_the_last_of_each_kind_is_acknowledged() {
        let all = connected(&json!({"sent": "b", "acked": "b"}));
        assert_eq!(outstanding("client.mesh-1", &all), None);
        assert_eq!(outstanding("idle.mesh-1", &all), None);
        assert_eq!(outstanding("server.mesh-1", &all), Some(Outstanding::NotConnected));
        let pending = connected(&json!({"sent": "b"}));
        let unanswered = Outstanding::Unanswered("Listener".to_owned());
        assert_eq!(outstanding("client.mesh-1", &pending), Some(unanswered));
    }

    #[test]
    fn what_is_refused_has_the_proxys_reason() {
        let all = connected(&json!({"sent": "b", "acked": "a", "lastError": "no such filter"}));
        let Some(Outstanding::Refused(refusal)) = outstanding("client.mesh-1", &all) else {
            panic!("it was refused: {all:?}");
        };
        assert_eq!(refusal.to_string(), "it refused its Listener: no such filter");
    }
}
