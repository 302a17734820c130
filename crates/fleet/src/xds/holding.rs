//! The resources of one type that a proxy holds, and the names in them. Proxies with equal resources share
//! one [`Holding`]: the sidecars of a namespace differ in few names.

use super::names::{NameId, Names};
use experiment::xds::ResourceType;
use results::random;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

/// Names and holdings, shared by the sessions of a thread.
#[derive(Debug, Default)]
pub struct Store {
    pub(super) names: Names,
    holdings: HashMap<u128, Weak<Holding>>,
    /// Number of names and holdings after the last sweep.
    swept: usize,
}

/// A sweep visits all names, so it waits until at least this many were added.
const MIN_SWEEP: usize = 4096;

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Approximate memory usage in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let holdings = self.holdings.values().filter_map(Weak::upgrade);
        let held: usize = holdings.map(|holding| holding.memory_bytes()).sum();
        self.names.memory_bytes() + self.holdings.capacity() * 32 + held
    }

    /// The holding after an update. Entries of `updates` are sorted by name, as are `references` by owner.
    pub(super) fn update(&mut self, old: &Arc<Holding>, update: &Update<'_>) -> Arc<Holding> {
        let hash = update.hash(old);
        if hash == old.hash {
            return Arc::clone(old);
        }
        if let Some(holding) = self.holdings.get(&hash).and_then(Weak::upgrade) {
            return holding;
        }
        let holding = Arc::new(update.apply(old, hash));
        self.holdings.insert(hash, Arc::downgrade(&holding));
        holding
    }

    /// Frees names and holdings that no session uses, once their number has doubled since the last sweep.
    pub(super) fn sweep_if_grown(&mut self) {
        let size = self.names.len() + self.holdings.len();
        if size < self.swept * 2 + MIN_SWEEP {
            return;
        }
        self.holdings.retain(|_, holding| holding.strong_count() > 0);
        let mut live = std::collections::HashSet::new();
        for holding in self.holdings.values().filter_map(Weak::upgrade) {
            live.extend(holding.entries.iter().flat_map(|entry| [entry.name, entry.version]));
            live.extend(holding.references.iter().map(|reference| reference.target));
        }
        self.names.sweep(|id| live.contains(&id));
        self.swept = self.names.len() + self.holdings.len();
    }
}

/// The held resources of one type.
#[derive(Debug, Default)]
pub(super) struct Holding {
    hash: u128,
    /// Sorted by name.
    pub(super) entries: Box<[Entry]>,
    /// Sorted by owner.
    references: Box<[Reference]>,
    /// Targets of the references, by type; computed on first use.
    targets: [OnceLock<Arc<[NameId]>>; 4],
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub(super) struct Entry {
    pub(super) name: NameId,
    pub(super) version: NameId,
}

/// A reference from one resource to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub(super) struct Reference {
    pub(super) owner: NameId,
    pub(super) resource_type: ResourceType,
    pub(super) target: NameId,
}

/// Changes in a response.
pub(super) struct Update<'a> {
    /// Added and changed resources, sorted by name, without duplicates.
    pub(super) entries: &'a [Entry],
    /// All references from those, sorted, without duplicates.
    pub(super) references: &'a [Reference],
    /// Removed resources, sorted.
    pub(super) removed: &'a [NameId],
    /// True if resources that are not in `entries` are gone.
    pub(super) is_whole: bool,
}

impl Holding {
    /// Index of a resource.
    fn find(&self, name: NameId) -> Option<usize> {
        self.entries.binary_search_by_key(&name, |entry| entry.name).ok()
    }

    /// Names of this type that the resources refer to, sorted, without duplicates.
    pub(super) fn targets(&self, resource_type: ResourceType) -> Arc<[NameId]> {
        let slot = match resource_type {
            ResourceType::Endpoints => 0,
            ResourceType::Routes => 1,
            ResourceType::Secrets => 2,
            _ => 3,
        };
        let targets = self.targets[slot].get_or_init(|| {
            let wanted = self.references.iter().filter(|reference| reference.resource_type == resource_type);
            let mut targets: Vec<_> = wanted.map(|reference| reference.target).collect();
            targets.sort_unstable();
            targets.dedup();
            targets.into()
        });
        Arc::clone(targets)
    }

