//! Sessions of a load: how many began, and how they ended.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sessions that arrived in the window and began.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionResults {
    /// Counts of all kinds together.
    #[serde(flatten)]
    pub counts: SessionCounts,
    /// Each kind of session of the traffic file, in its order.
    pub kinds: Vec<SessionKindResult>,
}

/// Sessions of one kind.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionKindResult {
    /// Name of the kind.
    pub name: String,
    /// Weight, of which its share is.
    pub weight: u32,
    /// Its counts.
    #[serde(flatten)]
    pub counts: SessionCounts,
}

/// Counts of sessions: `started` = `completed` + `failed` + `cut`.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionCounts {
    /// Sessions that began.
    pub started: u64,
    /// Sessions with all their steps.
    pub completed: u64,
    /// Sessions that ended with a step that failed.
    pub failed: u64,
    /// Sessions that had not come to their end when the window ended.
    pub cut: u64,
    /// Of those that failed, by the kind of request of the step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_at: BTreeMap<String, u64>,
}

impl SessionCounts {
    /// Counts of sessions of which these have come to their end.
    #[must_use]
    pub fn new(started: u64, completed: u64, failed_at: BTreeMap<String, u64>) -> Self {
        let failed = failed_at.values().sum();
        Self { started, completed, failed, cut: started.saturating_sub(completed + failed), failed_at }
    }

    /// Adds counts.
    pub fn add(&mut self, other: &Self) {
        self.started = self.started.saturating_add(other.started);
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.cut = self.cut.saturating_add(other.cut);
        for (step, count) in &other.failed_at {
            let sum = self.failed_at.entry(step.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

impl SessionResults {
    /// Sums up kinds.
    #[must_use]
    pub fn new(kinds: Vec<SessionKindResult>) -> Self {
        let mut counts = SessionCounts::default();
        kinds.iter().for_each(|kind| counts.add(&kind.counts));
        Self { counts, kinds }
    }

    /// The sum of the results of several generators.
    #[must_use]
    pub fn merged<'a>(results: impl Iterator<Item = &'a Self>) -> Self {
        let mut kinds: Vec<SessionKindResult> = Vec::new();
        for kind in results.flat_map(|result| &result.kinds) {
            match kinds.iter_mut().find(|known| known.name == kind.name) {
                Some(known) => known.counts.add(&kind.counts),
                None => kinds.push(kind.clone()),
            }
        }
        Self::new(kinds)
    }
}
