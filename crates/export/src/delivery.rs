//! Delivers the snapshots of a queue to one receiver, in order, until the last.

use crate::batch::{Frame, KnownSeries};
use crate::client::{Client, Post, Reply};
use crate::destination::{Protocol, REMOTE_WRITE_VERSION};
use crate::metric::Labels;
use crate::queue::{Queue, Snapshot};
use crate::retry::{Backoff, Meaning, meaning, retry_after};
use crate::{otlp, remote_write};
use futures_util::future::{Either, select};
use http::header::{CONTENT_ENCODING, HeaderName};
use remote_write::Version;
use results::ExportRecord;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const SAMPLES_WRITTEN: HeaderName = HeaderName::from_static("x-prometheus-remote-write-samples-written");
const HISTOGRAMS_WRITTEN: HeaderName =
    HeaderName::from_static("x-prometheus-remote-write-histograms-written");

/// Pause between attempts after the last snapshot.
const CLOSING_PAUSE: Duration = Duration::from_millis(200);
/// Maximum length of a cause: some receivers explain a rejection at length.
const MAX_CAUSE_CHARACTERS: usize = 200;
/// Maximum number of causes that are counted separately.
const MAX_CAUSES: usize = 20;

/// Called once, when a receiver fails for the first time.
pub(crate) type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// Delivery statistics of one receiver, shared with the exporter, which reads them at the end.
pub(crate) struct Account {
    record: Mutex<ExportRecord>,
    protocol: Protocol,
    /// `None` after the first failure was reported.
    notice: Mutex<Option<Notice>>,
}

impl Account {
    pub(crate) fn new(shown: String, protocol: Protocol, notice: Notice) -> Self {
        let record =
            ExportRecord { to: shown, protocol: protocol.name().to_owned(), ..ExportRecord::default() };
        Self { record: Mutex::new(record), protocol, notice: Mutex::new(Some(notice)) }
    }

    pub(crate) fn record(&self) -> ExportRecord {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut ExportRecord)) {
        change(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts a failed request, and reports the first one.
    fn failed(&self, cause: &str) {
        self.change(|record| {
            record.failed_requests += 1;
            let known = record.errors.contains_key(cause) || record.errors.len() < MAX_CAUSES;
            let cause = if known { cause } else { "other" };
            *record.errors.entry(cause.to_owned()).or_default() += 1;
        });
        self.notify(&format!(
            "{cause}; measuring goes on, and what cannot be delivered is dropped and counted"
        ));
    }

    /// Reports undelivered snapshots, unless a failure has been reported already.
    pub(crate) fn notify_dropped(&self) {
        let record = self.record();
        if record.dropped() > 0 {
            self.notify(&format!(
                "{} of {} snapshots were not delivered: no response in time",
                record.dropped(),
                record.snapshots
            ));
        }
    }

    fn notify(&self, text: &str) {
        let notice = self.notice.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(notice) = notice {
            notice(&format!("{} to {}: {text}", self.protocol.describe(), self.record().to));
        }
    }
}

/// Delivery to one receiver, with the series that were sent to it.
pub(crate) struct Delivery {
    pub client: Client,
    pub protocol: Protocol,
    pub labels: Labels,
    pub queue: Arc<Queue>,
    pub account: Arc<Account>,
    pub known: KnownSeries,
}

/// Outcome of an attempt.
enum Attempt {
    /// Number of samples that were accepted.
    Delivered(u64),
    Refused(String),
    Failed(String, Option<Duration>),
}

impl Delivery {
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::default();
        while let Some(batch) = self.queue.take().await {
            let (frames, known) = self.known.clone().frames(&batch);
            let has_points = frames.iter().any(|frame| frame.families.iter().next().is_some());
            // No series was ever sent, so none has to end.
            if !has_points {
                continue;
            }
            match self.attempt(&frames).await {
                Attempt::Delivered(samples) => {
                    backoff = Backoff::default();
                    self.known = known;
                    self.account.change(|record| {
                        record.delivered += counted(&batch);
                        record.samples += samples;
                    });
                }
                Attempt::Refused(cause) => {
                    // Some of the samples may have been accepted, so all of these series must be ended later.
                    self.known = known;
                    self.account.failed(&cause);
                }
                Attempt::Failed(cause, asked_for) => {
                    self.account.failed(&cause);
                    self.queue.restore(batch);
                    self.pause(backoff.next(asked_for), asked_for.is_some()).await;
                }
            }
        }
    }

    /// Pauses before the next attempt. After the last snapshot there is no time for a long pause, unless the
    /// receiver asked for one.
    async fn pause(&self, pause: Duration, is_asked_for: bool) {
        let pause = tokio::time::sleep(pause);
        if is_asked_for {
            pause.await;
        } else if let Either::Right(_) = select(pin!(pause), pin!(self.queue.closed())).await {
            tokio::time::sleep(CLOSING_PAUSE).await;
        }
    }

    async fn attempt(&self, frames: &[Frame]) -> Attempt {
        match remote_write::form(self.protocol) {
            Some((version, form)) => {
                let encoded = remote_write::encode(version, form, frames, &self.labels);
                let headers = vec![(CONTENT_ENCODING, "snappy"), (REMOTE_WRITE_VERSION, encoded.version)];
                let (samples, histograms) = (encoded.samples, encoded.histograms);
                let post = Post { body: encoded.body.into(), content_type: encoded.content_type, headers };
                let reply = self.client.post(&post).await;
                judged(reply, false, |reply| match version {
                    Version::One => Ok(samples + histograms),
                    Version::Two => written(reply, samples, histograms),
                })
            }
            None => {
                let otlp::Encoded { body, points } = otlp::encode(frames, &self.labels);
                let post = Post { body: body.into(), content_type: otlp::CONTENT_TYPE, headers: Vec::new() };
                judged(self.client.post(&post).await, true, |reply| match otlp::rejected(&reply.body) {
                    Some((rejected, why)) => Err(format!("{rejected} of {points} points rejected: {why}")),
                    None => Ok(points),
                })
            }
        }
    }
}

