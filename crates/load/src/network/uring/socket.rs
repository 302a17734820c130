//! One slot: its socket, what the kernel does for it, what is to be asked of the kernel.

use super::ring::Handle;
use super::tag::{Operation, Tag};
use rustix::fd::OwnedFd;
use std::net::SocketAddr;

/// See the module.
#[derive(Default)]
pub(super) struct Socket {
    /// With how operations name it.
    pub(super) descriptor: Option<(OwnedFd, Handle)>,
    /// Told apart from earlier connections in this slot, whose completions may still come.
    pub(super) generation: u32,
    pub(super) stage: Stage,
    /// The kernel receives on it.
    pub(super) receiving: bool,
    /// What is to be handed to the kernel. While it has bytes to send, these come behind them.
    pub(super) outgoing: Vec<u8>,
    pub(super) sending: Sending,
    /// It stands in the list of slots for which something is to be asked.
    pub(super) listed: bool,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stage {
    #[default]
    Closed,
    /// To be connected.
    Due(SocketAddr),
    Connecting,
    Open,
    /// Nothing more will be received.
    Ended,
}

/// What the kernel does with bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Sending {
    /// Nothing.
    #[default]
    Idle,
    /// It has not taken all at once: what is left is to be handed over to be sent as soon as it can.
    Blocked,
    /// It has bytes which it takes at once, or not.
    Now,
    /// It had, and took so many of them.
    Short(usize),
    /// It has bytes which it takes as soon as it can.
    All,
}

impl Socket {
    pub(super) fn tag(&self, operation: Operation, slot: usize) -> Tag {
        let slot = u32::try_from(slot).expect("fewer connections than that");
        Tag { operation, slot, generation: self.generation }
    }

    pub(super) fn has_sent_all(&self) -> bool {
        self.outgoing.is_empty() && self.sending == Sending::Idle
    }

    /// The kernel is done with `bytes`, of which it has taken `taken`. Returns whether there is more to send.
    pub(super) fn handed_back(&mut self, mut bytes: Vec<u8>, taken: usize) -> bool {
        self.sending = if taken < bytes.len() { Sending::Blocked } else { Sending::Idle };
        bytes.drain(..taken.min(bytes.len()));
        bytes.append(&mut self.outgoing);
        self.outgoing = bytes;
        !self.outgoing.is_empty()
    }
}
