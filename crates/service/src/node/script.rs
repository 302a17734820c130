//! Scripts: runs the steps of a request, in sequence and in parallel.

use super::client::OutgoingCall;
use super::failure::StepFailure;
use super::passed_fields::PassedFields;
use super::tally::Outcome;
use super::worker::Worker;
use crate::compute::compute;
use experiment::topology::script::{CallStep, Endpoint, Step};
use futures_util::future::{Either, LocalBoxFuture, join_all, select};
use std::cell::RefCell;
use std::hint;
use std::pin::pin;
use std::rc::Rc;

/// Memory is held in pages of this size, each touched.
const PAGE_BYTES: usize = 4096;

/// The result of a script, from which the response is built.
#[derive(Debug)]
pub(crate) struct Answer {
    pub outcome: Outcome,
    pub response_bytes: u64,
    /// Why a step failed.
    pub reason: String,
    /// Memory held until the response.
    pub held: Vec<Vec<u8>>,
}

/// Runs the script of an endpoint.
pub(crate) async fn execute(worker: &Rc<Worker>, endpoint: &Endpoint, passed: &PassedFields) -> Answer {
    let execution = Execution { worker, passed, held: RefCell::default() };
    let ended = execution.sequence(&endpoint.steps).await;
    let response_bytes = worker.amount(&endpoint.response_bytes) as u64;
    let (outcome, reason) = match ended {
        Err(StepFailure(reason)) => (Outcome::CalleeFailed, reason),
        Ok(()) if worker.happens(endpoint.error_fraction) => (Outcome::Injected, String::new()),
        Ok(()) => (Outcome::Answered, String::new()),
    };
    Answer { outcome, response_bytes, reason, held: execution.held.into_inner() }
}

struct Execution<'w> {
    worker: &'w Rc<Worker>,
    passed: &'w PassedFields,
    held: RefCell<Vec<Vec<u8>>>,
}

impl Execution<'_> {
    async fn sequence(&self, steps: &[Step]) -> Result<(), StepFailure> {
        for step in steps {
            self.step(step).await?;
        }
        Ok(())
    }

    /// Boxed, because steps contain steps.
    fn step<'s>(&'s self, step: &'s Step) -> LocalBoxFuture<'s, Result<(), StepFailure>> {
        match step {
            Step::Call(call) => Box::pin(self.call(call)),
            Step::Query(query) => Box::pin(async {
                if self.worker.happens(query.probability) {
                    self.worker.databases.run(query, self.worker.uniform()).await?;
                }
                Ok(())
            }),
            // Every branch runs to its end, so that the requests sent do not depend on which one failed
            // first.
            Step::Parallel(steps) => Box::pin(async {
                let ended = join_all(steps.iter().map(|step| self.step(step))).await;
                ended.into_iter().collect()
            }),
            Step::Sequence(steps) => Box::pin(self.sequence(steps)),
            Step::Sleep(duration) => Box::pin(async {
                self.worker.timer.sleep(self.worker.time(duration)).await;
                Ok(())
            }),
            Step::Compute(duration) => Box::pin(async {
                compute(self.worker.time(duration));
                Ok(())
            }),
            Step::Hold(bytes) => Box::pin(async {
                self.held.borrow_mut().push(touched(self.worker.amount(bytes) as usize));
                Ok(())
            }),
        }
    }

    async fn call(&self, step: &CallStep) -> Result<(), StepFailure> {
        if !self.worker.happens(step.probability) {
            return Ok(());
        }
        let client = self.worker.client(step.to);
        let mut call = OutgoingCall {
            endpoint: &step.endpoint,
            request_bytes: self.worker.amount(&step.request_bytes) as u64,
            passed: self.passed,
            repeats: false,
        };
        let mut attempts_left = step.retries;
        loop {
            // The runtime's own timers would wake its loop once per call, for nothing.
            let timeout = self.worker.timer.sleep(step.timeout);
            let failure = match select(pin!(client.call(&call)), timeout).await {
                Either::Left((Ok(()), _)) => return Ok(()),
                Either::Left((Err(failure), _)) => failure,
                Either::Right(_) => StepFailure(format!("no response within {:?}", step.timeout)),
            };
            if attempts_left == 0 {
                return Err(StepFailure(format!("{}: {}", client.name(), failure.0)));
            }
            attempts_left -= 1;
            call.repeats = true;
        }
    }
}

/// Allocates memory and touches every page.
fn touched(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    memory.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = hint::black_box(1));
    memory
}
