//! Files that a trial keeps of its proxies, in addition to its record.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::File;
use std::path::Path;

/// Configuration of a proxy during the trial.
pub fn kept_configuration(logs: &Path, proxy: &str) -> Value {
    let path = logs.join(format!("{proxy}.configuration.json.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_reader(GzDecoder::new(file)).expect("it is JSON")
}
