//! Messages that a session wants to send.

/// Encoded bodies of `DeltaDiscoveryRequest` or `DiscoveryRequest`, in the order of sending. One serves all sessions of a
/// thread, emptied after each call.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Outbox {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bodies, without gRPC's prefix.
    pub fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// Nothing is to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets the bodies.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(MAX_KEPT_BYTES);
    }

    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }
}

/// Memory that an emptied outbox keeps.
const MAX_KEPT_BYTES: usize = 1 << 20;
