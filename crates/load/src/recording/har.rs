//! HAR, the archive of a browser's requests (<http://www.softwareishard.com/blog/har-12-spec/>).

use super::line::{entry, timestamp};
use super::{Collected, RecordingError};
use results::RecordingFormat;
use serde::Deserialize;
use std::io::Read;

/// Maximum size of a file, bytes: it has the bodies of responses.
const MAX_BYTES: u64 = 1 << 30;
/// Beginning of a file, apart from white space.
const BEGINNING: &[u8] = b"{\"log\":{";

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<HarEntry>,
}

#[derive(Deserialize)]
struct HarEntry {
    #[serde(default, rename = "startedDateTime")]
    started: String,
    #[serde(default)]
    request: HarRequest,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HarRequest {
    method: String,
    url: String,
}

/// True for the first bytes of a HAR.
pub(super) fn begins(head: &[u8]) -> bool {
    let visible = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    visible.take(BEGINNING.len()).eq(BEGINNING)
}

pub(super) fn read(input: &mut impl Read, collected: &mut Collected) -> Result<(), RecordingError> {
    let har: Har = serde_json::from_reader(input.take(MAX_BYTES)).map_err(RecordingError::Har)?;
    for (number, HarEntry { started, request }) in (1..).zip(har.log.entries) {
        let at = timestamp(&started);
        match at.and_then(|at| entry(at, request.method.as_bytes(), request.url.as_bytes())) {
            Some(entry) => collected.add(RecordingFormat::Har, entry)?,
            None => collected.ignore(number),
        }
    }
    Ok(())
}
