//! Invariants of any export of spans (OTLP). Included by the fuzz target and by the tests of the collector, each beside the reader.

use super::senders;

pub fn check(input: &[u8]) {
    let Ok(counted) = senders(input).collect::<Result<Vec<_>, _>>() else { return };
    // A span takes two bytes at least, and so does the resource that names its sender.
    let spans: u64 = counted.iter().map(|(_, spans)| spans).sum();
    assert!(2 * (spans as usize).max(counted.len()) <= input.len(), "{counted:?}");
    assert!(counted.iter().map(|(name, _)| name.len()).sum::<usize>() <= input.len());
    let joined = input.repeat(2);
    let twice: Vec<_> = senders(&joined).collect::<Result<_, _>>().expect("exports can be joined");
    assert_eq!(twice, counted.repeat(2));
}
