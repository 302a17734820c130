//! Marks that sessions search for.

use aho_corasick::{AhoCorasick, MatchKind};
use experiment::xds::{Mark, ResourceType};
use memchr::memmem::Finder;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Identifies a mark in [`Marks`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct MarkId(pub u32);

/// The open marks, of which each session expects some. Cloning is cheap, so each thread can have a copy.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    open: BTreeMap<MarkId, Arc<OpenMark>>,
    next: u32,
    searchers: [OnceLock<Arc<Searcher>>; ResourceType::ALL.len()],
}

impl Marks {
    /// Creates a set without marks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a mark, which sessions may expect from now on.
    pub fn open(&mut self, mark: Mark) -> MarkId {
        let id = MarkId(self.next);
        self.next += 1;
        self.searchers[mark.resource_type as usize] = OnceLock::new();
        let finder = Finder::new(&mark.needle).into_owned();
        self.open.insert(id, Arc::new(OpenMark { mark, finder }));
        id
    }

    /// Closes a mark: no session finds it any longer.
    pub fn close(&mut self, id: MarkId) {
        if let Some(closed) = self.open.remove(&id) {
            self.searchers[closed.mark.resource_type as usize] = OnceLock::new();
        }
    }

    /// Returns the mark if it is open.
    #[must_use]
    pub fn get(&self, id: MarkId) -> Option<&Mark> {
        self.open.get(&id).map(|open| &open.mark)
    }

    pub(super) fn find(&self, id: MarkId) -> Option<&Arc<OpenMark>> {
        self.open.get(&id)
    }

    /// A searcher for all open marks of a type at once.
    pub(super) fn searcher(&self, resource_type: ResourceType) -> Arc<Searcher> {
        let searcher = self.searchers[resource_type as usize].get_or_init(|| {
            let of_type = self.open.iter().filter(|(_, open)| open.mark.resource_type == resource_type);
            Arc::new(Searcher::new(of_type.map(|(id, open)| (*id, &open.mark.needle[..]))))
        });
        Arc::clone(searcher)
    }
}

/// A mark being searched for.
#[derive(Debug)]
pub(super) struct OpenMark {
    pub(super) mark: Mark,
    pub(super) finder: Finder<'static>,
}

impl OpenMark {
    /// True if the mark concerns resources of this name.
    pub(super) fn is_about(&self, name: &str) -> bool {
        self.mark.resource.as_deref().is_none_or(|resource| name.ends_with(resource))
    }
}

/// Searches for many needles in one pass.
#[derive(Debug)]
pub(super) struct Searcher {
    automaton: Option<AhoCorasick>,
    ids: Vec<MarkId>,
}

impl Searcher {
    fn new<'a>(needles: impl Iterator<Item = (MarkId, &'a [u8])>) -> Self {
        let (ids, needles): (Vec<_>, Vec<_>) = needles.filter(|(_, needle)| !needle.is_empty()).unzip();
        // Building fails only if the needles together exceed its table size; each is then searched for separately.
        let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(needles).ok();
        Self { automaton, ids }
    }

    /// The automaton, if there is one, and the marks of its patterns.
    pub(super) fn parts(&self) -> Option<(&AhoCorasick, &[MarkId])> {
        self.automaton.as_ref().map(|automaton| (automaton, &self.ids[..]))
    }
}
