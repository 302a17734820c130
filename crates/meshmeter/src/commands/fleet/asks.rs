//! Actions that the environment performs: requested by an event, answered by a line on standard input.

use super::progress::FleetReporter;
use crate::failure::Failure;
use results::{FleetAnswer, FleetAsk, FleetProgress};
use std::io::{self, BufRead as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An istiod with thousands of services takes a minute to start.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Link to the environment that started the fleet; `None` if the fleet was started by a user.
pub struct EnvironmentLink(Option<Mutex<Receiver<String>>>);

impl EnvironmentLink {
    /// Reads the answers on a separate thread, which ends with standard input.
    pub fn open(answers: bool) -> Result<Self, Failure> {
        if !answers {
            return Ok(Self(None));
        }
        let (sender, lines) = channel();
        let read = move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().name("answers".to_owned()).spawn(read);
        started.map_err(|error| Failure::environment(&error).about("wait for the environment's answers"))?;
        Ok(Self(Some(Mutex::new(lines))))
    }

    /// Requests an action and waits for the answer. The error says, for people, why it was not done.
    pub fn ask(
        &self,
        ask: FleetAsk,
        reporter: &FleetReporter,
        stop: &AtomicBool,
    ) -> Result<FleetAnswer, String> {
        let answers = self.0.as_ref().ok_or("only a lab can do that")?;
        let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        reporter.report(&FleetProgress::Ask(ask));
        let give_up_at = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let line = match answers.recv_timeout(POLL_INTERVAL) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the environment ended without an answer".to_owned());
                }
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err("interrupted".to_owned());
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= give_up_at => {
                    return Err(format!(
                        "no answer of the environment within {} s",
                        ANSWER_TIMEOUT.as_secs()
                    ));
                }
                Err(RecvTimeoutError::Timeout) => continue,
            };
            let answer = FleetAnswer::from_json(&line)
                .map_err(|error| format!("read the environment's answer: {error}"))?;
            return match answer.failure {
                Some(failure) => Err(failure),
                None => Ok(answer),
            };
        }
    }
}
