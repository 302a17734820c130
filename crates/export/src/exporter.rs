//! Sends snapshots to receivers while something is measured.
//!
//! A measurement publishes snapshots and never waits: each receiver has a queue of its own, which drops its oldest snapshot
//! when it is full, and one thread of low priority sends them all. What fails is counted and told once. At the end every
//! series is ended, within [`FLUSH_TIMEOUT`].

use crate::batch::KnownSeries;
use crate::client::Client;
use crate::delivery::{Account, Delivery, Notice};
use crate::destination::Destination;
use crate::metric::{Families, Labels};
use crate::queue::{Queue, Snapshot};
use experiment::schema::ExportRecord;
use futures_util::future::{join_all, select};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Bound on what is sent after the end.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Beyond it, the thread is taken to be stuck.
const THREAD_END_TIMEOUT: Duration = Duration::from_millis(500);
/// How much the thread gives way to those that measure (nice(2)).
const NICENESS: i32 = 10;

/// Receivers, and what all series have in common.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Receivers.
    pub destinations: Vec<Destination>,
    /// Labels of every series.
    pub labels: Labels,
}

/// Sends to receivers until it is finished.
pub struct Exporter {
    receivers: Vec<(Arc<Queue>, Arc<Account>)>,
    last_time_ms: i64,
    ended: Receiver<()>,
}

impl Exporter {
    /// Starts the thread that sends, in the network of the calling thread. `notice` is told once per receiver that fails.
    ///
    /// # Errors
    /// The system has no thread or no sockets left.
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
            // Sending at the usual priority does no harm where this is not allowed.
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
            // A name that is being looked up holds nobody up.
            runtime.shutdown_background();
            // Nobody waits where the process ends.
            let _ = end.send(());
        };
        thread::Builder::new().name("export".to_owned()).spawn(send)?;
        Ok(Self { receivers, last_time_ms: 0, ended })
    }

    /// Takes these metrics as those of now. Never waits for a receiver.
    pub fn publish(&mut self, families: Families) {
        for (_, account) in &self.receivers {
            account.change(|record| record.snapshots += 1);
        }
        self.push(families, false);
    }

    /// Ends every series, waits as long as [`FLUSH_TIMEOUT`] at most, and says what became of the snapshots.
    #[must_use]
    pub fn finish(mut self) -> Vec<ExportRecord> {
        self.push(Families::default(), true);
        // Whether it ended or is stuck: what was delivered is counted.
        let _ = self.ended.recv_timeout(FLUSH_TIMEOUT + THREAD_END_TIMEOUT);
        let finished = |(_, account): &(_, Arc<Account>)| {
            account.tell_dropped();
            account.record()
        };
        self.receivers.iter().map(finished).collect()
    }

    fn push(&mut self, families: Families, is_last: bool) {
        // No two samples of a series have the same time.
        let time_ms = jiff::Timestamp::now().as_millisecond().max(self.last_time_ms + 1);
        self.last_time_ms = time_ms;
        let snapshot = Arc::new(Snapshot { time_ms, families, is_last });
        for (queue, _) in &self.receivers {
            queue.push(Arc::clone(&snapshot));
        }
    }
}
