//! Requests and response times of each URL, when several are measured apart.

use crate::clock::Nanos;
use experiment::schema::UrlResult;
use statistics::LatencyHistogram;

/// One record per URL; empty when URLs are not told apart.
#[derive(Clone, Debug, Default)]
pub(super) struct PerUrl(Vec<UrlRecord>);

#[derive(Clone, Debug)]
struct UrlRecord {
    sent: u64,
    failed: u64,
    response_time: LatencyHistogram,
}

impl PerUrl {
    pub(super) fn new(urls: usize) -> Self {
        Self(vec![UrlRecord { sent: 0, failed: 0, response_time: LatencyHistogram::new() }; urls])
    }

    pub(super) fn sent(&mut self, url: usize) {
        if let Some(record) = self.0.get_mut(url) {
            record.sent += 1;
        }
    }

    pub(super) fn completed(&mut self, url: usize, response_time: Nanos) {
        if let Some(record) = self.0.get_mut(url) {
            record.response_time.record_ns(response_time);
        }
    }

    pub(super) fn failed(&mut self, url: usize) {
        if let Some(record) = self.0.get_mut(url) {
            record.failed += 1;
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
            mine.failed += theirs.failed;
            mine.response_time.merge(&theirs.response_time);
        }
    }

    /// Failed requests rank above all responses. Requests that were never sent belong to no URL.
    pub(super) fn results(&self, urls: &[String]) -> Vec<UrlResult> {
        let result = |(url, record): (&String, &UrlRecord)| UrlResult {
            url: url.clone(),
            sent: record.sent,
            completed: record.response_time.count(),
            failed: record.failed,
            response_time_us: record.response_time.summary_with(record.failed),
        };
        urls.iter().zip(&self.0).map(result).collect()
    }
}
