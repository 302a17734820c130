//! Recordings of requests, to be sent again: files of instants, access logs and HAR files.
//!
//! `line.rs` has the formats with an entry per line, `har.rs` the one that is a single document. Entries are brought into order of
//! time and counted from the first one. Bodies and headers are not read: logs have none, and those of a HAR are often secrets.

mod har;
mod line;

use crate::clock::SECOND;
use crate::target::{RecordedRequests, Rows};
use http::Method;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use results::RecordingFormat;
use std::collections::HashMap;
use std::io::{self, BufRead, Cursor, Read as _};
use std::time::Duration;

const MILLISECOND: u64 = SECOND / 1000;
/// Maximum number of requests.
const MAX_REQUESTS: usize = 10_000_000;
/// Maximum length of all different paths together, bytes.
const MAX_PATHS_BYTES: usize = 128 << 20;
/// Maximum length of a line, bytes.
const MAX_LINE_BYTES: usize = 1 << 20;
/// A file of which none of the first lines is understood is not a recording.
const MAX_LINES_WITHOUT_ENTRY: u64 = 10_000;
/// First bytes of a file, of which its format is known.
const HEAD_BYTES: u64 = 4096;
/// First bytes of compressed files: gzip and zstd.
const COMPRESSED: [&[u8]; 2] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"];
/// Limits of the time after the last request, which is the mean interval between requests otherwise.
const TIME_AFTER_LAST: [u64; 2] = [MILLISECOND, SECOND];
/// Stream of the random generator for times within a second or millisecond; those of threads have lower numbers.
const RANDOM_STREAM: u64 = 1 << 40;

/// Methods of requests that are sent again. Others, such as those that scanners send, are not understood.
const METHODS: [Method; 8] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::OPTIONS,
    Method::PATCH,
    Method::TRACE,
];

/// Requests in order of time.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Format of the file.
    pub format: RecordingFormat,
    /// Due times since the first request, or since the beginning of its second or millisecond; nanoseconds.
    pub instants: Vec<u64>,
    /// Length: until one mean interval after the last request, or until the end of its second.
    pub length: Duration,
    /// The requests themselves; absent for instants alone.
    pub requests: Option<RecordedRequests>,
    /// Number of lines (entries of a HAR) that were not understood.
    pub ignored: u64,
    /// Number of the first of them, from 1; 0 if there are none.
    pub first_ignored: u64,
    /// Number of entries that were before an earlier one in time.
    pub out_of_order: u64,
}

/// A file that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// Reading failed.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
    /// There are no entries.
    #[error("it has no requests")]
    Empty,
    /// There are lines, and none is an entry.
    #[error("no line is understood, the first of them is line {0}")]
    NotUnderstood(u64),
    /// Instants among more lines that are none: lines of any file may happen to be numbers.
    #[error(
        "{ignored} of its lines are not understood, the first of them is line {first}, and only {understood} are instants"
    )]
    FewInstants {
        /// Lines that are instants.
        understood: usize,
        /// Lines that are not.
        ignored: u64,
        /// The first of these.
        first: u64,
    },
    /// Compressed by gzip or zstd.
    #[error("it is compressed")]
    Compressed,
    /// A HAR whose JSON is not valid, or has no entries.
    #[error("it begins as a HAR and is not one")]
    Har(#[source] serde_json::Error),
    /// More requests than are kept in memory.
    #[error("it has more than 10000000 requests")]
    TooManyRequests,
    /// More paths than are kept in memory.
    #[error("its different paths have more than 128 MiB")]
    TooManyPaths,
}

impl Recording {
    /// Reads a recording. Times of whole seconds (common logs) or milliseconds (other logs and HARs) are spread over these at random,
    /// by `seed`.
    ///
    /// # Errors
    /// Returns an error if reading fails, if there are no requests, or more than fit into memory.
    pub fn read(mut input: impl BufRead, seed: u64) -> Result<Self, RecordingError> {
        let mut head = Vec::new();
        input.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        if COMPRESSED.iter().any(|magic| head.starts_with(magic)) {
            return Err(RecordingError::Compressed);
        }
        let start = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let is_har = har::begins(&head[start..]);
        let mut whole = Cursor::new(&head[start..]).chain(input);
        let mut collected = Collected::default();
        if is_har {
            har::read(&mut whole, &mut collected)?;
        } else {
            read_lines(&mut whole, &mut collected)?;
        }
        collected.into_recording(seed)
    }

    /// The same requests this many times as fast.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        if speed != 1.0 {
            self.instants.iter_mut().for_each(|instant| *instant = (*instant as f64 / speed) as u64);
            self.length = Duration::from_nanos((self.length.as_nanos() as f64 / speed).ceil() as u64);
        }
        self
    }
}

fn read_lines(input: &mut impl BufRead, collected: &mut Collected) -> Result<(), RecordingError> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let is_whole = line.len() <= MAX_LINE_BYTES || line.ends_with(b"\n");
        let text = line.trim_ascii();
        if is_whole && (text.is_empty() || text.starts_with(b"#")) {
            continue;
        }
        let entry = if is_whole { line::parse(text) } else { None };
        match entry.filter(|(format, _)| collected.format.is_none_or(|known| known == *format)) {
            Some((format, entry)) => collected.add(format, entry)?,
            None => collected.ignore(number),
        }
        // A file without end, such as a device, is left after its first line.
        if collected.entries.is_empty() && (!is_whole || number >= MAX_LINES_WITHOUT_ENTRY) {
            break;
        }
        if !is_whole {
            input.skip_until(b'\n')?;
        }
    }
    Ok(())
}

