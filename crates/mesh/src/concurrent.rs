//! Parallel work on many items, with bounded concurrency.

use crate::Result;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Maximum number of threads. They mostly wait: for a process, the kernel or a response.
const MAX_THREADS: usize = 16;

pub fn side_by_side<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items: Vec<T> = items.into_iter().collect();
    let threads = items.len().min(MAX_THREADS);
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work_through = || {
        let mut results = Vec::new();
        while let Some((index, item)) = next() {
            results.push((index, work(item)));
        }
        results
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work_through)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Like [`side_by_side`] for work that can fail. After a failure, items still waiting are skipped.
pub fn try_side_by_side<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let failed = AtomicBool::new(false);
    let results = side_by_side(items, |item| {
        if failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = work(item);
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        Some(result)
    });
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::EnvironmentError;
    use std::sync::Barrier;

    #[test]
    fn items_run_in_parallel_and_results_keep_order() {
        let barrier = Barrier::new(MAX_THREADS);
        let results = side_by_side(0..2 * MAX_THREADS, |item| {
            barrier.wait();
            item
        });
        assert_eq!(results, (0..2 * MAX_THREADS).collect::<Vec<_>>());
    }

    #[test]
    fn first_failure_is_the_result() {
        let failing = |item: usize| {
            if item == 3 { Err(EnvironmentError::new("work on 3", "no")) } else { Ok(item) }
        };
        let error = try_side_by_side(0..1000, failing).unwrap_err();
        assert_eq!(error.to_string(), "work on 3");
        assert_eq!(try_side_by_side(0..3, failing).unwrap(), [0, 1, 2]);
    }
}
