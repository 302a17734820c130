//! Phases of the time under changes, with what istiod used and sent in each.

use super::metrics::MetricsSampler;
use fleet::{Fleet, FleetStatus};
use results::FleetPhase;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records where one kind of change ends and another begins.
pub(super) struct PhaseRecorder<'a> {
    fleet: &'a Fleet,
    sampler: &'a MetricsSampler,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<OpenPhase>,
    closed: Vec<FleetPhase>,
}

struct OpenPhase {
    kind: String,
    since: Moment,
}

/// Totals since the start of the fleet.
struct Moment {
    status: FleetStatus,
    istiod_cpu_s: Option<f64>,
}

impl<'a> PhaseRecorder<'a> {
    pub fn new(fleet: &'a Fleet, sampler: &'a MetricsSampler) -> Self {
        Self { fleet, sampler, state: Mutex::default() }
    }

    /// Changes of this kind follow. An open phase of the same kind continues, any other ends.
    pub fn begin(&self, kind: &str) {
        let mut state = self.state();
        if state.open.as_ref().is_some_and(|open| open.kind == kind) {
            return;
        }
        let now = self.now();
        state.close(&now);
        state.open = Some(OpenPhase { kind: kind.to_owned(), since: now });
    }

    pub fn end(&self) {
        let mut state = self.state();
        if state.open.is_some() {
            let now = self.now();
            state.close(&now);
        }
    }

    pub fn finish(self) -> Vec<FleetPhase> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).closed
    }

    fn now(&self) -> Moment {
        let istiod_cpu_s = self.sampler.istiods_cpu_s();
        Moment { status: self.fleet.status(), istiod_cpu_s }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, now: &Moment) {
        let Some(OpenPhase { kind, since }) = self.open.take() else { return };
        let cpu_s = now.istiod_cpu_s.zip(since.istiod_cpu_s).map(|(now, then)| (now - then).max(0.0));
        self.closed.push(FleetPhase {
            kind,
            at: since.status.seconds,
            duration_s: now.status.seconds - since.status.seconds,
            istiod_cpu_s: cpu_s,
            pushes: now.status.pushes - since.status.pushes,
            bytes: now.status.bytes - since.status.bytes,
        });
    }
}
