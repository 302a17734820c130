//! Contents of a response, by name.

use super::event::Violation;
use super::holding::{Entry, Reference};
use super::marks::{MarkId, Marks};
use super::names::{NameId, Names};
use super::scan::Scan;
use super::subscription::Subscription;
use experiment::xds::ResourceType;

/// Names and versions in a response, and its violations.
pub(super) struct Contents {
    /// Length of the body.
    pub(super) bytes: u64,
    /// Epoch for [`Names::leave_reader`].
    pub(super) epoch: u32,
    /// Type URL of the response.
    pub(super) type_url: Option<String>,
    /// Version of a state-of-the-world response.
    pub(super) version: Box<str>,
    pub(super) nonce: Box<str>,
    pub(super) entries: Vec<Entry>,
    pub(super) references: Vec<Reference>,
    pub(super) removed: Vec<NameId>,
    /// Number of resources.
    pub(super) resources: u32,
    /// Number of routes in them.
    pub(super) routes: u32,
    /// Violations, without duplicates.
    pub(super) violations: Vec<Violation>,
    /// Search for marks; absent if no mark of the type is expected.
    pub(super) scan: Option<Scan>,
    /// Type of the resources, taken from the first one.
    pub(super) resource_type: Option<ResourceType>,
}

impl Contents {
    pub(super) fn new(bytes: u64, epoch: u32) -> Self {
        Self {
            bytes,
            epoch,
            type_url: None,
            version: Box::default(),
            nonce: Box::default(),
            entries: Vec::new(),
            references: Vec::new(),
            removed: Vec::new(),
            resources: 0,
            routes: 0,
            violations: Vec::new(),
            scan: None,
            resource_type: None,
        }
    }

    pub(super) fn violate(&mut self, violation: Violation) {
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    /// Sorts all lists, and records duplicate resources as a violation.
    pub(super) fn settle(&mut self) {
        self.entries.sort_unstable();
        self.references.sort_unstable();
        self.references.dedup();
        self.removed.sort_unstable();
        self.removed.dedup();
        let is_twice = self.entries.windows(2).any(|pair| pair[0].name == pair[1].name);
        let is_removed = self.entries.iter().any(|entry| self.removed.binary_search(&entry.name).is_ok());
        if is_twice || is_removed {
            self.violate(Violation::DuplicateResource);
        }
    }

    /// Reason why a proxy would reject the response.
    pub(super) fn rejection(&self) -> Option<&'static str> {
        self.violations.iter().find_map(|violation| match violation {
            Violation::UndecodableResource => Some("a resource cannot be decoded"),
            Violation::MissingName => Some("a resource has no name"),
            Violation::DuplicateResource => Some("a resource occurs twice"),
            Violation::MixedTypes => Some("a resource is not of the type of the response"),
            _ => None,
        })
    }

    /// Drops resources that are not subscribed to. Those that were unsubscribed on this stream may still be
    /// in flight.
    pub(super) fn keep_subscribed(&mut self, subscription: &mut Subscription, names: &Names) {
        let mut is_violated = false;
        let subscribed = &subscription.names;
        let mut position = 0;
        self.entries.retain(|entry| {
            position += subscribed[position..].partition_point(|name| *name < entry.name);
            let is_subscribed = subscribed.get(position) == Some(&entry.name);
            is_violated |= !is_subscribed && !subscription.was_dropped(names.text(entry.name));
            is_subscribed
        });
        if is_violated {
            self.violate(Violation::UnsubscribedResource);
        }
        let entries = &self.entries;
        subscription.absent.retain(|name| entries.binary_search_by_key(name, |entry| entry.name).is_err());
        let absent = self.removed.iter().filter(|name| subscription.names.binary_search(name).is_ok());
        subscription.absent.extend(absent);
        subscription.absent.sort_unstable();
        subscription.absent.dedup();
    }

    /// The search for marks, created here if the response has no resources.
    pub(super) fn scan_of(
        &mut self,
        resource_type: ResourceType,
        expected: &[MarkId],
        marks: &Marks,
    ) -> Option<Scan> {
        self.scan.take().or_else(|| Scan::new(resource_type, expected, marks))
    }
}
