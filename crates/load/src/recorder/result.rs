//! The measurements in the form of the result schema.

use super::{GrpcRecord, Recorder, UnsentFor};
use crate::clock::Nanos;
use crate::error::ErrorKind;
use crate::network::Security;
use crate::target::SessionKind;
use results::{
    Backlog, HistogramSummary, IdleCloses, RequestCounts, SessionResults, UrlResult, WarmupCounts,
};
use std::collections::BTreeMap;

impl Recorder {
    /// Connections opened by address, in the form of the result schema.
    pub(crate) fn addresses(&self) -> BTreeMap<String, u64> {
        self.addresses.iter().map(|(address, count)| (address.to_string(), *count)).collect()
    }

    /// Addresses at which no connection was left at the end, of those at which some were to be.
    pub(crate) fn abandoned_addresses(&self) -> Vec<String> {
        let abandoned = self.addresses_at_end.iter().filter(|(_, connections)| **connections == 0);
        abandoned.map(|(address, _)| address.to_string()).collect()
    }

    /// Uncertainty of the arrival of each response.
    pub(crate) fn arrival_uncertainty(&self) -> HistogramSummary {
        let mut of_all = self.arrival_uncertainty.as_deref().cloned().unwrap_or_default();
        of_all.record_zeros(self.completed - of_all.count());
        of_all.summary()
    }

    /// The commonest failure at a server's first addresses, and how many attempts failed there.
    pub(crate) fn fallbacks(&self) -> Option<(ErrorKind, u64)> {
        self.errors.fallbacks()
    }

    /// Requests for a server that were never sent: those that waited for a connection to it at the end, or could not even wait.
    pub(crate) fn unsent_to(&self, server: usize) -> UnsentFor {
        self.unsent_for.get(server).copied().unwrap_or_default()
    }

    /// Response times, and what percentiles among requests without a response (failed, or never sent) are greater than,
    /// microseconds.
    pub(crate) fn response_times(&self) -> (HistogramSummary, Option<f64>) {
        let times = self.response_time.summary_with(self.unanswered_waits.count());
        let above_us = self.unanswered_waits.above_us(times.count, self.response_time.max_us(), 0);
        (times, above_us)
    }

    /// Waits of requests without a response, in the form of the result schema.
    pub(crate) fn unanswered_waits_us(&self) -> Vec<(f64, u64)> {
        self.unanswered_waits.to_entries()
    }

    /// The record of each URL, in the order given; empty unless asked for.
    pub(crate) fn url_results(&self, urls: &[String]) -> Vec<UrlResult> {
        self.per_url.results(urls)
    }

    /// Sessions in the form of the result schema; `None` without any. `names`: of the kinds of requests of all steps.
    pub(crate) fn session_results(&self, kinds: &[SessionKind], names: &[&str]) -> Option<SessionResults> {
        self.sessions.results(kinds, names)
    }

    /// Judges the statuses, except those that checks have judged: 400 and above are errors.
    pub(crate) fn expect_statuses_of_kinds(&self, requests: &mut RequestCounts) {
        let errors = requests.error_statuses_by_code();
        let unexpected = errors.map(|(code, count)| {
            let judged = code.parse().ok().and_then(|code| self.judged_statuses.get(&code));
            (code.to_owned(), count - judged.copied().unwrap_or_default().min(count))
        });
        let unexpected = unexpected.filter(|(_, count)| *count > 0).collect();
        requests.unexpected_status = Some(unexpected);
    }

    /// TLS sessions by version and cipher, in the form of the result schema.
    pub(crate) fn tls_sessions(&self) -> BTreeMap<String, u64> {
        self.count_sessions(|Security { version, cipher, resumed, .. }| {
            format!("{version:?} {cipher:?}{}", if *resumed { " resumed" } else { "" })
        })
    }

    /// TLS sessions by the server's key.
    pub(crate) fn tls_server_keys(&self) -> BTreeMap<String, u64> {
        self.count_sessions(|security| security.server_key.to_string())
    }

    fn count_sessions(&self, name: impl Fn(&Security) -> String) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (security, sessions) in &self.tls_sessions {
            *counts.entry(name(security)).or_default() += sessions;
        }
        counts
    }

    /// Requests without a whole response.
    pub(crate) fn unanswered(&self) -> u64 {
        self.unanswered_waits.count()
    }

    /// Requests sent within the window.
    pub(crate) fn sent_in_window(&self) -> u64 {
        self.sent - self.late
    }

    /// Responses received within the window, those to requests from before it included: what the target answered meanwhile.
    pub(crate) fn answered_in_window(&self) -> u64 {
        self.completed - self.completed_after_window + self.warmup.completed_in_window
    }

    /// Connections closed by their peers for being idle, in the form of the result schema.
    pub(crate) fn idle_closes(&self) -> Option<IdleCloses> {
        (self.idle_closes != IdleCloses::default()).then_some(self.idle_closes)
    }

    /// Counts of what came before the window, in the form of the result schema.
    pub(crate) fn warmup_counts(&self) -> WarmupCounts {
        WarmupCounts { errors: self.errors.before_window(), ..self.warmup.clone() }
    }

    /// The backlog throughout the window, in the form of the result schema. `offered`: requests that the schedule offers between two
    /// times of the window, on average.
    pub(crate) fn backlog(&self, offered: impl Fn(Nanos, Nanos) -> f64) -> Backlog {
        self.trend.backlog(offered)
    }

    /// Request counts in the form of the result schema.
    pub(crate) fn request_counts(&self) -> RequestCounts {
        // 0 means a response of a protocol without statuses.
        let statuses = self.statuses.iter().enumerate().skip(1).filter(|(_, count)| **count > 0);
        let status = statuses.map(|(code, count)| (code.to_string(), *count));
        RequestCounts {
            scheduled: self.sent + self.unsent,
            sent: self.sent,
            late: self.late,
            unsent: self.unsent,
            completed: self.completed,
            completed_after_window: self.completed_after_window,
            failed: self.failed,
            errors: self.errors.of_window(),
            status: status.collect(),
            unexpected_status: None,
            grpc_status: self.grpc.as_deref().map(GrpcRecord::statuses).unwrap_or_default(),
        }
    }
}
