use super::*;
use crate::clock::SECOND;

const MS: Nanos = 1_000_000;

#[test]
fn request_without_place_to_wait_has_waited_since_it_was_due() {
    let mut recorder = Recorder::new(0, SECOND, false).with_urls(2);
    let chosen = Chosen {
        choice: 1,
        option: 0,
        server: 0,
        request: 0,
        step: None,
        numbers: Vec::new(),
        lacks_data: false,
    };
    recorder.crowded_out(5 * MS, 45 * MS, &chosen);
    let (times, above_us) = recorder.response_times();
    assert_eq!((times.count, times.censored, recorder.request_counts().unsent), (0, 1, 1));
    assert_eq!(recorder.unsent_to(0), UnsentFor { unsent: 1, crowded_out: 1 });
    // Waits are grouped by three significant digits.
    assert!(above_us.is_some_and(|above_us| (39_900.0..=40_000.0).contains(&above_us)), "{above_us:?}");
    let urls = recorder.url_results(&["http://a/".to_owned(), "http://b/".to_owned()]);
    assert_eq!(urls.iter().map(|url| url.unsent).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(urls[1].censored_above_us, above_us);
}

fn due_at(due: Nanos) -> InFlightRequest {
    InFlightRequest::new(0, due, due, due, 0)
}

fn counted(errors: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

#[test]
fn errors_before_the_window_are_apart_from_those_of_its_requests() {
    // The window is the second from 1000 ms on. An attempt to connect fails before the schedule starts.
    let mut recorder = Recorder::new(SECOND, 2 * SECOND, false);
    recorder.error(ErrorKind::ConnectRefused, 5 * MS);
    let never_started = recorder.clone();
    assert_eq!(counted(&never_started.request_counts().errors), [("connect-refused", 1)]);
    assert!(never_started.warmup_counts().errors.is_empty(), "there is no window");
    recorder.start_seconds();
    recorder.error(ErrorKind::ConnectTimeout, 900 * MS);
    recorder.failed(&due_at(990 * MS), 1500 * MS, ErrorKind::Timeout);
    recorder.failed(&due_at(1100 * MS), 1600 * MS, ErrorKind::Reset);
    recorder.error(ErrorKind::Closed, 1700 * MS);
    let seconds = recorder.take_last_seconds(0);
    let mut all = Recorder::new(SECOND, 2 * SECOND, false);
    all.merge(&recorder);
    assert_eq!(counted(&all.request_counts().errors), [("closed", 1), ("reset", 1)]);
    let before = [("connect-refused", 1), ("connect-timeout", 1), ("timeout", 1)];
    assert_eq!(counted(&all.warmup_counts().errors), before);
    assert_eq!((all.request_counts().failed, all.warmup_counts().failed), (1, 1));
    let in_seconds =
        seconds.into_iter().flat_map(|second| second.told(jiff::Timestamp::UNIX_EPOCH, None).errors);
    assert_eq!(in_seconds.collect::<Vec<_>>(), [(ErrorKind::Reset, 1), (ErrorKind::Closed, 1)]);
}

#[test]
fn seconds_and_throughput_add_up_with_what_came_over_the_edges_of_the_window() {
    let mut recorder = Recorder::new(SECOND, 2 * SECOND, false);
    recorder.start_seconds();
    // Due before the window: answered before it, in it and after it. Due in it: answered in it and after it.
    for (due, at) in
        [(500, 900), (900, 1000), (990, 1500), (995, 2001), (1000, 1200), (1100, 2000), (1900, 2001)]
    {
        recorder.completed(&due_at(due * MS), at * MS, 200, 1);
    }
    let (requests, warmup) = (recorder.request_counts(), recorder.warmup_counts());
    assert_eq!((requests.completed, requests.completed_after_window), (3, 1));
    assert_eq!((warmup.completed, warmup.completed_in_window), (4, 2));
    assert_eq!(recorder.answered_in_window(), 4);
    let seconds = recorder.take_last_seconds(0);
    let completed: Vec<_> = seconds.iter().map(|second| (second.index, second.completed)).collect();
    assert_eq!(completed, [(0, 2), (1, 1)]);
}

#[test]
fn last_second_of_a_window_that_ended_early_is_as_long_as_its_part_of_the_window() {
    // Two workers of a planned hour; the fixed number of requests is used up after 2.3 s.
    let seconds_until = |end_ms: u64| {
        let mut recorder = Recorder::new(SECOND, 3601 * SECOND, false);
        recorder.start_seconds();
        for at in (0..end_ms).step_by(100) {
            recorder.completed(&due_at(SECOND), SECOND + at * MS, 200, 1);
        }
        recorder.end_window(SECOND + end_ms * MS);
        recorder.completed(&due_at(SECOND), SECOND + (end_ms + 50) * MS, 200, 1);
        recorder.take_last_seconds(0)
    };
    let mut merged: BTreeMap<u64, SecondCounts> = BTreeMap::new();
    for second in [1900, 2300].into_iter().flat_map(seconds_until) {
        merged.entry(second.index).or_insert_with(|| SecondCounts::new(second.index, false)).merge(&second);
    }
    let told = merged.into_values().map(|second| second.told(jiff::Timestamp::UNIX_EPOCH, None));
    let told: Vec<_> =
        told.map(|second| (second.point.t_s, second.length_s, second.point.completed)).collect();
    // The last one is after the window: it has a late response.
    assert_eq!(told, [(0.0, 1.0, 20), (1.0, 1.0, 19), (2.0, 0.3, 4), (3.0, 1.0, 1)]);
}

#[test]
fn late_responses_are_in_no_second_of_a_window_that_ends_within_one() {
    let mut recorder = Recorder::new(SECOND, 2500 * MS, false);
    recorder.start_seconds();
    for at in [1500, 2400, 2500, 2501, 2900, 3100] {
        recorder.completed(&due_at(1200 * MS), at * MS, 200, 1);
    }
    let seconds = recorder.take_last_seconds(0);
    let completed: Vec<_> = seconds.iter().map(|second| (second.index, second.completed)).collect();
    assert_eq!(completed, [(0, 1), (1, 2), (2, 3)]);
}

#[test]
fn times_of_streams_count_from_the_due_instant_and_failed_ones_rank_above_all() {
    let mut recorder = Recorder::new(SECOND, 2 * SECOND, false);
    // Ten events with content, 10 ms apart, the first after 50 ms; the first byte came 2 ms after the request was due.
    let stream = |recorder: &mut Recorder, due: Nanos, events: u64| {
        let mut flight = due_at(due);
        flight.first_byte_at = Some(due + 2 * MS);
        recorder.sent(&flight);
        recorder.stream_begun(&mut flight, due + 3 * MS);
        for event in 0..events {
            let at = due + (50 + 10 * event) * MS;
            recorder.messages(&mut flight, 1, at, at);
        }
        flight
    };
    // Of the warm-up: in no figure.
    let flight = stream(&mut recorder, 900 * MS, 10);
    recorder.completed(&flight, 1050 * MS, 200, 100);
    assert!(recorder.events.is_none());
    for _ in 0..2 {
        let flight = stream(&mut recorder, 1000 * MS, 10);
        recorder.completed(&flight, 1140 * MS, 200, 100);
    }
    // The server closes one after three events; another stalls before the first, and one is never answered.
    let cut = stream(&mut recorder, 1100 * MS, 3);
    recorder.failed(&cut, 1180 * MS, ErrorKind::Closed);
    let stalled = stream(&mut recorder, 1100 * MS, 0);
    recorder.failed(&stalled, 1900 * MS, ErrorKind::Timeout);
    recorder.failed(&due_at(1100 * MS), 1900 * MS, ErrorKind::Timeout);
    let mut all = Recorder::new(SECOND, 2 * SECOND, false);
    all.merge(&recorder);
    let (record, unanswered) = (all.events.as_deref().expect("streams"), all.unanswered());
    let (first_byte, first_event) = (record.first_byte(unanswered), record.first_event(unanswered));
    assert_eq!((first_byte.count, first_byte.censored, first_byte.p50), (4, 1, Some(2000.0)));
    assert_eq!((first_event.count, first_event.censored, first_event.max), (3, 2, None));
    // Resolution at 50 ms: 32 µs.
    assert!(first_event.p50.is_some_and(|us| (49_968.0..=50_032.0).contains(&us)), "{first_event:?}");
    let gaps = record.gaps().expect("events");
    assert_eq!((gaps.count, gaps.censored), (2 * 9 + 2, 0));
    assert!(gaps.min >= 9992.0 && gaps.max <= Some(10_008.0), "{gaps:?}");
    let counts = record.counts();
    assert_eq!((counts.received, counts.read_together), (2 * 10 + 3, 0));
    assert_eq!((counts.per_response.count, counts.per_response.min, counts.per_response.max), (2, 10, 10));
    // Two that one read returned came within the time since the poll before it.
    let mut flight = due_at(1200 * MS);
    all.stream_begun(&mut flight, 1201 * MS);
    all.messages(&mut flight, 2, 1203 * MS, 1202 * MS);
    let counts = all.events.as_deref().expect("streams").counts();
    assert_eq!((counts.read_together, counts.read_together_within_us), (1, 1000.0));
}
