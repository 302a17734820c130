//! What must hold for any traces. Included by the fuzz target and by the test that replays the corpus.

use experiment::topology::file::read;
use learn::{Objects, Options, Telemetry, learn, traces};

pub fn check(input: &[u8]) {
    let mut reader = traces::Reader::new(Telemetry::new(None), Some(0.1));
    if let Err(error) = reader.read(input) {
        let shown = error.to_string();
        assert!(shown.lines().count() == 1 && shown.len() < 1000, "{shown}");
        return;
    }
    let Ok(telemetry) = reader.finish() else { return };
    let options = Options { name: "fuzz".to_owned(), scale: 1.0, least_share: 0.0 };
    let Ok(learned) = learn(&telemetry, &Objects::default(), &options) else { return };
    assert_eq!(read(&learned.yaml, "learned").unwrap(), learned.topology);
    assert_eq!(learned.provenance.drivers.len(), learned.topology.drivers.len());
    assert!(learned.provenance.drivers.iter().all(|driver| driver.rate.is_finite() && driver.rate > 0.0));
}
