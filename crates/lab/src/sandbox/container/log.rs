//! Reads the end of a log file of any length.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Number of bytes that are read from a log's end.
const TAIL_BYTES: u64 = 64 * 1024;

/// The last lines of a log; empty if it cannot be read.
pub fn tail(path: &Path, lines: usize) -> Vec<String> {
    let Some(bytes) = last_bytes(path) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    all[all.len().saturating_sub(lines)..].iter().map(|&line| line.to_owned()).collect()
}

fn last_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn last_lines_of_long_log_are_found() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("proxy.log");
        let mut text = String::new();
        for number in 0..20_000 {
            let _ = writeln!(text, "line {number}");
        }
        std::fs::write(&path, text).expect("it is writable");
        assert_eq!(tail(&path, 2), ["line 19998", "line 19999"]);
    }

    #[test]
    fn missing_log_has_no_lines() {
        assert!(tail(Path::new("/nonexistent/log"), 5).is_empty());
    }
}
