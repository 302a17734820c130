//! Load of a cell.

use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// The load of one cell of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Protocol, such as `http/1.1`; `xds` for a fleet of simulated proxies.
    pub protocol: String,
    /// Open loop: requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Closed loop: number of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Connections kept open by the generator.
    pub connections: usize,
    /// Requests after which the generator replaces a connection. Absent: connections stay open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<usize>,
    /// Size of the response body, bytes; 0 for streams of tokens.
    pub payload_bytes: u64,
    /// Responses are streams of tokens; absent if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamLoad>,
    /// Arrival process: `uniform` or `poisson`.
    pub arrival: String,
    /// Background services, if they are a factor: a load of their own on the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surrounding_services: Option<usize>,
}

/// Requests for streams of tokens, and the schedule of the tokens at the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamLoad {
    /// Size of the request body, bytes.
    pub prompt_bytes: u64,
    /// Tokens of each response.
    pub tokens: usize,
    /// Time from a request to its first token, such as `50ms` or `exp:50ms`.
    pub first: String,
    /// Time from one token to the next.
    pub gap: String,
    /// Closed loop: mean time from the end of a response to the client's next request, seconds.
    #[serde(default)]
    pub pause_s: f64,
}

/// A pause is a number of JSON, never NaN.
impl Eq for StreamLoad {}

impl Hash for StreamLoad {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { prompt_bytes, tokens, first, gap, pause_s } = self;
        (prompt_bytes, tokens, first, gap, (pause_s + 0.0).to_bits()).hash(state);
    }
}

/// Value of [`LoadPoint::protocol`] for a fleet.
const FLEET_PROTOCOL: &str = "xds";

impl LoadPoint {
    /// Load point of a fleet, which has no requests.
    #[must_use]
    pub fn of_fleet() -> Self {
        Self {
            protocol: FLEET_PROTOCOL.to_owned(),
            rate: None,
            clients: None,
            connections: 0,
            requests_per_connection: None,
            payload_bytes: 0,
            stream: None,
            arrival: String::new(),
            surrounding_services: None,
        }
    }

    /// True if a cell under this load is also the cell of its mode under `other`: background services are absent from
    /// the load of modes that they cannot touch.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self == other
            || self.surrounding_services.is_none()
                && *self == Self { surrounding_services: None, ..other.clone() }
    }

    /// Requests per second, or clients of a closed loop; absent for a fleet.
    #[must_use]
    pub fn level(&self) -> Option<f64> {
        self.rate.or(self.clients.map(|clients| clients as f64))
    }

    /// True for a closed loop whose throughput the target limits. That of streams follows from the schedule of their tokens.
    #[must_use]
    pub fn is_closed_loop(&self) -> bool {
        self.rate.is_none() && !self.is_fleet() && self.stream.is_none()
    }

    /// True for a fleet.
    #[must_use]
    pub fn is_fleet(&self) -> bool {
        self.protocol == FLEET_PROTOCOL
    }
}

/// A rate is a number of JSON, never NaN.
impl Eq for LoadPoint {}

impl Hash for LoadPoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            protocol,
            rate,
            clients,
            connections,
            requests_per_connection,
            payload_bytes,
            stream,
            arrival,
            surrounding_services,
        } = self;
        // Maps minus zero to zero, since they are equal.
        (protocol, rate.map(|rate| (rate + 0.0).to_bits()), clients).hash(state);
        (connections, requests_per_connection, payload_bytes, stream, arrival, surrounding_services)
            .hash(state);
    }
}
