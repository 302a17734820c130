//! State that a fleet's threads share: counters, the timeline, and the wakeup of waits.

use results::FleetEvent;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of events in the timeline. Further ones are dropped: a control plane that breaks every
/// stream causes one per second.
const MAX_EVENTS: usize = 2000;
/// Kind of the event that marks the beginning of a change of the mesh.
const CHANGE: &str = "change";
/// A wait checks its condition at least this often, so that a missed signal cannot delay it further.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Counters updated by all threads.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connected: AtomicU64,
    pub(crate) complete: AtomicU64,
    pub(crate) pushes: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// State that a fleet's threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) started: Instant,
    pub(crate) counters: Counters,
    /// Number of connections that the fleet should have.
    pub(crate) wanted: u64,
    /// Index in `triggers` of the change that responses are counted for.
    pub(crate) trigger: AtomicUsize,
    triggers: Mutex<Vec<String>>,
    /// Awaited connections per change.
    waiting: Mutex<Vec<u64>>,
    changed: Condvar,
    interrupted: AtomicBool,
    events: Mutex<Vec<FleetEvent>>,
}

impl Shared {
    pub(crate) fn new(wanted: u64) -> Self {
        Self {
            started: Instant::now(),
            counters: Counters::default(),
            wanted,
            trigger: AtomicUsize::new(0),
            triggers: Mutex::new(vec!["connect".to_owned()]),
            waiting: Mutex::new(Vec::new()),
            changed: Condvar::new(),
            interrupted: AtomicBool::new(false),
            events: Mutex::new(Vec::new()),
        }
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.started).as_secs_f64()
    }

    /// Counts responses from now on for changes of this kind.
    pub(crate) fn set_trigger(&self, kind: &str) {
        let mut triggers = lock(&self.triggers);
        let place = triggers.iter().position(|trigger| trigger == kind).unwrap_or_else(|| {
            triggers.push(kind.to_owned());
            triggers.len() - 1
        });
        self.trigger.store(place, Relaxed);
    }

    pub(crate) fn triggers(&self) -> Vec<String> {
        lock(&self.triggers).clone()
    }

    /// Adds to the connections that await a change.
    pub(crate) fn expect(&self, change: usize, connections: u64) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() <= change {
            waiting.resize(change + 1, 0);
        }
        waiting[change] += connections;
    }

    /// Records that a change reached a connection.
    pub(crate) fn reached(&self, change: usize) {
        let mut waiting = lock(&self.waiting);
        let Some(left) = waiting.get_mut(change) else { return };
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.changed.notify_all();
        }
    }

    /// Number of connections that a change has not reached.
    pub(crate) fn waiting(&self, change: usize) -> u64 {
        lock(&self.waiting).get(change).copied().unwrap_or(0)
    }

    /// Wakes waits after a change in a proxy's state.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits for a condition. Returns true if it holds.
    pub(crate) fn wait(&self, deadline: Instant, mut holds: impl FnMut() -> bool) -> bool {
        loop {
            if holds() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_interrupted() {
                return false;
            }
            let guard = lock(&self.waiting);
            let waited = self.changed.wait_timeout(guard, left.min(POLL_INTERVAL));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Ends all current and future waits.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Relaxed);
        self.changed.notify_all();
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// Adds an event to the timeline.
    pub(crate) fn event(&self, at: Instant, kind: &str, detail: String) {
        self.add_event(FleetEvent { at: self.seconds(at), kind: kind.to_owned(), detail });
    }

    /// Adds the beginning of a change to the timeline, at most once per second and kind: churn must not crowd
    /// out other events.
    pub(crate) fn change_event(&self, at: Instant, kind: &str) {
        let mut events = lock(&self.events);
        let at = self.seconds(at);
        let is_known = |event: &FleetEvent| event.kind == CHANGE && event.detail == kind;
        let is_recent = events.iter().rev().take_while(|event| at - event.at < 1.0).any(is_known);
        if !is_recent && events.len() < MAX_EVENTS / 2 {
            events.push(FleetEvent { at, kind: CHANGE.to_owned(), detail: kind.to_owned() });
        }
    }

    pub(crate) fn add_event(&self, event: FleetEvent) {
        let mut events = lock(&self.events);
        if events.len() < MAX_EVENTS {
            events.push(event);
        }
    }

    /// The timeline, in order of time.
    pub(crate) fn events(&self) -> Vec<FleetEvent> {
        let mut events = lock(&self.events).clone();
        events.sort_by(|one, other| one.at.total_cmp(&other.at));
        events
    }
}

/// Ignores poisoning: a thread that panicked cannot have left a value half written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_leave_room_in_timeline() {
        let shared = Shared::new(1);
        let at = |ms| shared.started + Duration::from_millis(ms);
        for ms in (0..4000).step_by(100) {
            shared.change_event(at(ms), "churn");
        }
        shared.change_event(at(3950), "service-entry");
        assert_eq!(shared.events().len(), 5);
        (0..5000).for_each(|second| shared.change_event(at(second * 2000), "churn"));
        shared.event(at(0), "all-connected", String::new());
        assert_eq!(shared.events().len(), MAX_EVENTS / 2 + 1);
    }
}
