//! Sends snapshots to receivers while a measurement runs.
//!
//! A measurement publishes snapshots without ever blocking. Each receiver has its own queue, which drops its
//! oldest snapshot when it is full, and a single low-priority thread sends them all. Failures are counted,
//! and the first one is reported. At the end every series is ended, within [`FLUSH_TIMEOUT`].

use crate::batch::KnownSeries;
use crate::client::Client;
use crate::delivery::{Account, Delivery, Notice};
use crate::destination::Destination;
use crate::metric::{Families, Labels};
use crate::queue::{Queue, Snapshot};
use futures_util::future::{join_all, select};
use results::ExportRecord;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Time limit for sending after the last snapshot.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Additional time after which the thread is considered stuck.
const THREAD_END_TIMEOUT: Duration = Duration::from_millis(500);
/// Nice value of the sending thread, so that measuring threads take precedence (nice(2)).
const NICENESS: i32 = 10;

/// Receivers, and the labels that all series have in common.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Receivers of every snapshot.
    pub destinations: Vec<Destination>,
    /// Labels of every series.
    pub labels: Labels,
}

/// Sends snapshots to receivers until [`Self::finish`] is called.
pub struct Exporter {
    receivers: Vec<(Arc<Queue>, Arc<Account>)>,
    last_time_ms: i64,
    ended: Receiver<()>,
}

impl Exporter {
    /// Starts the sending thread in the network namespace of the calling thread. `notice` is called once for
    /// each receiver that fails.
    ///
    /// # Errors
    /// Returns an error if the system is out of threads or sockets.
    pub fn start(settings: Settings, notice: impl Fn(&str) + Send + Sync + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let notice: Notice = Arc::new(notice);
        let mut receivers = Vec::new();
        let mut deliveries = Vec::new();
        for destination in settings.destinations {
            let queue = Arc::new(Queue::default());
            let protocol = destination.protocol;
            let account = Arc::new(Account::new(destination.shown(), protocol, Arc::clone(&notice)));
            receivers.push((Arc::clone(&queue), Arc::clone(&account)));
            let labels = settings.labels.clone();
            deliveries.push((destination, protocol, labels, queue, account));
        }
        let (end, ended) = channel();
        let send = move || {
            // If this is not allowed, sending at normal priority does no harm.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
            let closed: Vec<Arc<Queue>> =
                deliveries.iter().map(|(_, _, _, queue, _)| Arc::clone(queue)).collect();
            let deliver = |(destination, protocol, labels, queue, account)| {
                let client = Client::new(destination);
                Delivery { client, protocol, labels, queue, account, known: KnownSeries::default() }.run()
            };
            runtime.block_on(async {
                let deadline = async {
                    for queue in &closed {
                        queue.closed().await;
                    }
                    tokio::time::sleep(FLUSH_TIMEOUT).await;
                };
                select(pin!(join_all(deliveries.into_iter().map(deliver))), pin!(deadline)).await;
            });
            // Do not wait for a pending name lookup.
            runtime.shutdown_background();
            // The other side is gone if the process is exiting.
            let _ = end.send(());
        };
        thread::Builder::new().name("export".to_owned()).spawn(send)?;
        Ok(Self { receivers, last_time_ms: 0, ended })
    }

    /// Publishes these metrics with the current time. Never waits for a receiver.
    pub fn publish(&mut self, families: Families) {
        for (_, account) in &self.receivers {
            account.change(|record| record.snapshots += 1);
        }
        self.push(families, false);
    }

    /// Ends every series, waits for at most [`FLUSH_TIMEOUT`], and returns the delivery statistics of each
    /// receiver.
    #[must_use]
    pub fn finish(mut self) -> Vec<ExportRecord> {
        self.push(Families::default(), true);
        // Whether the thread has ended or is stuck, deliveries so far are counted.
        let _ = self.ended.recv_timeout(FLUSH_TIMEOUT + THREAD_END_TIMEOUT);
        let finished = |(_, account): &(_, Arc<Account>)| {
            account.notify_dropped();
            account.record()
        };
        self.receivers.iter().map(finished).collect()
    }

    fn push(&mut self, families: Families, is_last: bool) {
        // Timestamps of a series must be strictly increasing.
        let time_ms = jiff::Timestamp::now().as_millisecond().max(self.last_time_ms + 1);
        self.last_time_ms = time_ms;
        let snapshot = Arc::new(Snapshot { time_ms, families, is_last });
        for (queue, _) in &self.receivers {
            queue.push(Arc::clone(&snapshot));
        }
    }
}
