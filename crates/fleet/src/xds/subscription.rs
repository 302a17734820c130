//! State of a session for one type of resource.

use super::holding::Holding;
use super::names::NameId;
use experiment::xds::ResourceType;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Most acknowledgements that are withheld at once; beyond, the oldest is forgotten, which the control plane takes as expired.
const MAX_WITHHELD: usize = 16;

/// A type that is subscribed to.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) resource_type: ResourceType,
    /// Requested on this stream.
    pub(super) is_requested: bool,
    /// Answered on this stream.
    pub(super) is_answered: bool,
    /// Names that are subscribed to, sorted; empty where the type is subscribed to as a whole.
    pub(super) names: Arc<[NameId]>,
    /// Names of those that the control plane says are not there.
    pub(super) absent: Vec<NameId>,
    /// Addresses that were asked for by name and not answered.
    pub(super) unanswered_demands: u32,
    /// Accepted resources.
    pub(super) holding: Arc<Holding>,
    /// State of the world: version of the response accepted last.
    pub(super) version: Box<str>,
    /// Nonce of the last response on this stream.
    pub(super) nonce: Box<str>,
    /// Nonces of responses that are acknowledged once clusters are warm.
    pub(super) withheld: Vec<Box<str>>,
    /// Hashes of names that were unsubscribed from on this stream: the control plane may still have sent them.
    dropped: Vec<u64>,
}

/// Most names that are remembered as unsubscribed.
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

    /// The stream has ended: what is held stays.
    pub(super) fn disconnected(&mut self) {
        self.is_requested = false;
        self.is_answered = false;
        self.absent = Vec::new();
        self.unanswered_demands = 0;
        self.nonce = Box::default();
        self.withheld = Vec::new();
        self.dropped = Vec::new();
    }

    /// Every name that is subscribed to is held, or not there.
    pub(super) fn holds_all(&self) -> bool {
        self.first_missing().is_none()
    }

    /// It has what it asked for.
    pub(super) fn is_settled(&self) -> bool {
        let is_optional = !self.resource_type.is_always_answered()
            || (self.resource_type.is_named() && self.names.is_empty());
        is_optional || (self.is_answered && self.unanswered_demands == 0 && self.holds_all())
    }

    /// Memory that it uses alone, roughly.
    pub(super) fn memory_bytes(&self) -> usize {
        let withheld: usize = self.withheld.iter().map(|nonce| nonce.len() + 16).sum();
        let names = (self.absent.capacity() + 2 * self.dropped.capacity()) * size_of::<NameId>();
        size_of::<Self>() + self.version.len() + self.nonce.len() + withheld + names
    }

    /// The first name that is subscribed to and neither held nor absent.
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

    /// The name was subscribed to on this stream.
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
