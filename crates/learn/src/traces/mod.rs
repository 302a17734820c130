//! Traces of OpenTelemetry, Jaeger and Zipkin: order of calls, parallel or in sequence, calls per request, retries, own times.
//!
//! [`Reader`] streams files: `formats` reads spans, whose traces stay open until enough others came; `graph` makes requests and
//! calls of a trace's spans; `tally` adds them up by service, endpoint and call, `relations` by pair of calls. `services` makes a
//! mesh of them if there are no metrics, and `merge` what scripts need: for each service its endpoints, with slots for calls and
//! their order (`order`).

mod formats;
mod graph;
mod merge;
mod order;
mod relations;
mod services;
mod span;
mod tally;
mod text;

pub(crate) use merge::{Slot, Traced, TracedEndpoint, TracedService};
pub(crate) use order::Order;
pub(crate) use services::mesh_of;
pub(crate) use tally::Tally;

use crate::one_line;
use crate::parties::TooMuch;
use crate::telemetry::Telemetry;
use formats::{Document, Raw};
use serde::de::DeserializeSeed as _;
use span::Span;
use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Read};

/// Maximum number of spans of a trace.
const MAX_SPANS_OF_TRACE: usize = 10_000;
/// Maximum number of spans in memory: 100 MB.
const MAX_OPEN_SPANS: usize = 300_000;
/// Number of completed traces that are remembered, twice: late spans of earlier ones begin a new trace.
const MAX_REMEMBERED: usize = 2_000_000;

/// Traces that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Not the JSON of traces.
    #[error("not traces as OTLP, Jaeger or Zipkin write them in JSON: {0}")]
    Json(String),
    /// There is nothing.
    #[error("no trace: the input is empty")]
    Empty,
    /// More than a mesh has.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
}

/// Contents of traces, and the numbers of what is left out.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// Share of requests that is traced, if it is known.
    pub(crate) sampling: Option<f64>,
    pub(crate) spans: u64,
    pub(crate) complete: u64,
    /// Traces with spans whose parent is missing, or that are each other's parents.
    pub(crate) incomplete: u64,
    /// Traces with more spans than a trace may have.
    pub(crate) too_large: u64,
    /// Spans that came long after the others of their trace.
    pub(crate) late_spans: u64,
    /// Spans without a time, an identity or a service, and spans that end before they start.
    pub(crate) unusable_spans: u64,
    /// Files whose rest, from the damage on, is left out.
    pub(crate) damaged_files: u64,
    /// Start of the first and end of the last span, nanoseconds since 1970.
    pub(crate) period: Option<(i64, i64)>,
    pub(crate) tally: Tally,
}

/// A trace of which spans may follow.
#[derive(Debug, Default)]
struct Open {
    spans: Vec<Span>,
    touched: u64,
    is_too_large: bool,
}

/// Reads traces into telemetry; call [`finish`](Reader::finish) after the last input.
#[derive(Debug)]
pub struct Reader {
    telemetry: Telemetry,
    traces: Traces,
    open: HashMap<u128, Open>,
    open_spans: usize,
    touches: u64,
    /// Completed traces, the later and the earlier.
    completed: [HashSet<u64>; 2],
}

impl Reader {
    /// Reader into telemetry. The share of requests that is traced gives rates if there are no metrics.
    #[must_use]
    pub fn new(telemetry: Telemetry, sampling: Option<f64>) -> Self {
        Self {
            telemetry,
            traces: Traces { sampling, ..Traces::default() },
            open: HashMap::new(),
            open_spans: 0,
            touches: 0,
            completed: [HashSet::new(), HashSet::new()],
        }
    }

