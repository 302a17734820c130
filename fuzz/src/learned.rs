//! Invariants of any topology that is learned. Included beside those of answers and of traces.

use experiment::topology::file::read;
use learn::{Objects, Options, Telemetry, learn};

pub fn check(telemetry: &Telemetry) {
    let options = Options { name: "fuzz".to_owned(), scale: 1.0, least_share: 0.0 };
    let Ok(learned) = learn(telemetry, &Objects::default(), &options) else { return };
    assert_eq!(read(&learned.yaml, "learned").unwrap(), learned.topology);
    assert_eq!(learned.provenance.drivers.len(), learned.topology.drivers.len());
    assert!(learned.provenance.drivers.iter().all(|driver| driver.rate.is_finite() && driver.rate > 0.0));
}
