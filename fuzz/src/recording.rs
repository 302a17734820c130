//! Invariants of any recording. Included by the fuzz target and by the test that replays the corpus.

use load::Recording;
use std::io::BufReader;
use std::time::Duration;

pub fn check(input: &[u8]) {
    let read = |buffer_bytes| Recording::read(BufReader::with_capacity(buffer_bytes, input), 1);
    let (recording, again) = match (read(1 << 16), read(1)) {
        (Ok(recording), Ok(again)) => (recording, again),
        (Err(error), Err(again)) => return assert_eq!(error.to_string(), again.to_string()),
        (one, other) => panic!("{one:?} and {other:?}"),
    };
    assert_eq!((&recording.instants, recording.ignored), (&again.instants, again.ignored));
    assert!(recording.instants.is_sorted());
    let last = *recording.instants.last().expect("it has requests");
    assert!(Duration::from_nanos(last) <= recording.length);
    assert_eq!(recording.ignored == 0, recording.first_ignored == 0);
    if let Some(requests) = &recording.requests {
        assert_eq!(requests.rows.len(), recording.instants.len());
        assert_eq!(
            requests.methods.iter().map(|(_, count)| *count as usize).sum::<usize>(),
            requests.rows.len()
        );
        for row in &requests.rows {
            assert!(usize::from(requests.choices[*row as usize]) < requests.methods.len());
            // Anything else would be another request, or several.
            let path = requests.paths.get(u64::from(*row));
            assert!(path.starts_with(b"/") && path.iter().all(u8::is_ascii_graphic), "{path:?}");
        }
    }
    let faster = recording.at_speed(7.0);
    assert!(faster.instants.is_sorted() && faster.instants.last().is_some_and(|at| *at <= last / 6));
}
