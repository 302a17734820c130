//! Propagation of configuration to the proxies of a trial.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Propagation time of a configuration change, from the proxies' own state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationPush {
    /// Objects written to the API, all at once, while the proxies were connected to the control plane.
    pub objects: usize,
    /// From sending the first write to the API's response to the last, seconds.
    pub written_s: f64,
    /// Per proxy: from that response until the proxy shows everything that follows from the objects, seconds.
    /// Includes the control plane's debounce time.
    pub in_force_s: BTreeMap<String, f64>,
}

/// A domain that was written after the load, while the gateway served the others, and then removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FurtherDomain {
    /// Component of the gateway.
    pub gateway: String,
    /// Name of the domain.
    pub name: String,
    /// From sending its objects to the API's response to the last, seconds.
    pub written_s: Option<f64>,
    /// From that response to the gateway's first response for the domain, seconds. Includes the control
    /// plane's debounce time.
    pub in_force_s: Option<f64>,
    /// Why a time is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
