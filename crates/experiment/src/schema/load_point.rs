//! The load of a cell.

use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// The load of one cell of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Such as `http/1.1`; `xds` where a fleet of simulated proxies takes the place of requests.
    pub protocol: String,
    /// Open loop: requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Closed loop: clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Connections kept open by the generator.
    pub connections: usize,
    /// Size of the response body, bytes.
    pub payload_bytes: u64,
    /// `uniform` or `poisson`.
    pub arrival: String,
    /// Background services, where they are a factor. Here too because results of earlier versions have it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surrounding_services: Option<usize>,
}

/// [`LoadPoint::protocol`] of a fleet.
const FLEET_PROTOCOL: &str = "xds";

impl LoadPoint {
    /// No requests: a fleet of simulated proxies.
    #[must_use]
    pub fn of_fleet() -> Self {
        Self {
            protocol: FLEET_PROTOCOL.to_owned(),
            rate: None,
            clients: None,
            connections: 0,
            payload_bytes: 0,
            arrival: String::new(),
            surrounding_services: None,
        }
    }

    /// Whether a fleet takes the place of requests.
    #[must_use]
    pub fn is_fleet(&self) -> bool {
        self.protocol == FLEET_PROTOCOL
    }
}

/// A rate is a number of JSON, never NaN.
impl Eq for LoadPoint {}

impl Hash for LoadPoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { protocol, rate, clients, connections, payload_bytes, arrival, surrounding_services } =
            self;
        // Zero and minus zero are equal.
        (protocol, rate.map(|rate| (rate + 0.0).to_bits()), clients).hash(state);
        (connections, payload_bytes, arrival, surrounding_services).hash(state);
    }
}
