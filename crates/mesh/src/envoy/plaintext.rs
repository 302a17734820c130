//! Detects whether a proxy accepts plaintext where mutual TLS is used, from its active listener.
//! A proxy that accepts both has a filter chain for each; one that accepts only mutual TLS has none without TLS.

use crate::admin::{Admin, AdminError};
use serde_json::Value;

/// True if a listener of this Envoy accepts plaintext for this port of the application. Absent if no listener has
/// a filter chain for it.
pub fn read(envoy: &Admin, port: u16) -> Result<Option<bool>, AdminError> {
    let listeners = envoy.ask_long_json("/config_dump?resource=dynamic_listeners")?;
    Ok(accepts_plaintext(&listeners, port))
}

fn accepts_plaintext(dump: &Value, port: u16) -> Option<bool> {
    let listeners = dump["configs"].as_array()?;
    let chains = listeners.iter().filter_map(|listener| {
        listener["active_state"]["listener"]["filter_chains"].as_array().map(Vec::as_slice)
    });
    let of_port =
        |chain: &&Value| chain["filter_chain_match"]["destination_port"].as_u64() == Some(port.into());
    let mut of_port = chains.flatten().filter(of_port).peekable();
    of_port.peek()?;
    Some(of_port.any(|chain| chain["transport_socket"].is_null()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dump(chains: &Value) -> Value {
        json!({"configs": [
            {"name": "0.0.0.0_8080", "active_state": {"listener": {"filter_chains": [{}]}}},
            {"name": "virtualInbound", "active_state": {"listener": {"filter_chains": chains}}},
        ]})
    }

    #[test]
    fn chain_without_tls_accepts_plaintext() {
        let tls = json!({"filter_chain_match": {"destination_port": 8080, "transport_protocol": "tls"},
            "transport_socket": {"name": "envoy.transport_sockets.tls"}});
        let plain =
            json!({"filter_chain_match": {"destination_port": 8080, "transport_protocol": "raw_buffer"}});
        let elsewhere = json!({"filter_chain_match": {"destination_port": 15006}});
        assert_eq!(accepts_plaintext(&dump(&json!([tls, elsewhere])), 8080), Some(false));
        assert_eq!(accepts_plaintext(&dump(&json!([tls, plain])), 8080), Some(true));
        assert_eq!(accepts_plaintext(&dump(&json!([plain])), 8080), Some(true));
        assert_eq!(accepts_plaintext(&dump(&json!([elsewhere])), 8080), None);
        assert_eq!(accepts_plaintext(&json!({}), 8080), None);
    }
}
