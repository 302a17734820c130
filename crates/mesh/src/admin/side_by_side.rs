//! The same for many items at once, a bounded number of them at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests to components at a time.
pub const MAX_CONCURRENCY: usize = 16;

/// Calls `run` with every item, at most `max_concurrency` at a time; results are in the order of the items.
///
/// # Panics
/// Panics if `run` does.
pub fn side_by_side<I: Sync, R: Send>(
    items: &[I],
    max_concurrency: usize,
    run: impl Fn(&I) -> R + Sync,
) -> Vec<R> {
    if let [item] = items {
        return vec![run(item)];
    }
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..max_concurrency.min(items.len()) {
            scope.spawn(|| {
                while let Some((item, result)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).zip(results.get(index))
                } {
                    *result.lock().expect("nobody else writes it") = Some(run(item));
                }
            });
        }
    });
    let results = results.into_iter().map(|result| result.into_inner().expect("nobody panicked"));
    results.map(|result| result.expect("every item was run")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_are_in_order_and_concurrency_is_bounded() {
        let (running, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..40).collect();
        let doubled = side_by_side(&items, 4, |item| {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            running.fetch_sub(1, Ordering::SeqCst);
            item * 2
        });
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!((1..=4).contains(&peak.into_inner()));
        assert!(side_by_side(&[0; 0], 4, |item: &i32| *item).is_empty());
    }
}
