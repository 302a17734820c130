//! Snapshots between the measuring thread and the sending thread: a queue that never blocks and drops the
//! oldest.

use crate::metric::Families;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// Maximum number of waiting snapshots: one minute at one per second.
pub(crate) const CAPACITY: usize = 60;
/// Maximum number of snapshots per request.
const MAX_BATCH: usize = 20;

/// All metrics at one moment. The last snapshot is empty, which ends every series.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub time_ms: i64,
    pub families: Families,
    pub is_last: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    snapshots: Mutex<VecDeque<Arc<Snapshot>>>,
    /// Wakes the consumer.
    pushed: Notify,
    closed: watch::Sender<bool>,
}

impl Queue {
    /// Adds a snapshot; drops the oldest one if the queue is full.
    pub(crate) fn push(&self, snapshot: Arc<Snapshot>) {
        let is_last = snapshot.is_last;
        let mut snapshots = self.snapshots();
        snapshots.push_back(snapshot);
        drop_oldest(&mut snapshots);
        drop(snapshots);
        if is_last {
            self.closed.send_replace(true);
        }
        self.pushed.notify_one();
    }

    /// Waits for the next snapshots for one request; `None` after the last. For a single consumer.
    pub(crate) async fn take(&self) -> Option<Vec<Arc<Snapshot>>> {
        loop {
            // Read before the snapshots: the last snapshot is pushed before the queue is closed.
            let is_closed = *self.closed.borrow();
            {
                let mut snapshots = self.snapshots();
                let number = snapshots.len().min(MAX_BATCH);
                if number > 0 {
                    return Some(snapshots.drain(..number).collect());
                }
            }
            if is_closed {
                return None;
            }
            self.pushed.notified().await;
        }
    }

    /// Puts back snapshots that could not be sent, as far as there is space before newer ones.
    pub(crate) fn restore(&self, batch: Vec<Arc<Snapshot>>) {
        let mut snapshots = self.snapshots();
        for snapshot in batch.into_iter().rev() {
            snapshots.push_front(snapshot);
        }
        drop_oldest(&mut snapshots);
    }

    /// Waits until the last snapshot was pushed.
    pub(crate) async fn closed(&self) {
        // `self` owns the sender, so it cannot be dropped meanwhile.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    fn snapshots(&self) -> MutexGuard<'_, VecDeque<Arc<Snapshot>>> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_oldest(snapshots: &mut VecDeque<Arc<Snapshot>>) {
    while snapshots.len() > CAPACITY {
        snapshots.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(time_ms: i64) -> Arc<Snapshot> {
        Arc::new(Snapshot { time_ms, families: Families::default(), is_last: false })
    }

    fn times(batch: &[Arc<Snapshot>]) -> Vec<i64> {
        batch.iter().map(|snapshot| snapshot.time_ms).collect()
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn full_queue_keeps_newest_in_order() {
        let queue = Queue::default();
        (0..100).for_each(|time| queue.push(snapshot(time)));
        let first = block_on(queue.take()).unwrap();
        assert_eq!(times(&first), (40..60).collect::<Vec<i64>>());
        (100..110).for_each(|time| queue.push(snapshot(time)));
        // 50 are waiting, which leaves space for 10 of the 20.
        queue.restore(first);
        assert_eq!(times(&block_on(queue.take()).unwrap()), (50..70).collect::<Vec<i64>>());
    }

    #[test]
    fn closed_queue_ends_when_empty() {
        let queue = Queue::default();
        queue.push(snapshot(1));
        queue.push(Arc::new(Snapshot { time_ms: 2, families: Families::default(), is_last: true }));
        block_on(queue.closed());
        assert_eq!(block_on(queue.take()).unwrap().len(), 2);
        assert!(block_on(queue.take()).is_none());
    }
}