    /// Reads a file: one or more documents, one after the other, in bounded memory.
    ///
    /// # Errors
    /// Returns an error if the input is damaged, empty or of another format, or has more than a mesh has.
    pub fn read(&mut self, input: impl Read) -> Result<(), TraceError> {
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(text::Limited::new(input)));
        let mut is_empty = true;
        loop {
            let mut failed = None;
            let mut sink = |raw: Raw| self.add(&raw).map_err(|error| failed = Some(error)).is_ok();
            let mut document = Document::new(&mut sink);
            let read = document.seed().deserialize(&mut json);
            let begun = document.begun;
            match (read, failed) {
                (_, Some(error)) => return Err(error.into()),
                (Ok(()), None) => is_empty = false,
                (Err(error), None) if error.is_eof() && !begun => break,
                (Err(error), None) => return Err(TraceError::Json(one_line(&error))),
            }
        }
        if is_empty { Err(TraceError::Empty) } else { Ok(()) }
    }

    /// Counts a file that [`read`](Self::read) has found damaged: what was read before the damage is kept.
    pub fn leave_out_rest(&mut self) {
        self.traces.damaged_files += 1;
    }

    /// The telemetry with all traces.
    ///
    /// # Errors
    /// Returns an error if they have more than a mesh has.
    pub fn finish(mut self) -> Result<Telemetry, TraceError> {
        self.complete(u64::MAX)?;
        if self.telemetry.pairs.is_empty()
            && let Some((start, end)) = self.traces.period
        {
            self.telemetry.period_s = (end - start) as f64 / 1e9;
            self.telemetry.at = end as f64 / 1e9;
        }
        self.telemetry.traces = Some(Box::new(self.traces));
        Ok(self.telemetry)
    }

    fn add(&mut self, raw: &Raw) -> Result<(), TooMuch> {
        self.traces.spans += 1;
        if raw.start <= 0 || raw.end < raw.start || raw.id == 0 {
            self.traces.unusable_spans += 1;
            return Ok(());
        }
        if self.completed.iter().any(|traces| traces.contains(&folded(raw.trace))) {
            self.traces.late_spans += 1;
            return Ok(());
        }
        let span = Span::new(raw, &mut self.telemetry.names)?;
        if !span.party.is_known() {
            self.traces.unusable_spans += 1;
            return Ok(());
        }
        let (start, end) = self.traces.period.unwrap_or((span.start, span.end));
        self.traces.period = Some((start.min(span.start), end.max(span.end)));
        let open = self.open.entry(raw.trace).or_default();
        self.touches += 1;
        open.touched = self.touches;
        if open.spans.len() == MAX_SPANS_OF_TRACE {
            open.is_too_large = true;
            self.open_spans -= std::mem::take(&mut open.spans).len();
        }
        if !open.is_too_large {
            open.spans.push(span);
            self.open_spans += 1;
        }
        if self.open_spans >= MAX_OPEN_SPANS || self.open.len() >= MAX_OPEN_SPANS {
            // The half of the traces that waits longest for spans.
            let mut touched: Vec<u64> = self.open.values().map(|open| open.touched).collect();
            let middle = touched.len() / 2;
            let before = *touched.select_nth_unstable(middle).1;
            self.complete(before)?;
        }
        Ok(())
    }

    /// Completes traces whose last span came no later.
    fn complete(&mut self, before: u64) -> Result<(), TooMuch> {
        let mut completed: Vec<(u128, Open)> =
            self.open.extract_if(|_, open| open.touched <= before).collect();
        completed.sort_by_key(|(_, open)| open.touched);
        for (id, open) in completed {
            self.open_spans -= open.spans.len();
            if self.completed[0].len() >= MAX_REMEMBERED {
                self.completed[1] = std::mem::take(&mut self.completed[0]);
            }
            self.completed[0].insert(folded(id));
            if open.is_too_large {
                self.traces.too_large += 1;
                continue;
            }
            match graph::Graph::new(&open.spans, &mut self.traces.tally.names) {
                Some(graph) => {
                    self.traces.complete += 1;
                    self.traces.tally.add(&graph)?;
                }
                None => self.traces.incomplete += 1,
            }
        }
        Ok(())
    }
}

/// Half of a trace's identity, which is random.
fn folded(trace: u128) -> u64 {
    (trace ^ (trace >> 64)) as u64
}
