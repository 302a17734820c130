//! Saved or fetched answers of Prometheus' HTTP API.
//!
//! [`queries`] has what is sent. [`read`] takes answers one after the other, in any order: of those queries, whose results name
//! their metric and period in the label `meshmeter`, and matrices of raw samples (`istio_requests_total[1h]`), whose counters may
//! have been reset. `answer` streams the JSON, `samples` adds up a counter. `istio`, `linkerd` and `hubble` know
//! metrics and labels of a mesh (`vocabulary`), `cadvisor` those of containers.

mod answer;
mod cadvisor;
mod hubble;
mod istio;
mod linkerd;
mod samples;
mod vocabulary;

pub use istio::{Query, queries};

use crate::one_line;
use crate::parties::TooMuch;
use crate::telemetry::Telemetry;
use answer::{Answers, Remarks, Row};
use istio::Reading;
use results::units::shortened;
use serde::de::DeserializeSeed as _;
use std::io::Read;

/// Answers that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not the JSON of an answer.
    #[error("not an answer of Prometheus' HTTP API: {0}")]
    Json(String),
    /// Prometheus rejected the query.
    #[error("Prometheus answered with an error: {0}")]
    Rejected(String),
    /// There is not one answer.
    #[error("no answer: the input is empty")]
    Empty,
    /// More than a mesh has.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
    /// Answers of different periods.
    #[error("the answers are of different periods: {0} s and {1} s")]
    Periods(f64, f64),
    /// Answers of different times.
    #[error("the answers are of different times: {0} and {1} seconds since 1970")]
    Times(f64, f64),
    /// An answer that is given a second time, or again of a period that overlaps.
    #[error("a series of {0} is there twice: it would count twice")]
    Twice(&'static str),
}

/// Reads answers into telemetry; call [`finish`](Reader::finish) after the last input.
#[derive(Debug)]
pub struct Reader {
    reading: Reading,
}

impl Reader {
    /// Reader into empty telemetry.
    #[must_use]
    pub fn new(telemetry: Telemetry) -> Self {
        Self { reading: Reading::new(telemetry) }
    }

    /// Reads one or more answers, one after the other. Memory is bounded by the number of pairs of workloads.
    ///
    /// # Errors
    /// Returns an error if the input is damaged or empty, or has more than a mesh has.
    pub fn read(&mut self, input: impl Read) -> Result<(), AnswerError> {
        let mut json = serde_json::Deserializer::from_reader(input);
        let mut answers = 0;
        loop {
            let (mut failed, mut begun) = (None, false);
            let mut sink = |row: Row| match self.reading.row(&row) {
                Ok(()) => true,
                Err(error) => {
                    failed = Some(error);
                    false
                }
            };
            let answer = Answers { sink: &mut sink, begun: &mut begun }.deserialize(&mut json);
            match (answer, failed) {
                (_, Some(error)) => return Err(error),
                (Ok(Remarks { error: Some(error), .. }), None) => {
                    return Err(AnswerError::Rejected(shortened(&error)));
                }
                (Ok(remarks), None) => {
                    answers += 1;
                    self.reading.warn(remarks.warnings);
                }
                (Err(error), None) if error.is_eof() && !begun => break,
                (Err(error), None) => return Err(AnswerError::Json(one_line(&error))),
            }
        }
        if answers == 0 { Err(AnswerError::Empty) } else { Ok(()) }
    }

    /// The telemetry of all answers.
    #[must_use]
    pub fn finish(self) -> Telemetry {
        self.reading.finish()
    }
}
