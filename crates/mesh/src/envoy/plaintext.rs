//! Detects whether a proxy accepts plaintext where mutual TLS is used, from its active listener.
//! A proxy that accepts both has a filter chain for each; one that accepts only mutual TLS has none without TLS.

use crate::admin::{Admin, AdminError};
use serde::Deserialize;
use serde_json::Value;

/// Dump of an Envoy's active listeners.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Listeners(Value);

impl Listeners {
    pub fn read(envoy: &Admin) -> Result<Self, AdminError> {
        envoy.ask_long_json("/config_dump?resource=dynamic_listeners")
    }

    /// True if a listener accepts plaintext for this port of the application. Absent if no listener has a filter
    /// chain for it.
    pub fn accept_plaintext(&self, port: u16) -> Option<bool> {
        let listeners = self.0["configs"].as_array()?;
        let chains = listeners.iter().filter_map(|listener| {
            listener["active_state"]["listener"]["filter_chains"].as_array().map(Vec::as_slice)
        });
        let of_port =
            |chain: &&Value| chain["filter_chain_match"]["destination_port"].as_u64() == Some(port.into());
        let mut of_port = chains.flatten().filter(of_port).peekable();
        of_port.peek()?;
        Some(of_port.any(|chain| chain["transport_socket"].is_null()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listeners(chains: &Value) -> Listeners {
        Listeners(json!({"configs": [
            {"name": "0.0.0.0_8080", "active_state": {"listener": {"filter_chains": [{}]}}},
            {"name": "virtualInbound", "active_state": {"listener": {"filter_chains": chains}}},
        ]}))
    }

    #[test]
    fn chain_without_tls_accepts_plaintext() {
        let tls = json!({"filter_chain_match": {"destination_port": 8080, "transport_protocol": "tls"},
            "transport_socket": {"name": "envoy.transport_sockets.tls"}});
        let plain =
            json!({"filter_chain_match": {"destination_port": 8080, "transport_protocol": "raw_buffer"}});
        let elsewhere = json!({"filter_chain_match": {"destination_port": 15006}});
        assert_eq!(listeners(&json!([tls, elsewhere])).accept_plaintext(8080), Some(false));
        assert_eq!(listeners(&json!([tls, plain])).accept_plaintext(8080), Some(true));
        assert_eq!(listeners(&json!([plain])).accept_plaintext(8080), Some(true));
        assert_eq!(listeners(&json!([elsewhere])).accept_plaintext(8080), None);
        assert_eq!(Listeners(json!({})).accept_plaintext(8080), None);
    }
}
