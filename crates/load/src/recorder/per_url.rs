//! Requests and response times of each URL or kind of request, when several are measured apart.

use super::errors::{self, Counts};
use crate::clock::Nanos;
use crate::error::ErrorKind;
use results::{LatencyHistogram, UrlResult};
use statistics::UnansweredWaits;

/// One record per URL; empty when URLs are not told apart.
#[derive(Clone, Debug, Default)]
pub(super) struct PerUrl(Vec<UrlRecord>);

#[derive(Clone, Debug)]
struct UrlRecord {
    sent: u64,
    unsent: u64,
    failed: u64,
    /// `None` until the first response: of hundreds of kinds, some may be rare.
    response_time: Option<Box<LatencyHistogram>>,
    unanswered_waits: UnansweredWaits,
    /// Responses by status: few in practice, so linear search is enough.
    statuses: Vec<(u16, u64)>,
    errors: Counts,
}

impl UrlRecord {
    fn status(&mut self, status: u16, responses: u64) {
        match self.statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += responses,
            None => self.statuses.push((status, responses)),
        }
    }
}

impl PerUrl {
    pub(super) fn new(urls: usize) -> Self {
        let record = UrlRecord {
            sent: 0,
            unsent: 0,
            failed: 0,
            response_time: None,
            unanswered_waits: UnansweredWaits::default(),
            statuses: Vec::new(),
            errors: errors::NONE,
        };
        Self(vec![record; urls])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn sent(&mut self, url: usize) {
        if let Some(record) = self.0.get_mut(url) {
            record.sent += 1;
        }
    }

    pub(super) fn unsent(&mut self, url: usize, waited: Nanos) {
        if let Some(record) = self.0.get_mut(url) {
            record.unsent += 1;
            record.unanswered_waits.record_ns(waited, 1);
        }
    }

    pub(super) fn completed(&mut self, url: usize, response_time: Nanos, status: u16) {
        if let Some(record) = self.0.get_mut(url) {
            record.status(status, 1);
            record.response_time.get_or_insert_default().record_ns(response_time);
        }
    }

    /// Counts the status of a response that failed a check.
    pub(super) fn status(&mut self, url: usize, status: u16) {
        if let Some(record) = self.0.get_mut(url) {
            record.status(status, 1);
        }
    }

    pub(super) fn failed(&mut self, url: usize, waited: Nanos, kind: ErrorKind) {
        if let Some(record) = self.0.get_mut(url) {
            record.failed += 1;
            record.errors[kind as usize] += 1;
            record.unanswered_waits.record_ns(waited, 1);
        }
    }

    /// The recorder that sums up all workers begins without records.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.sent += theirs.sent;
            mine.unsent += theirs.unsent;
            mine.failed += theirs.failed;
            if let Some(theirs) = &theirs.response_time {
                mine.response_time.get_or_insert_default().merge(theirs);
            }
            mine.unanswered_waits.merge(&theirs.unanswered_waits);
            theirs.statuses.iter().for_each(|(status, count)| mine.status(*status, *count));
            errors::add(&mut mine.errors, &theirs.errors);
        }
    }

    /// Failed requests, and those never sent, rank above all responses.
    pub(super) fn results(&self, urls: &[String]) -> Vec<UrlResult> {
        let none = LatencyHistogram::new();
        let result = |(url, record): (&String, &UrlRecord)| {
            let (times, waits) = (record.response_time.as_deref().unwrap_or(&none), &record.unanswered_waits);
            // 0 means a response of a protocol without statuses.
            let statuses = record.statuses.iter().filter(|(status, _)| *status > 0);
            UrlResult {
                url: url.clone(),
                sent: record.sent,
                unsent: record.unsent,
                completed: times.count(),
                failed: record.failed,
                response_time_us: times.summary_with(waits.count()),
                censored_above_us: waits.above_us(times.count(), times.max_us(), 0),
                unanswered_waits_us: waits.to_entries(),
                status: statuses.map(|(status, count)| (status.to_string(), *count)).collect(),
                errors: errors::by_name(&record.errors),
            }
        };
        urls.iter().zip(&self.0).map(result).collect()
    }
}
