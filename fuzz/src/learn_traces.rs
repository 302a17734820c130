//! Invariants of any traces. Included by the fuzz target and by the test that replays the corpus.

use super::learned;
use learn::{Telemetry, traces};

pub fn check(input: &[u8]) {
    let mut reader = traces::Reader::new(Telemetry::new(None), Some(0.1));
    if let Err(error) = reader.read(input) {
        let shown = error.to_string();
        assert!(shown.lines().count() == 1 && shown.len() < 1000, "{shown}");
        return;
    }
    let Ok(telemetry) = reader.finish() else { return };
    learned::check(&telemetry);
}
