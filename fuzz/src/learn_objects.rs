//! Invariants of any Kubernetes objects. Included by the fuzz target and by the test that replays the corpus.

use learn::Objects;

pub fn check(input: &[u8]) {
    let mut objects = Objects::new(None);
    match objects.read(input) {
        Ok(()) => {
            // The same objects again replace themselves.
            let mut twice = objects.clone();
            twice.read(input).unwrap();
            assert!(twice.workloads().eq(objects.workloads()));
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(shown.lines().count() == 1 && shown.len() < 1000, "{shown}");
        }
    }
}
