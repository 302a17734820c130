//! Steps of sessions: which request is due next, and what its end means for its session.

use super::Worker;
use super::sessions::{After, StepOutcome};
use crate::clock::Nanos;
use crate::error::ErrorKind;
use crate::network::Network;
use crate::protocol::{Codec, KeptResponse};
use crate::recorder::InFlightRequest;
use crate::target::{Chosen, SessionStep};

impl<C: Codec, N: Network> Worker<'_, C, N> {
    /// When the next request is due.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        let arrives = self.schedule.next_due();
        self.sessions.as_ref().map_or(arrives, |sessions| sessions.next_due(arrives))
    }

    /// Takes the request that is due at this time.
    pub(super) fn take_next(&mut self, due: Nanos) -> Chosen {
        let selector = &mut self.selector;
        let Some(sessions) = &mut self.sessions else {
            self.schedule.take();
            return selector.choose();
        };
        if let Some(step) = sessions.take_step(due, selector) {
            return step;
        }
        self.schedule.take();
        let first = selector.choose();
        let chosen = sessions.begin(due, first, selector);
        self.recorder.session_arrived(sessions.kind_of(chosen.choice), due);
        chosen
    }

    /// Takes cookies and values from the response to a step. Returns the error if it lacks a value.
    pub(super) fn receive_for_session(
        &mut self,
        flight: &InFlightRequest,
        response: Option<&KeptResponse>,
    ) -> Option<ErrorKind> {
        let (Some(sessions), Some(step), Some(response)) = (&mut self.sessions, flight.step, response) else {
            return None;
        };
        let (server, request) = self.choices[flight.url].options[sessions.option_of(step.session)];
        let host = self.targets[server].requests[request].host();
        (!sessions.receive(step.session, response, host)).then_some(ErrorKind::ExtractFailed)
    }

    /// A request has ended: its session, or the client of a closed loop, goes on.
    pub(super) fn request_over(&mut self, step: Option<SessionStep>, outcome: StepOutcome, at: Nanos) {
        if !self.session_goes_on(step, outcome, at) {
            self.schedule.request_ended(at);
        }
    }

    /// A request has ended. Returns true if another one follows in its session, or would after the end of the run: its client thinks
    /// until then.
    pub(super) fn session_goes_on(
        &mut self,
        step: Option<SessionStep>,
        outcome: StepOutcome,
        at: Nanos,
    ) -> bool {
        let (Some(step), Some(sessions)) = (step, &mut self.sessions) else { return false };
        match sessions.step_ended(step.session, outcome, at) {
            After::GoesOn | After::Cut => true,
            After::Ended(end) => {
                self.recorder.session_ended(end);
                false
            }
        }
    }
}
