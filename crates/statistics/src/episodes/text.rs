//! Slow requests in results: base64 of variable-length integers, a few bytes per request.

use super::{MAX_KEPT, Nanos, Slow, Slowest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use results::SlowRequests;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Slow requests in a result: enough for p99 of 200 000 requests.
const MAX_WRITTEN: usize = 2048;
/// One in this many of a result's requests is written. That is twice as many as lie beyond p99, since the p99
/// of several generators together may be lower than that of one.
const WRITTEN_OF: u64 = 50;
/// Due times are in microseconds. Response times are in nanoseconds, because percentiles are exact.
const UNIT: Nanos = 1000;

impl Slowest {
    /// The slowest requests of a window that opened at `start`.
    #[must_use]
    pub fn to_requests(&self, start: Nanos) -> SlowRequests {
        let mut slow: Vec<Slow> = self.kept.iter().map(|Reverse(slow)| *slow).collect();
        slow.sort_unstable_by(|one, other| other.cmp(one));
        let written = (self.ended / WRITTEN_OF).clamp(1, MAX_WRITTEN as u64) as usize;
        let unanswered = slow.iter().take_while(|slow| slow.time == Nanos::MAX).count();
        let written = written.max(unanswered.min(MAX_WRITTEN));
        let floor = slow.get(written).map_or(self.floor, |slow| slow.time);
        slow.truncate(written);
        slow.sort_unstable_by_key(|slow| (slow.due, slow.worker, slow.place));
        let mut writer = Writer::default();
        for slow in &slow {
            writer.write(slow, start);
        }
        SlowRequests {
            // Not all requests without a response are known.
            slower_than_us: (floor < Nanos::MAX).then_some(floor as f64 / 1e3),
            requests: STANDARD.encode(writer.bytes),
        }
    }

    /// Reads the slow requests of a result whose window opened at `start`, for episodes over several results.
    /// `None` if they cannot be decoded.
    #[must_use]
    pub fn from_requests(requests: &SlowRequests, start: Nanos) -> Option<Self> {
        let bytes = STANDARD.decode(&requests.requests).ok()?;
        let mut reader = Reader { bytes: &bytes, due: start, places: HashMap::new() };
        let mut slowest = Self::new();
        while !reader.bytes.is_empty() {
            if slowest.kept.len() == MAX_KEPT {
                return None;
            }
            let slow = reader.read()?;
            slowest.workers = slowest.workers.max(slow.worker + 1);
            slowest.kept.push(Reverse(slow));
        }
        slowest.floor = match requests.slower_than_us {
            Some(us) if us.is_finite() && us >= 0.0 => (us * 1e3) as Nanos,
            Some(_) => return None,
            None => Nanos::MAX,
        };
        slowest.ended = slowest.kept.len() as u64;
        Some(slowest)
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    due: Nanos,
    places: HashMap<usize, u64>,
}

impl Writer {
    fn write(&mut self, slow: &Slow, start: Nanos) {
        let due = slow.due.saturating_sub(start) / UNIT;
        let unanswered = slow.time == Nanos::MAX;
        let last_place = self.places.insert(slow.worker, slow.place).unwrap_or(0);
        self.number(((slow.worker as u64) << 1) | u64::from(unanswered));
        self.number(due - self.due);
        self.number(if unanswered { slow.end.saturating_sub(slow.due) } else { slow.time });
        // A worker's requests end in almost the order in which they are due.
        let step = slow.place as i64 - last_place as i64;
        self.number(((step << 1) ^ (step >> 63)) as u64);
        self.due = due;
    }

    /// Variable-length integer: seven bits per byte, lowest bits first.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    due: Nanos,
    places: HashMap<usize, u64>,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<Slow> {
        let head = self.number()?;
        let worker = usize::try_from(head >> 1).ok().filter(|worker| *worker < usize::from(u16::MAX))?;
        self.due = self.due.checked_add(self.number()?.checked_mul(UNIT)?)?;
        let time = self.number()?;
        let step = self.number()?;
        let step = (step >> 1) as i64 ^ -((step & 1) as i64);
        let place = self.places.get(&worker).copied().unwrap_or(0).checked_add_signed(step)?;
        self.places.insert(worker, place);
        Some(Slow {
            time: if head & 1 == 1 { Nanos::MAX } else { time },
            due: self.due,
            end: self.due.checked_add(time)?,
            place,
            worker,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(first & 0x7f).checked_shl(shift)?;
            if first & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}
