//! One slot: its socket, its operations in the kernel, and the operations to submit.

use super::ring::Handle;
use super::tag::{Operation, Tag};
use rustix::fd::OwnedFd;
use socket2::SockAddr;

/// State of one slot.
#[derive(Default)]
pub(super) struct Socket {
    /// With the handle by which operations refer to it.
    pub(super) descriptor: Option<(OwnedFd, Handle)>,
    /// Distinguishes this connection from earlier ones in this slot, whose completions may still arrive.
    pub(super) generation: u32,
    pub(super) stage: Stage,
    /// Until connecting starts.
    pub(super) destination: Option<Box<SockAddr>>,
    /// A receive operation is in progress.
    pub(super) receiving: bool,
    /// Bytes to submit. While a send is in progress, these come after it.
    pub(super) outgoing: Vec<u8>,
    pub(super) sending: Sending,
    /// The slot is in the list of slots with operations to submit.
    pub(super) listed: bool,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stage {
    #[default]
    Closed,
    /// To be connected.
    Due,
    Connecting,
    Open,
    /// Nothing more will be received.
    Ended,
}

/// State of the send side.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Sending {
    /// Nothing in progress.
    #[default]
    Idle,
    /// The kernel did not accept everything at once: the remainder is to be submitted as a send that waits.
    Blocked,
    /// A send of what the kernel accepts at once is in progress.
    Now,
    /// The immediate send ended after this many bytes.
    Short(usize),
    /// A send that waits until everything is accepted is in progress.
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

    /// The kernel is done with `bytes` and has accepted `taken` of them. Returns true if there is more to
    /// send.
    pub(super) fn handed_back(&mut self, mut bytes: Vec<u8>, taken: usize) -> bool {
        self.sending = if taken < bytes.len() { Sending::Blocked } else { Sending::Idle };
        bytes.drain(..taken.min(bytes.len()));
        bytes.append(&mut self.outgoing);
        self.outgoing = bytes;
        !self.outgoing.is_empty()
    }
}
