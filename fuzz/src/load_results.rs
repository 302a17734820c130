//! Invariants of any results of the load generator, one per line, as `meshmeter load merge` adds them up. Included by the fuzz
//! target and by the test that replays the corpus.

use results::LoadResult;
use statistics::merge;
use statistics::merge::MergeInput;

/// More results add time, and nothing else.
const MAX_RESULTS: usize = 4;

/// # Panics
/// Panics if an invariant is violated.
pub fn check(input: &[u8]) {
    let lines = input.split(|byte| *byte == b'\n').take(MAX_RESULTS);
    let results = lines.filter_map(|line| LoadResult::from_json(line).ok());
    let named = |(number, result)| MergeInput { name: format!("{number}.json"), result };
    let parts: Vec<MergeInput> = results.enumerate().map(named).collect();
    let reversed = parts.iter().rev().cloned().collect();
    let are_parts = parts.iter().all(|part| part.result.merged.is_none());
    let sent = parts.iter().map(|part| part.result.requests.sent).fold(0, u64::saturating_add);
    match (merge(parts), merge(reversed)) {
        (Ok(merged), Ok(reversed)) => {
            assert_eq!(merged.requests, reversed.requests, "the order makes no difference");
            assert_eq!(merged.response_time_us, reversed.response_time_us);
            assert!(!are_parts || merged.requests.sent == sent, "{} of {sent}", merged.requests.sent);
            let (requests, times) = (merged.requests.clone(), merged.response_time_us.clone());
            let again = merge(vec![MergeInput { name: "again".to_owned(), result: merged }]);
            let again = again.expect("what was merged can be merged");
            assert_eq!((again.requests, again.response_time_us), (requests, times), "its parts are the same");
        }
        (Err(_), Err(_)) => {}
        (merged, reversed) => panic!("the order decides: {} and {}", merged.is_ok(), reversed.is_ok()),
    }
}
