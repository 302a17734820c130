//! Files that a trial keeps of its proxies, in addition to its record.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::File;
use std::io;
use std::path::Path;

/// Configuration of a proxy during the trial.
pub fn kept_configuration(logs: &Path, proxy: &str) -> Value {
    let path = logs.join(format!("{proxy}.configuration.json.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // Not from a reader: that would uncompress each byte by itself.
    let json = io::read_to_string(GzDecoder::new(file)).expect("it is compressed text");
    serde_json::from_str(&json).expect("it is JSON")
}
