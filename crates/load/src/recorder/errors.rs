//! Errors by kind: of the window, and apart those before it.

use crate::error::ErrorKind;
use std::collections::BTreeMap;

/// Count per kind.
pub(super) type Counts = [u64; ErrorKind::ALL.len()];

/// No errors.
pub(super) const NONE: Counts = [0; ErrorKind::ALL.len()];

/// Errors of a worker.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    of_window: Counts,
    /// Errors of requests that were due before the window, whenever they failed, and of connections before it.
    before: Counts,
    /// Attempts to connect that failed at one address of a server before another was tried.
    fallbacks: Counts,
    /// The schedule has started.
    is_started: bool,
}

impl Errors {
    pub(super) fn new() -> Self {
        Self { of_window: NONE, before: NONE, fallbacks: NONE, is_started: false }
    }

    /// The schedule starts: what has failed until now lies before the window. If it never starts, there is no window that it
    /// could lie before.
    pub(super) fn start(&mut self) {
        add(&mut self.before, &self.of_window);
        self.of_window.fill(0);
        self.is_started = true;
    }

    pub(super) fn count(&mut self, kind: ErrorKind, is_before: bool) {
        let counts = if is_before && self.is_started { &mut self.before } else { &mut self.of_window };
        counts[kind as usize] += 1;
    }

    /// Counts an attempt that failed at one address of a server, which has others.
    pub(super) fn fell_back(&mut self, kind: ErrorKind) {
        self.fallbacks[kind as usize] += 1;
    }

    /// The commonest failure at a server's first addresses, and how many attempts failed there.
    pub(super) fn fallbacks(&self) -> Option<(ErrorKind, u64)> {
        let seen = ErrorKind::ALL.into_iter().filter(|kind| self.fallbacks[*kind as usize] > 0);
        let commonest = seen.max_by_key(|kind| self.fallbacks[*kind as usize])?;
        Some((commonest, self.fallbacks.iter().sum()))
    }

    pub(super) fn merge(&mut self, other: &Self) {
        add(&mut self.of_window, &other.of_window);
        add(&mut self.before, &other.before);
        add(&mut self.fallbacks, &other.fallbacks);
    }

    /// Errors of the window in the form of the result schema.
    pub(super) fn of_window(&self) -> BTreeMap<String, u64> {
        by_name(&self.of_window)
    }

    /// Errors before the window in the form of the result schema.
    pub(super) fn before_window(&self) -> BTreeMap<String, u64> {
        by_name(&self.before)
    }
}

/// The counts in the form of the result schema.
pub(super) fn by_name(counts: &Counts) -> BTreeMap<String, u64> {
    let seen = ErrorKind::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    seen.map(|(kind, count)| (kind.name().to_owned(), *count)).collect()
}

/// Adds counts.
pub(super) fn add(sums: &mut Counts, counts: &Counts) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}
