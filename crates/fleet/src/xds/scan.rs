//! Searches for marks in the resources of one response while they arrive.

use super::event::Moment;
use super::marks::{MarkId, Marks, OpenMark, Searcher};
use experiment::xds::Presence;
use experiment::xds::ResourceType;
use std::sync::Arc;

/// Up to this number, each mark is searched for separately, which is faster than an automaton.
const MAX_SEPARATE_SEARCHES: usize = 8;

/// The marks of a type that a session expects, and where they were found.
pub(super) struct Scan {
    wanted: Vec<Wanted>,
    /// Present if many marks are wanted.
    searcher: Option<Arc<Searcher>>,
    /// Length of the longest needle.
    longest: usize,
    /// Last bytes of the resource so far, which may contain the beginning of a needle.
    tail: Vec<u8>,
    /// Marks that arrived with this response.
    pub(super) arrived: Vec<(MarkId, Moment)>,
}

struct Wanted {
    id: MarkId,
    open: Arc<OpenMark>,
    /// When the needle was found in this resource.
    in_resource: Option<Moment>,
    /// True if this response has a resource of the right name with the needle.
    in_response: bool,
    has_arrived: bool,
}

impl Scan {
    /// Searches for those of the `expected` marks that have this type; absent if there are none.
    pub(super) fn new(resource_type: ResourceType, expected: &[MarkId], marks: &Marks) -> Option<Self> {
        let open = expected.iter().filter_map(|id| Some((*id, marks.find(*id)?)));
        let of_type = open.filter(|(_, open)| open.mark.resource_type == resource_type);
        let wanted: Vec<_> = of_type.map(|(id, open)| Wanted::new(id, open)).collect();
        let longest = wanted.iter().map(|wanted| wanted.open.mark.needle.len()).max()?;
        let searcher = (wanted.len() > MAX_SEPARATE_SEARCHES).then(|| marks.searcher(resource_type));
        let searcher = searcher.filter(|searcher| searcher.parts().is_some());
        Some(Self { wanted, searcher, longest, tail: Vec::new(), arrived: Vec::new() })
    }

    /// Called when a resource begins.
    pub(super) fn begin_resource(&mut self) {
        self.tail.clear();
        for wanted in &mut self.wanted {
            wanted.in_resource = None;
        }
    }

    /// Searches bytes of the resource; `last` is true for the final ones.
    pub(super) fn content(&mut self, bytes: &[u8], last: bool, at: Moment) {
        let overlap = self.longest.saturating_sub(1);
        if !self.tail.is_empty() {
            let mut seam = std::mem::take(&mut self.tail);
            let old = seam.len();
            seam.extend_from_slice(&bytes[..overlap.min(bytes.len())]);
            self.search(&seam, at);
            // The seam becomes the tail again: only its end is needed.
            seam.truncate(old);
            self.tail = seam;
        }
        self.search(bytes, at);
        if last {
            self.tail.clear();
        } else {
            self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(overlap)..]);
            let surplus = self.tail.len().saturating_sub(overlap);
            self.tail.drain(..surplus);
        }
    }

    fn search(&mut self, bytes: &[u8], at: Moment) {
        let Some(searcher) = self.searcher.clone() else {
            for wanted in self.wanted.iter_mut().filter(|wanted| wanted.in_resource.is_none()) {
                if wanted.open.finder.find(bytes).is_some() {
                    wanted.in_resource = Some(at);
                }
            }
            return;
        };
        let Some((automaton, ids)) = searcher.parts() else { return };
        for found in automaton.find_overlapping_iter(bytes) {
            let id = ids[found.pattern().as_usize()];
            if let Ok(position) = self.wanted.binary_search_by_key(&id, |wanted| wanted.id) {
                self.wanted[position].in_resource.get_or_insert(at);
            }
        }
    }

    /// Called when the resource has ended and its name is known.
    pub(super) fn end_resource(&mut self, name: &str, at: Moment) {
        for wanted in self.wanted.iter_mut().filter(|wanted| wanted.open.is_about(name)) {
            let found = if wanted.open.mark.needle.is_empty() { Some(at) } else { wanted.in_resource };
            wanted.in_response |= found.is_some();
            match (wanted.open.mark.presence, found) {
                (Presence::Present, Some(found_at)) => wanted.arrive(found_at, &mut self.arrived),
                (Presence::Gone, None) if wanted.open.mark.resource.is_some() => {
                    wanted.arrive(at, &mut self.arrived);
                }
                _ => {}
            }
        }
    }

    /// Called when a resource was removed.
    pub(super) fn removed(&mut self, name: &str, at: Moment) {
        let gone = self.wanted.iter_mut().filter(|wanted| wanted.open.mark.presence == Presence::Gone);
        for wanted in gone {
            let is_meant = match &wanted.open.mark.resource {
                Some(_) => wanted.open.is_about(name),
                None => wanted.open.finder.find(name.as_bytes()).is_some(),
            };
            if is_meant {
                wanted.arrive(at, &mut self.arrived);
            }
        }
    }

    /// Called at the end of a response that contains every resource of the type.
    pub(super) fn end_of_whole_response(&mut self, at: Moment) {
        for wanted in &mut self.wanted {
            if wanted.open.mark.presence == Presence::Gone && !wanted.in_response {
                wanted.arrive(at, &mut self.arrived);
            }
        }
    }
}

impl Wanted {
    fn new(id: MarkId, open: &Arc<OpenMark>) -> Self {
        Self { id, open: Arc::clone(open), in_resource: None, in_response: false, has_arrived: false }
    }

    fn arrive(&mut self, at: Moment, arrived: &mut Vec<(MarkId, Moment)>) {
        if !self.has_arrived {
            self.has_arrived = true;
            arrived.push((self.id, at));
        }
    }
}
