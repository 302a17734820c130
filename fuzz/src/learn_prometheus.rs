//! Invariants of any answers of Prometheus. Included by the fuzz target and by the test that replays the corpus.

use super::learned;
use learn::Telemetry;
use learn::prometheus::Reader;

pub fn check(input: &[u8]) {
    let mut reader = Reader::new(Telemetry::new(None));
    if let Err(error) = reader.read(input) {
        let shown = error.to_string();
        assert!(shown.lines().count() == 1 && shown.len() < 1000, "{shown}");
        return;
    }
    learned::check(&reader.finish());
}
