//! Turns of a connection in its worker's event loop.

/// How long a connection that the server closes is still read, so that no reset discards its last bytes.
pub(crate) const LINGER_NS: u64 = 1_000_000_000;

/// What a connection needs next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// Its socket to become ready.
    Wait,
    /// Its socket to become ready, or this time, nanoseconds since the start of the server.
    WaitUntil(u64),
    /// Another turn, after the others.
    Again,
    /// To be closed.
    Close,
}
