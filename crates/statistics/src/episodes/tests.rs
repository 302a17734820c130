use super::*;
use results::SlowRequests;

const SECOND: Nanos = 1_000_000_000;
const MS: Nanos = SECOND / 1000;

/// Requests at 1000/s, each answered after `time` of its index.
fn worker(count: u64, time: impl Fn(u64) -> Nanos) -> Slowest {
    let mut slowest = Slowest::new();
    (0..count).for_each(|index| slowest.answered(index * MS, time(index)));
    slowest
}

#[test]
fn stall_is_one_episode_for_any_number_of_slow_requests() {
    let stalled = |index: u64| (100..150).contains(&index).then(|| (150 - index) * MS);
    let one = worker(1000, |index| stalled(index).unwrap_or(MS / 10));
    assert_eq!(one.slower_than(Some(MS)), Some(1));
    // Ten separate slow requests are ten episodes.
    let ten = worker(1000, |index| if index % 100 == 50 { 5 * MS } else { MS / 10 });
    assert_eq!(ten.slower_than(Some(MS)), Some(10));
    assert_eq!(ten.slower_than(Some(5 * MS)), Some(0));
}

#[test]
fn consecutive_slow_requests_are_one_episode_without_overlap() {
    let mut sparse = Slowest::new();
    (0..20).for_each(|index| sparse.answered(index * SECOND, if index / 5 == 1 { 5 * MS } else { MS }));
    assert_eq!(sparse.slower_than(Some(2 * MS)), Some(1));
}

#[test]
fn stall_of_all_workers_is_one_episode() {
    let stalled = |index: u64| if (100..150).contains(&index) { (150 - index) * MS } else { MS / 10 };
    let mut both = worker(1000, stalled);
    both.merge(&worker(1000, stalled));
    assert_eq!(both.slower_than(Some(MS)), Some(1));
}

#[test]
fn requests_without_response_are_slowest() {
    let mut slowest = worker(1000, |_| MS);
    slowest.failed(2 * SECOND, 3 * SECOND);
    slowest.failed(2 * SECOND + MS, 3 * SECOND + MS);
    slowest.answered(5 * SECOND, MS);
    slowest.failed(6 * SECOND, 7 * SECOND);
    assert_eq!(slowest.slower_than(None), Some(2));
}

#[test]
fn episodes_of_discarded_requests_are_unknown() {
    let rising = worker(2 * MAX_KEPT as u64, |index| index + 1);
    assert_eq!(rising.kept.len(), MAX_KEPT);
    assert!(rising.slower_than(Some(MAX_KEPT as Nanos - 2)).is_none());
    assert_eq!(rising.slower_than(Some(MAX_KEPT as Nanos)), Some(1));
}

/// 12 000 requests of two workers at 1000/s: 24 are slow one by one, and 50 in one stall.
fn two_workers() -> Slowest {
    let time = |index: u64| match index {
        3000..3025 => (3025 - index) * 10 * MS,
        index if index % 250 == 7 => 5 * MS + index,
        _ => MS / 10,
    };
    let mut both = worker(6000, time);
    both.merge(&worker(6000, |index| time(index).max(MS / 5)));
    both
}

#[test]
fn results_contain_slowest_requests() {
    let both = two_workers();
    let requests = both.to_requests(0);
    assert!(requests.requests.len() < 3000, "{}", requests.requests.len());
    let start = 7 * SECOND;
    let read = Slowest::from_requests(&requests, start).unwrap();
    assert_eq!(read.slower_than(Some(2 * MS)), both.slower_than(Some(2 * MS)));
    assert_eq!(read.slower_than(Some(20 * MS)), Some(1));
    assert!(read.slower_than(Some(MS / 10)).is_none(), "requests below the slowest fiftieth are not known");
    let Reverse(first) = *read.kept.iter().min_by_key(|Reverse(slow)| slow.due).unwrap();
    assert_eq!(first.due, start + 7 * MS);

    let mut of_both_starts = read;
    of_both_starts.merge(&Slowest::from_requests(&requests, start + MS / 2).unwrap());
    let once = both.slower_than(Some(2 * MS));
    assert_eq!(of_both_starts.slower_than(Some(2 * MS)), once, "both generators met the same events");
}

#[test]
fn requests_without_response_are_marked_in_text() {
    let mut slowest = worker(1000, |_| MS);
    slowest.failed(2 * SECOND, 3 * SECOND);
    slowest.answered(4 * SECOND, MS);
    slowest.failed(5 * SECOND, 6 * SECOND);
    let read = Slowest::from_requests(&slowest.to_requests(0), 0).unwrap();
    assert_eq!(read.slower_than(None), Some(2));
}

#[test]
fn from_requests_rejects_invalid_text() {
    let good = two_workers().to_requests(0);
    let with = |text: &str| SlowRequests { requests: text.to_owned(), ..good.clone() };
    let cut = &good.requests[..good.requests.len() - 8];
    for text in ["*", "gICAgICAgICAgICAgA==", "AP8=", cut] {
        let read = Slowest::from_requests(&with(text), u64::MAX / 2);
        assert!(read.is_none_or(|read| read.kept.len() < 260), "{text}");
    }
    let negative = SlowRequests { slower_than_us: Some(-1.0), ..good.clone() };
    assert!(Slowest::from_requests(&negative, 0).is_none());
}
