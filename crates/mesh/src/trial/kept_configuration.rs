//! The configuration that a proxy had in a trial, kept with the trial's logs. It shows the effect of the
//! experiment's switches.

use crate::config_dump::DumpCopy;
use crate::names::file_name;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A proxy's configuration, compressed into `NAME.configuration.json.gz` while it is read. Incomplete files
/// are removed. If there is no configuration, another file says why, and the trial stays valid.
pub(super) struct KeptConfiguration {
    path: PathBuf,
    why_not: PathBuf,
    /// Absent until there is something to write.
    written: Option<io::Result<GzEncoder<File>>>,
}

impl KeptConfiguration {
    pub fn new(name: &str, folder: &Path) -> Self {
        let name = file_name(name);
        Self {
            path: folder.join(format!("{name}.configuration.json.gz")),
            why_not: folder.join(format!("{name}.configuration-not-kept.txt")),
            written: None,
        }
    }

    /// Closes the file. If there is a reason against it, or it could not be written, it is removed and
    /// another file says why.
    pub fn end(self, reason_against: Option<&str>) {
        let written = self.written.map(|written| written.and_then(GzEncoder::finish));
        let failure =
            written.and_then(Result::err).map(|error| format!("write {}: {error}", self.path.display()));
        if let Some(reason) = reason_against.or(failure.as_deref()) {
            // If the disk does not even take this file, writing the trial's record fails too, and reports it.
            let _ = fs::remove_file(&self.path);
            let _ = fs::write(self.why_not, format!("{reason}\n"));
        }
    }
}

impl DumpCopy for KeptConfiguration {
    fn push(&mut self, part: &[u8]) {
        let create = || File::create(&self.path).map(|file| GzEncoder::new(file, Compression::fast()));
        let written = self.written.get_or_insert_with(create);
        if let Ok(encoder) = written
            && let Err(error) = encoder.write_all(part)
        {
            *written = Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    fn files(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn kept_configuration_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = KeptConfiguration::new("client-proxy", folder.path());
        kept.push(b"{");
        kept.push(b"}");
        kept.end(None);
        assert_eq!(files(folder.path()), ["client-proxy.configuration.json.gz"]);
        let mut text = String::new();
        let file = File::open(folder.path().join("client-proxy.configuration.json.gz")).unwrap();
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
        assert_eq!(text, "{}");
    }

    #[test]
    fn incomplete_configuration_is_replaced_by_reason() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = KeptConfiguration::new("server-proxy", folder.path());
        kept.push(b"{");
        kept.end(Some("no answer"));
        assert_eq!(files(folder.path()), ["server-proxy.configuration-not-kept.txt"]);
        let why = fs::read_to_string(folder.path().join("server-proxy.configuration-not-kept.txt")).unwrap();
        assert_eq!(why, "no answer\n");
    }

    #[test]
    fn unwritable_configuration_is_reported_and_empty_one_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("waypoint.configuration.json.gz")).unwrap();
        let mut kept = KeptConfiguration::new("waypoint", folder.path());
        kept.push(b"{");
        kept.push(b"}");
        kept.end(None);
        let why = fs::read_to_string(folder.path().join("waypoint.configuration-not-kept.txt")).unwrap();
        assert!(why.starts_with("write ") && why.contains("directory"), "{why}");
        let empty = tempfile::tempdir().unwrap();
        KeptConfiguration::new("sni-proxy", empty.path()).end(None);
        assert!(files(empty.path()).is_empty());
    }
}
