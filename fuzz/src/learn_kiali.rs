//! Invariants of any graph of Kiali. Included by the fuzz target and by the test that replays the corpus.

use super::learned;
use learn::{Telemetry, kiali};

pub fn check(input: &[u8]) {
    let mut telemetry = Telemetry::new(None);
    if let Err(error) = kiali::read(&mut telemetry, input) {
        let shown = error.to_string();
        assert!(shown.lines().count() == 1 && shown.len() < 1000, "{shown}");
        return;
    }
    learned::check(&telemetry);
}