    fn references_of(&self, owner: NameId) -> &[Reference] {
        let start = self.references.partition_point(|reference| reference.owner < owner);
        let length = self.references[start..].partition_point(|reference| reference.owner == owner);
        &self.references[start..start + length]
    }

    fn memory_bytes(&self) -> usize {
        let targets: usize =
            self.targets.iter().filter_map(OnceLock::get).map(|targets| targets.len() * 4 + 16).sum();
        size_of::<Self>() + size_of_val(&*self.entries) + size_of_val(&*self.references) + targets
    }
}

impl Update<'_> {
    fn hash(&self, old: &Holding) -> u128 {
        let mut hash = if self.is_whole { 0 } else { old.hash };
        if !self.is_whole {
            let replaced = self.entries.iter().map(|entry| entry.name);
            for name in replaced.chain(self.removed.iter().copied()) {
                if let Some(position) = old.find(name) {
                    hash = hash.wrapping_sub(old.entries[position].hash());
                    for reference in old.references_of(name) {
                        hash = hash.wrapping_sub(reference.hash());
                    }
                }
            }
        }
        for entry in self.entries {
            hash = hash.wrapping_add(entry.hash());
        }
        for reference in self.references {
            hash = hash.wrapping_add(reference.hash());
        }
        hash
    }

    fn removes(&self, name: NameId) -> bool {
        self.removed.binary_search(&name).is_ok()
    }

    fn replaces(&self, name: NameId) -> bool {
        self.is_whole || self.entries.binary_search_by_key(&name, |entry| entry.name).is_ok()
    }

    fn apply(&self, old: &Holding, hash: u128) -> Holding {
        let stays = |name| !self.replaces(name) && !self.removes(name);
        let mut entries: Vec<_> = old.entries.iter().copied().filter(|entry| stays(entry.name)).collect();
        entries.extend_from_slice(self.entries);
        entries.sort_unstable();
        let mut references: Vec<_> =
            old.references.iter().copied().filter(|reference| stays(reference.owner)).collect();
        references.extend_from_slice(self.references);
        references.sort_unstable();
        Holding { hash, entries: entries.into(), references: references.into(), targets: Default::default() }
    }
}

impl Entry {
    fn hash(self) -> u128 {
        mixed(u64::from(self.name.0) << 32 | u64::from(self.version.0), 1)
    }
}

impl Reference {
    fn hash(self) -> u128 {
        mixed(u64::from(self.owner.0) << 32 | u64::from(self.target.0), 2 + self.resource_type as u64)
    }
}

/// 128 well-mixed bits. Sums of them identify sets.
fn mixed(value: u64, kind: u64) -> u128 {
    let low = random::mixed(value ^ random::mixed(kind));
    let high = random::mixed(value.rotate_left(32) ^ random::mixed(kind ^ 0xa5a5_5a5a_0f0f_f0f0));
    u128::from(high) << 64 | u128::from(low)
}

/// Names in `of` that are not in `without`. Both are sorted.
pub(super) fn difference(of: &[NameId], without: &[NameId]) -> Vec<NameId> {
    of.iter().copied().filter(|name| without.binary_search(name).is_err()).collect()
}

/// Names in either list, sorted.
pub(super) fn union(one: &Arc<[NameId]>, other: &Arc<[NameId]>) -> Arc<[NameId]> {
    if other.is_empty() {
        return Arc::clone(one);
    }
    if one.is_empty() {
        return Arc::clone(other);
    }
    let mut names: Vec<_> = one.iter().chain(&**other).copied().collect();
    names.sort_unstable();
    names.dedup();
    names.into()
}
