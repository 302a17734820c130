//! QUIC without a runtime: UDP sockets, and connections that a thread's own loop drives.
//!
//! A [`Socket`] moves datagrams, several in one call where the kernel can. A [`Link`] is one connection: the state of `quinn-proto`, and what
//! its streams' flow control does not accept yet. Its owner hands it datagrams and the time, and is told what happened.
//!
//! Not supported: explicit congestion notification (packets are sent without its marks), migration, early data.

mod link;
mod socket;

pub use link::{Happening, Link};
pub use quinn_proto;
pub use socket::{Received, Socket};

use quinn_proto::{MtuDiscoveryConfig, TransportConfig, VarInt};

/// Unidirectional streams that a peer may have at a time: the three that it needs, and some of unknown kinds.
const MAX_UNIDIRECTIONAL: u32 = 16;

/// Largest datagram that is tried, without the heads of IP and UDP: what fits into Ethernet's 1500 bytes.
const MAX_DATAGRAM_BYTES: u16 = 1452;

/// Settings of connections: windows of this size, and so many requests of the peer at a time. The peer alone decides when an idle connection
/// ends.
#[must_use]
pub fn transport(stream_window_bytes: u32, window_bytes: u32, max_requests: u32) -> TransportConfig {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(MAX_DATAGRAM_BYTES);
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(VarInt::from_u32(stream_window_bytes))
        .receive_window(VarInt::from_u32(window_bytes))
        .max_concurrent_bidi_streams(VarInt::from_u32(max_requests))
        .max_concurrent_uni_streams(VarInt::from_u32(MAX_UNIDIRECTIONAL))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(None)
        .mtu_discovery_config(Some(discovery));
    config
}
