//! Sessions that began in the window, and how they ended.

use crate::clock::Nanos;
use crate::target::SessionKind;
use results::{SessionCounts, SessionKindResult, SessionResults};

/// End of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SessionEnd {
    pub(crate) kind: usize,
    pub(crate) arrived: Nanos,
    /// The step that failed; `None`: all have been made.
    pub(crate) failed_at: Option<usize>,
}

/// One record per kind of session; empty without sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions(Vec<SessionRecord>);

#[derive(Clone, Debug)]
struct SessionRecord {
    started: u64,
    completed: u64,
    /// Sessions that ended with each step, since it failed.
    failed_at: Vec<u64>,
}

impl Sessions {
    pub(super) fn new(kinds: &[SessionKind]) -> Self {
        let record = |kind: &SessionKind| SessionRecord {
            started: 0,
            completed: 0,
            failed_at: vec![0; kind.steps.len()],
        };
        Self(kinds.iter().map(record).collect())
    }

    pub(super) fn arrived(&mut self, kind: usize) {
        self.0[kind].started += 1;
    }

    pub(super) fn ended(&mut self, SessionEnd { kind, failed_at, .. }: SessionEnd) {
        let record = &mut self.0[kind];
        match failed_at {
            Some(step) => record.failed_at[step] += 1,
            None => record.completed += 1,
        }
    }

    /// The recorder that sums up all workers begins without records.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.started += theirs.started;
            mine.completed += theirs.completed;
            for (mine, theirs) in mine.failed_at.iter_mut().zip(&theirs.failed_at) {
                *mine += theirs;
            }
        }
    }

    /// In the form of the result schema; `None` without sessions. `names`: of the kinds of requests of all steps.
    pub(super) fn results(&self, kinds: &[SessionKind], names: &[&str]) -> Option<SessionResults> {
        let mut names = names.iter();
        let mut result = |(kind, record): (&SessionKind, &SessionRecord)| {
            let counts = record.failed_at.iter().map(|count| (names.next().copied().unwrap_or(""), *count));
            let failed_at = counts.filter(|(_, count)| *count > 0);
            let failed_at = failed_at.map(|(name, count)| (name.to_owned(), count)).collect();
            SessionKindResult {
                name: kind.name.clone(),
                weight: kind.weight,
                counts: SessionCounts::new(record.started, record.completed, failed_at),
            }
        };
        let kinds: Vec<SessionKindResult> = kinds.iter().zip(&self.0).map(&mut result).collect();
        (!kinds.is_empty()).then(|| SessionResults::new(kinds))
    }
}
