//! Names and versions, each held once for all sessions of a thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Index of a name or a version in [`Names`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub(super) struct NameId(pub(super) u32);

/// The empty name, which always exists.
pub(super) const EMPTY: NameId = NameId(0);

/// Interned names.
#[derive(Debug)]
pub(super) struct Names {
    ids: HashMap<Arc<str>, NameId>,
    entries: Vec<Entry>,
    free: Vec<NameId>,
    epoch: u32,
    /// Number of messages being read, by the epoch in which they began.
    readers: BTreeMap<u32, u32>,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    /// Epoch of its last use.
    epoch: u32,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            ids: HashMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            epoch: 0,
            readers: BTreeMap::new(),
        };
        names.intern("");
        names
    }
}

impl Names {
    /// Interns a name. The id stays valid while a reader is registered that began earlier, and as long as
    /// every sweep reports it as live.
    pub(super) fn intern(&mut self, text: &str) -> NameId {
        if let Some(id) = self.ids.get(text) {
            self.entries[id.0 as usize].epoch = self.epoch;
            return *id;
        }
        let entry = Entry { text: Arc::from(text), epoch: self.epoch };
        let id = match self.free.pop() {
            Some(id) => id,
            None => NameId(u32::try_from(self.entries.len()).expect("fewer than 2^32 names")),
        };
        self.ids.insert(Arc::clone(&entry.text), id);
        if id.0 as usize == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[id.0 as usize] = entry;
        }
        id
    }

    /// The text of a name.
    pub(super) fn text(&self, id: NameId) -> &str {
        &self.entries[id.0 as usize].text
    }

    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Registers the reader of a message: names interned from now on stay until the reader has left.
    pub(super) fn enter_reader(&mut self) -> u32 {
        *self.readers.entry(self.epoch).or_default() += 1;
        self.epoch
    }

    /// Unregisters the reader of a message.
    pub(super) fn leave_reader(&mut self, epoch: u32) {
        if let Some(readers) = self.readers.get_mut(&epoch) {
            *readers -= 1;
            if *readers == 0 {
                self.readers.remove(&epoch);
            }
        }
    }

    /// Frees names that are neither live by `is_live` nor in use by a message being read.
    pub(super) fn sweep(&mut self, is_live: impl Fn(NameId) -> bool) {
        let kept_from = self.readers.keys().next().copied().unwrap_or(self.epoch + 1);
        for (index, entry) in self.entries.iter_mut().enumerate().skip(1) {
            let id = NameId(u32::try_from(index).expect("fewer than 2^32 names"));
            if entry.epoch < kept_from && !entry.text.is_empty() && !is_live(id) {
                self.ids.remove(&entry.text);
                entry.text = Arc::from("");
                self.free.push(id);
            }
        }
        self.epoch += 1;
    }

    /// Approximate memory usage in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let texts: usize = self.ids.keys().map(|text| text.len() + 16).sum();
        texts + self.ids.capacity() * 24 + self.entries.capacity() * size_of::<Entry>()
    }
}
