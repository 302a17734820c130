//! What a control plane did to the proxies of a trial.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long a change of the mesh's configuration took to be in force, from the proxies' own state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationPush {
    /// Objects that were written to the API, all at once, while the proxies were connected to the control plane.
    pub objects: usize,
    /// From sending the first of them to the API's answer for the last, seconds.
    pub written_s: f64,
    /// For each proxy: from that answer to the moment at which the proxy showed all that the objects mean for it, seconds.
    /// The control plane's own waiting for more changes (debounce) is part of it.
    pub in_force_s: BTreeMap<String, f64>,
}

/// A domain that was written after the load, while the gateway served the others, and removed again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FurtherDomain {
    /// The gateway's component.
    pub gateway: String,
    /// The domain's name.
    pub name: String,
    /// From sending its objects to the API's answer for the last, seconds.
    pub written_s: Option<f64>,
    /// From that answer to the gateway's first response for the domain, seconds. The control plane's own waiting for more
    /// changes (debounce) is part of it.
    pub in_force_s: Option<f64>,
    /// Why a time is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
