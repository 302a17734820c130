//! A callee and a call to it, whatever the protocol.

use crate::node::application::{Application, CalleeSpec};
use crate::node::passed_fields::PassedFields;
use crate::node::tally::{CallTally, WorkerTally};
use http::Uri;
use std::sync::Arc;

/// Content of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingCall<'c> {
    pub endpoint: &'c str,
    pub request_bytes: u64,
    pub passed: &'c PassedFields,
    /// The same call has failed before.
    pub repeats: bool,
}

/// A callee of one worker.
pub(super) struct Callee {
    pub application: Arc<Application>,
    pub tally: Arc<WorkerTally>,
    /// Position among the application's callees.
    pub index: usize,
}

impl Callee {
    pub(super) fn spec(&self) -> &CalleeSpec {
        &self.application.callees[self.index]
    }

    pub(super) fn calls(&self) -> &CallTally {
        &self.tally.calls[self.index]
    }

    /// Target of an HTTP request.
    pub(super) fn target(&self, call: &OutgoingCall<'_>) -> &Uri {
        let target = self.spec().targets.iter().find(|(endpoint, _)| endpoint == call.endpoint);
        &target.expect("scripts name no other endpoint").1
    }
}
