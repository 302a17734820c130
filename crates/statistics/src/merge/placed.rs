//! Results positioned in time.

use super::error::MergeError;
use jiff::Timestamp;
use results::{LOAD_SCHEMA, LatencyHistogram, LoadResult, MergedPart};

/// Maximum window in seconds: ten years. Anything longer is not a measurement.
const MAX_WINDOW_S: f64 = 10.0 * 366.0 * 86_400.0;

/// A result to merge.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeInput {
    /// Source of the result, such as its file name.
    pub name: String,
    /// The load result.
    pub result: LoadResult,
}

/// A result with its window in absolute time.
pub(super) struct Placed {
    pub(super) part: MergeInput,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

/// Positions a result in time; a merged result with complete parts is replaced by these.
pub(super) fn place(part: MergeInput, placed: &mut Vec<Placed>) -> Result<(), MergeError> {
    let MergeInput { name, mut result } = part;
    if result.schema != LOAD_SCHEMA {
        return Err(MergeError::Schema { name, schema: result.schema });
    }
    let parts = result.merged.take().map(|merged| merged.parts).unwrap_or_default();
    let whole = |part: MergedPart| Some(MergeInput { name: part.name, result: *part.result? });
    if let Some(parts) =
        parts.into_iter().map(whole).collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty())
    {
        return parts.into_iter().try_for_each(|part| place(part, placed));
    }
    let Ok(start) = result.started_at.parse::<Timestamp>() else {
        let (field, value) = ("started_at", result.started_at);
        return Err(MergeError::Window { name, field, value, expected: "time" });
    };
    let end = (0.0..MAX_WINDOW_S).contains(&result.duration_s).then(|| {
        start.checked_add(jiff::SignedDuration::from_nanos((result.duration_s * 1e9).round() as i64)).ok()
    });
    let Some(end) = end.flatten() else {
        let (field, value) = ("duration_s", result.duration_s.to_string());
        return Err(MergeError::Window { name, field, value, expected: "length of a measurement" });
    };
    placed.push(Placed { part: MergeInput { name, result }, start, end });
    Ok(())
}

impl Placed {
    /// When the generator's threads began to follow the schedule: the start plus the delay with which they
    /// woke.
    fn began(&self) -> Timestamp {
        let delay =
            jiff::SignedDuration::from_nanos((self.part.result.start_delay_us.unwrap_or(0.0) * 1e3) as i64);
        self.start.checked_add(delay).unwrap_or(self.start)
    }
}

/// Start of each part after the first one, in microseconds.
pub(super) fn start_offsets_us(placed: &[Placed]) -> Vec<f64> {
    let first = placed.iter().map(Placed::began).min();
    let offset = |placed: &Placed| first.map_or(0.0, |first| seconds_between(first, placed.began()) * 1e6);
    placed.iter().map(offset).collect()
}

/// Two generators never measure the same to the nanosecond, but a file that is given twice does.
pub(super) fn reject_duplicates(placed: &[Placed]) -> Result<(), MergeError> {
    for (index, one) in placed.iter().enumerate() {
        let at_the_same_time = placed[index + 1..].iter().take_while(|other| other.start == one.start);
        for other in at_the_same_time {
            if one.part.result == other.part.result {
                let (one, other) = (one.part.name.clone(), other.part.name.clone());
                return Err(MergeError::Twice { one, other });
            }
        }
    }
    Ok(())
}

/// Time for which all windows overlapped, in seconds.
pub(super) fn overlap_s(placed: &[Placed]) -> f64 {
    let latest_start = placed.iter().map(|placed| placed.start).max();
    let earliest_end = placed.iter().map(|placed| placed.end).min();
    match (latest_start, earliest_end) {
        (Some(start), Some(end)) => seconds_between(start, end).max(0.0),
        _ => 0.0,
    }
}

pub(super) fn seconds_between(start: Timestamp, end: Timestamp) -> f64 {
    end.duration_since(start).as_secs_f64()
}

/// Reads a histogram that must hold `expected` values.
pub(super) fn histogram(
    name: &str,
    field: &str,
    text: &str,
    expected: u64,
) -> Result<LatencyHistogram, MergeError> {
    let (name, field) = (name.to_owned(), field.to_owned());
    match LatencyHistogram::decode(text) {
        Err(source) => Err(MergeError::Histogram { name, field, source }),
        Ok(histogram) if histogram.count() != expected => {
            Err(MergeError::Count { name, field, found: histogram.count(), expected })
        }
        Ok(histogram) => Ok(histogram),
    }
}

/// Distinct values in the order in which they first appear.
pub(super) fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for value in values.filter(|value| !value.is_empty()) {
        if !seen.iter().any(|known| known == value) {
            seen.push(value.to_owned());
        }
    }
    seen
}
