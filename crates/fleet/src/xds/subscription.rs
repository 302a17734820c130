//! State of a session for one resource type.

use super::holding::Holding;
use super::names::NameId;
use experiment::xds::ResourceType;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Maximum number of withheld acks. Beyond it, the oldest is dropped, which the control plane treats as expired.
const MAX_WITHHELD: usize = 16;

/// A subscription to one resource type.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) resource_type: ResourceType,
    /// True if the type was requested on this stream.
    pub(super) is_requested: bool,
    /// True if the type was answered on this stream.
    pub(super) is_answered: bool,
    /// Subscribed names, sorted; empty for a wildcard subscription.
    pub(super) names: Arc<[NameId]>,
    /// Subscribed names that the control plane reported as absent.
    pub(super) absent: Vec<NameId>,
    /// Number of addresses requested by name without a response yet.
    pub(super) unanswered_demands: u32,
    /// Accepted resources.
    pub(super) holding: Arc<Holding>,
    /// Version of the last accepted response (state of the world).
    pub(super) version: Box<str>,
    /// Nonce of the last response on this stream.
    pub(super) nonce: Box<str>,
    /// Nonces of responses to be acknowledged once clusters are warm.
    pub(super) withheld: Vec<Box<str>>,
    /// Hashes of names unsubscribed on this stream: resources for them may still be in flight.
    dropped: Vec<u64>,
}

/// Maximum number of unsubscribed names that are remembered.
const MAX_DROPPED: usize = 4096;

impl Subscription {
    pub(super) fn new(resource_type: ResourceType) -> Self {
        Self {
            resource_type,
            is_requested: false,
            is_answered: false,
            names: Arc::new([]),
            absent: Vec::new(),
            unanswered_demands: 0,
            holding: Arc::default(),
            version: Box::default(),
            nonce: Box::default(),
            withheld: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Called when the stream has ended; held resources stay.
    pub(super) fn disconnected(&mut self) {
        self.is_requested = false;
        self.is_answered = false;
        self.absent = Vec::new();
        self.unanswered_demands = 0;
        self.nonce = Box::default();
        self.withheld = Vec::new();
        self.dropped = Vec::new();
    }

    /// True if every subscribed name is held or reported as absent.
    pub(super) fn holds_all(&self) -> bool {
        self.first_missing().is_none()
    }

    /// True if everything requested has arrived.
    pub(super) fn is_settled(&self) -> bool {
        let is_optional = !self.resource_type.is_always_answered()
            || (self.resource_type.is_named() && self.names.is_empty());
        is_optional || (self.is_answered && self.unanswered_demands == 0 && self.holds_all())
    }

    /// Approximate memory usage in bytes that is not shared.
    pub(super) fn memory_bytes(&self) -> usize {
        let withheld: usize = self.withheld.iter().map(|nonce| nonce.len() + 16).sum();
        let names = (self.absent.capacity() + 2 * self.dropped.capacity()) * size_of::<NameId>();
        size_of::<Self>() + self.version.len() + self.nonce.len() + withheld + names
    }

    /// The first subscribed name that is neither held nor absent.
    pub(super) fn first_missing(&self) -> Option<NameId> {
        let mut held = self.holding.entries.iter().map(|entry| entry.name).peekable();
        self.names.iter().copied().find(|name| {
            while held.next_if(|held| held < name).is_some() {}
            held.peek() != Some(name) && self.absent.binary_search(name).is_err()
        })
    }

    pub(super) fn withhold(&mut self, nonce: Box<str>) {
        if self.withheld.len() == MAX_WITHHELD {
            self.withheld.remove(0);
        }
        self.withheld.push(nonce);
    }

    /// True if the name was unsubscribed on this stream.
    pub(super) fn was_dropped(&self, name: &str) -> bool {
        self.dropped.contains(&hash(name))
    }

    pub(super) fn drop_names<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.dropped.extend(names.map(hash));
        let surplus = self.dropped.len().saturating_sub(MAX_DROPPED);
        self.dropped.drain(..surplus);
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