/// Number of snapshots in a batch, without the last one, which only ends series.
fn counted(batch: &[Arc<Snapshot>]) -> u64 {
    batch.iter().filter(|snapshot| !snapshot.is_last).count() as u64
}

/// `taken` returns the number of accepted samples of a request with a success status, or the reason why they
/// were rejected anyway.
fn judged(
    reply: Result<Reply, String>,
    is_otlp: bool,
    taken: impl FnOnce(&Reply) -> Result<u64, String>,
) -> Attempt {
    let reply = match reply {
        Ok(reply) => reply,
        Err(cause) => return Attempt::Failed(cause, None),
    };
    match meaning(reply.status, is_otlp) {
        Meaning::Delivered => match taken(&reply) {
            Ok(samples) => Attempt::Delivered(samples),
            Err(cause) => Attempt::Refused(shortened(&cause)),
        },
        Meaning::Retry => {
            let asked_for = retry_after(&reply.headers, jiff::Timestamp::now());
            Attempt::Failed(format!("HTTP {}", reply.status.as_u16()), asked_for)
        }
        Meaning::Refused => Attempt::Refused(refusal(&reply)),
    }
}

/// Example: `HTTP 400: out of order sample`.
fn refusal(reply: &Reply) -> String {
    let status = reply.status.as_u16();
    let text = String::from_utf8_lossy(&reply.body);
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() && !line.starts_with('<') => {
            shortened(&format!("HTTP {status}: {line}"))
        }
        _ => format!("HTTP {status}"),
    }
}

/// Cause as a server explains it, without control characters.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(MAX_CAUSE_CHARACTERS).collect()
}

/// Number of samples that a 2.0 receiver reports as written. A receiver that reports nothing has parsed the
/// request as version 1.0, in which it is empty.
fn written(reply: &Reply, samples: u64, histograms: u64) -> Result<u64, String> {
    let count = |name: &HeaderName| reply.headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let (samples_written, histograms_written) = (count(&SAMPLES_WRITTEN), count(&HISTOGRAMS_WRITTEN));
    if samples_written.is_none() && histograms_written.is_none() {
        return Err("it does not understand version 2: use --remote-write-version 1".to_owned());
    }
    let written = samples_written.unwrap_or(0) + histograms_written.unwrap_or(0);
    if written < samples + histograms {
        return Err(format!("only {written} of {} samples were written", samples + histograms));
    }
    Ok(samples + histograms)
}
