//! Keys of new documents, as all drivers make them: the time in seconds, a random number per process, and a
//! counter. They grow, which is what databases' indexes expect.

use jiff::Timestamp;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static PROCESS: LazyLock<[u8; 5]> = LazyLock::new(rand::random);
static COUNTER: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(rand::random()));

pub(super) fn new() -> [u8; 12] {
    let seconds = (Timestamp::now().as_second() as u32).to_be_bytes();
    let count = COUNTER.fetch_add(1, Relaxed).to_be_bytes();
    let mut id = [0; 12];
    id[..4].copy_from_slice(&seconds);
    id[4..9].copy_from_slice(&*PROCESS);
    // Three bytes, as defined.
    id[9..].copy_from_slice(&count[1..]);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_process_differ_by_their_count() {
        let (first, second) = (new(), new());
        assert_eq!(first[4..9], second[4..9]);
        assert_ne!(first[9..], second[9..]);
    }
}