/// An entry of a recording.
struct Entry {
    /// Nanoseconds from the epoch, or from anything else.
    at: i64,
    /// Number of the method, and path.
    request: Option<(u8, String)>,
}

/// Entries as they were read.
#[derive(Default)]
struct Collected {
    format: Option<RecordingFormat>,
    /// Instant and distinct request of each.
    entries: Vec<(i64, u32)>,
    distinct: HashMap<(u8, String), u32>,
    paths_bytes: usize,
    latest: Option<i64>,
    out_of_order: u64,
    ignored: u64,
    first_ignored: u64,
}

impl Collected {
    fn add(&mut self, format: RecordingFormat, Entry { at, request }: Entry) -> Result<(), RecordingError> {
        if self.entries.len() == MAX_REQUESTS {
            return Err(RecordingError::TooManyRequests);
        }
        self.format = Some(format);
        let next = self.distinct.len() as u32;
        let row = match request {
            None => 0,
            Some(request) => match self.distinct.get(&request) {
                Some(row) => *row,
                None => {
                    self.paths_bytes += request.1.len();
                    if self.paths_bytes > MAX_PATHS_BYTES {
                        return Err(RecordingError::TooManyPaths);
                    }
                    self.distinct.insert(request, next);
                    next
                }
            },
        };
        if self.latest.is_some_and(|latest| at < latest) {
            self.out_of_order += 1;
        }
        self.latest = self.latest.max(Some(at));
        self.entries.push((at, row));
        Ok(())
    }

    fn ignore(&mut self, number: u64) {
        if self.ignored == 0 {
            self.first_ignored = number;
        }
        self.ignored += 1;
    }

    /// The requests in the order of the entries.
    fn requests(&self) -> RecordedRequests {
        let mut distinct: Vec<(&(u8, String), &u32)> = self.distinct.iter().collect();
        distinct.sort_unstable_by_key(|(_, row)| **row);
        let method = |row: u32| usize::from(distinct[row as usize].0.0);
        let mut counts = [0; METHODS.len()];
        self.entries.iter().for_each(|(_, row)| counts[method(*row)] += 1);
        let methods: Vec<(Method, u32)> =
            METHODS.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
        let place = |row: u32| methods.iter().position(|(known, _)| *known == METHODS[method(row)]);
        RecordedRequests {
            choices: (0..distinct.len() as u32).map(|row| place(row).unwrap_or_default() as u8).collect(),
            paths: Rows::new(distinct.iter().map(|((_, path), _)| path.as_str())),
            rows: self.entries.iter().map(|(_, row)| *row).collect(),
            methods,
        }
    }

    /// Time between two instants that the file can tell apart; absent if they are exact.
    fn resolution(&self, format: RecordingFormat) -> Option<u64> {
        match format {
            RecordingFormat::CommonLog => Some(SECOND),
            RecordingFormat::Instants => None,
            RecordingFormat::Envoy | RecordingFormat::EnvoyJson | RecordingFormat::Har => {
                let are_whole = self.entries.iter().all(|(at, _)| at % MILLISECOND as i64 == 0);
                are_whole.then_some(MILLISECOND)
            }
        }
    }

    fn into_recording(mut self, seed: u64) -> Result<Recording, RecordingError> {
        if self.out_of_order > 0 {
            // Entries of one instant keep their order.
            self.entries.sort_by_key(|(at, _)| *at);
        }
        let (Some(format), Some((first, _)), Some(last)) = (self.format, self.entries.first(), self.latest)
        else {
            return Err(match self.first_ignored {
                0 => RecordingError::Empty,
                first => RecordingError::NotUnderstood(first),
            });
        };
        let (understood, ignored, first_line) = (self.entries.len(), self.ignored, self.first_ignored);
        if format == RecordingFormat::Instants && ignored > understood as u64 {
            return Err(RecordingError::FewInstants { understood, ignored, first: first_line });
        }
        let since_first = |at: i64| at.abs_diff(*first);
        let mut instants: Vec<u64> = self.entries.iter().map(|(at, _)| since_first(*at)).collect();
        if let Some(resolution) = self.resolution(format) {
            spread(&mut instants, resolution, seed);
        }
        let span = since_first(last);
        let [least, most] = TIME_AFTER_LAST;
        let after_last = match instants.len() as u64 - 1 {
            _ if format == RecordingFormat::CommonLog || span == 0 => most,
            intervals => (span / intervals).clamp(least, most),
        };
        let requests = (!self.distinct.is_empty()).then(|| self.requests());
        Ok(Recording {
            format,
            instants,
            length: Duration::from_nanos(span.saturating_add(after_last)),
            requests,
            ignored,
            first_ignored: first_line,
            out_of_order: self.out_of_order,
        })
    }
}

/// Spreads the requests of one instant over the time until the next that can be written, in their order.
fn spread(instants: &mut [u64], resolution: u64, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(RANDOM_STREAM);
    for together in instants.chunk_by_mut(|one, next| one == next) {
        for instant in together.iter_mut() {
            *instant = instant.saturating_add(random.random_range(0..resolution));
        }
        together.sort_unstable();
    }
}

#[cfg(test)]
mod tests;
