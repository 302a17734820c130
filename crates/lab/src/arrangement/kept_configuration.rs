//! The configuration that a proxy had in a trial, kept with the trial's logs: what the experiment's switches came to.

use super::started::CounterSource;
use experiment::environment::in_one_line;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Keeps a proxy's configuration as `NAME.configuration.json.gz`. Where it cannot be had, a file says why: a trial is none
/// the worse for it.
pub(super) fn keep_configuration(name: &str, proxy: &dyn CounterSource, log_dir: &Path) {
    let dump = proxy.configuration_dump().map_err(|error| in_one_line(&error));
    let kept = dump.and_then(|dump| {
        let Some(configuration) = dump else { return Ok(()) };
        write_compressed(&log_dir.join(format!("{name}.configuration.json.gz")), &configuration)
            .map_err(|error| error.to_string())
    });
    if let Err(reason) = kept {
        // Where the disk takes not even this, the trial's record fails too, and says so.
        let _ = fs::write(log_dir.join(format!("{name}.configuration-not-kept.txt")), reason + "\n");
    }
}

fn write_compressed(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut encoder = GzEncoder::new(File::create(path)?, Compression::fast());
    encoder.write_all(content)?;
    encoder.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::admin::{AdminCause, AdminError};
    use flate2::read::GzDecoder;
    use std::collections::BTreeMap;
    use std::io::Read as _;

    #[derive(Debug)]
    struct Proxy(Option<&'static str>);

    impl CounterSource for Proxy {
        fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
            Ok(BTreeMap::new())
        }

        fn configuration_dump(&self) -> Result<Option<Vec<u8>>, AdminError> {
            let silent = || AdminError {
                proxy: "p".into(),
                path: "/config_dump".into(),
                cause: AdminCause::Status(503),
            };
            self.0.map(|text| Some(text.as_bytes().to_vec())).ok_or_else(silent)
        }
    }

    #[test]
    fn a_configuration_is_kept_or_why_not() {
        let folder = tempfile::tempdir().unwrap();
        keep_configuration("client-proxy", &Proxy(Some("{}")), folder.path());
        let mut text = String::new();
        let file = File::open(folder.path().join("client-proxy.configuration.json.gz")).unwrap();
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
        assert_eq!(text, "{}");

        keep_configuration("server-proxy", &Proxy(None), folder.path());
        let why = fs::read_to_string(folder.path().join("server-proxy.configuration-not-kept.txt")).unwrap();
        assert!(why.contains("503"), "{why}");
    }
}
