//! Prometheus' text format 0.0.4: `name{label="value",…} number [timestamp]`, one sample per line.
//! [`samples`] reads line by line, [`Exposition`] reads a whole page strictly, [`Page`] writes one. Readers skip
//! comments (HELP, TYPE): callers know the types of the metrics they read.

mod page;

pub use page::{CONTENT_TYPE, Kind, Page};

use crate::ReportedHistogram;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum length of an invalid line in an error.
const MAX_SHOWN_CHARACTERS: usize = 80;
/// Label with the upper bound of a histogram's bucket.
const BUCKET_BOUND: &str = "le";

/// One sample of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Name of the metric, of a histogram with its suffix.
    pub name: &'a str,
    /// Names and values; the values are still escaped.
    labels: Vec<(&'a str, &'a str)>,
    /// Value, also of counts.
    pub value: f64,
    /// Time of the sample in milliseconds since 1970; absent: when the page was read.
    pub timestamp_ms: Option<f64>,
}

/// A line that is not a sample.
#[derive(Debug, thiserror::Error, Eq, PartialEq)]
#[error("line {line} is not a sample of Prometheus' text format: `{text}`")]
pub struct ExpositionError {
    /// Its number, from 1.
    pub line: usize,
    /// The first 80 characters of the line.
    pub text: String,
}

impl<'a> Sample<'a> {
    /// The value of a label; absent if the sample has no such label.
    pub fn label(&self, name: &str) -> Option<Cow<'a, str>> {
        self.labels.iter().find(|(known, _)| *known == name).map(|(_, value)| unescape(value))
    }

    fn read(line: &'a str) -> Option<Self> {
        let name_length = line.find(['{', ' ', '\t'])?;
        let (name, rest) = line.split_at(name_length);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => read_labels(rest)?,
            None => (Vec::new(), rest),
        };
        let mut numbers = rest.split_ascii_whitespace();
        let value = numbers.next()?.parse().ok()?;
        let timestamp_ms = numbers.next().map(str::parse).transpose().ok()?;
        let is_sample = is_name(name) && numbers.next().is_none();
        is_sample.then_some(Self { name, labels, value, timestamp_ms })
    }
}

/// Samples of a page; skips lines that are not samples.
pub fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    sample_lines(text).filter_map(|(_, line)| Sample::read(line))
}

/// Adds each sample of a page to the counters of these names.
pub fn add_up(text: &str, names: impl Fn(&Sample<'_>) -> Vec<String>, counters: &mut BTreeMap<String, u64>) {
    for sample in samples(text) {
        for name in names(&sample) {
            let sum = counters.entry(name).or_default();
            *sum = sum.saturating_add(sample.value as u64);
        }
    }
}

/// Lines expected to be samples, with their line numbers.
fn sample_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Parsed samples of a whole page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exposition<'a>(Vec<Sample<'a>>);

impl<'a> Exposition<'a> {
    /// Reads a page.
    ///
    /// # Errors
    /// Returns an error naming the first line that is not a sample.
    pub fn parse(text: &'a str) -> Result<Self, ExpositionError> {
        let sample = |(line, text): (usize, &'a str)| {
            Sample::read(text).ok_or_else(|| ExpositionError {
                line,
                text: text.chars().take(MAX_SHOWN_CHARACTERS).collect(),
            })
        };
        sample_lines(text).map(sample).collect::<Result<_, _>>().map(Self)
    }

    /// Samples of this name.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Sample<'a>> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// Sum over all label sets; absent if there is no sample.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.named(name).map(|sample| sample.value).fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// Counts by the value of a label.
    pub fn counts_by(&self, name: &str, label: &str) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for sample in self.named(name) {
            let value = sample.label(label).unwrap_or_default().into_owned();
            let count: &mut u64 = counts.entry(value).or_default();
            *count = count.saturating_add(sample.value as u64);
        }
        counts
    }

    /// Sum of a histogram over its label sets, which must have the same buckets. Absent if there is no sample.
    pub fn histogram(&self, name: &str) -> Option<ReportedHistogram> {
        let count = self.sum(&format!("{name}_count"))? as u64;
        let sum = self.sum(&format!("{name}_sum")).unwrap_or_default();
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for sample in self.named(&format!("{name}_bucket")) {
            let bound = sample.label(BUCKET_BOUND).and_then(|bound| bound.parse::<f64>().ok());
            let Some(bound) = bound.filter(|bound| bound.is_finite()) else { continue };
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, count)) => *count = count.saturating_add(sample.value as u64),
                None => buckets.push((bound, sample.value as u64)),
            }
        }
        buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Some(ReportedHistogram { count, sum, buckets })
    }
}

/// Labels up to the closing brace, and the text after it.
fn read_labels(text: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let (mut labels, mut rest) = (Vec::new(), text.trim_start());
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, value) = rest.split_once("=\"")?;
        let (name, end) = (name.trim(), value_length(value)?);
        if !is_name(name) {
            return None;
        }
        labels.push((name, &value[..end]));
        let after = value[end + 1..].trim_start();
        rest = match after.strip_prefix(',') {
            Some(rest) => rest.trim_start(),
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// Bytes up to the closing quotation mark.
fn value_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped })),
            _ => text.push(character),
        }
    }
    Cow::Owned(text)
}

fn is_name(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_:.".contains(character);
    !text.is_empty() && text.chars().all(is_part) && !text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of a real istiod.
    const PAGE: &str = r#"# HELP pilot_debounce_time Delay in seconds.
# TYPE pilot_debounce_time histogram
pilot_debounce_time_bucket{le="0.01"} 2
pilot_debounce_time_bucket{le="0.1"} 5
pilot_debounce_time_bucket{le="+Inf"} 7
pilot_debounce_time_sum 1.25
pilot_debounce_time_count 7
pilot_xds_push_time_bucket{type="cds",le="0.01"} 3
pilot_xds_push_time_bucket{type="eds",le="0.01"} 4
pilot_xds_push_time_sum{type="cds"} 0.5
pilot_xds_push_time_sum{type="eds"} 0.25
pilot_xds_push_time_count{type="cds"} 3
pilot_xds_push_time_count{type="eds"} 5
process_resident_memory_bytes 1.24821504e+08
go_info{version="go1.26",note="a \"quoted\" \\ and } and \n"} 1 1700000000000

pilot_xds{version="1.31.1", } NaN
"#;

    #[test]
    fn whole_page_is_parsed() {
        let page = Exposition::parse(PAGE).unwrap();
        assert_eq!(page.sum("process_resident_memory_bytes"), Some(124_821_504.0));
        assert_eq!(page.sum("absent"), None);
        assert!(page.sum("pilot_xds").unwrap().is_nan());
        let info = page.named("go_info").next().unwrap();
        assert_eq!(info.label("note").as_deref(), Some("a \"quoted\" \\ and } and \n"));
        assert_eq!(info.label("version").as_deref(), Some("go1.26"));
        assert_eq!(info.label("ersion"), None);
        let timestamp = |name| page.named(name).next().unwrap().timestamp_ms;
        assert_eq!((timestamp("go_info"), timestamp("pilot_xds")), (Some(1.7e12), None));
        let by_type = page.counts_by("pilot_xds_push_time_count", "type");
        assert_eq!(by_type, BTreeMap::from([("cds".to_owned(), 3), ("eds".to_owned(), 5)]));
    }

    #[test]
    fn histogram_adds_up_its_label_sets() {
        let page = Exposition::parse(PAGE).unwrap();
        let expected = ReportedHistogram { count: 7, sum: 1.25, buckets: vec![(0.01, 2), (0.1, 5)] };
        assert_eq!(page.histogram("pilot_debounce_time"), Some(expected));
        let expected = ReportedHistogram { count: 8, sum: 0.75, buckets: vec![(0.01, 7)] };
        assert_eq!(page.histogram("pilot_xds_push_time"), Some(expected));
        assert_eq!(page.histogram("absent"), None);
    }

    #[test]
    fn line_that_is_not_a_sample_is_named_or_skipped() {
        for line in [
            "<html>",
            "404 page not found",
            "name",
            "name{a=\"b\" 1",
            "name{a=b} 1",
            "name{a=\"b\"c=\"d\"} 1",
            "name one",
            "name 1 2 3",
            "name 1 later",
        ] {
            let text = format!("ok 1\n{line}\nok 2\n");
            let error = Exposition::parse(&text).unwrap_err();
            assert_eq!(error, ExpositionError { line: 2, text: line.to_owned() });
            assert_eq!(samples(&text).count(), 2, "{line}");
        }
        assert_eq!(Exposition::parse("").unwrap(), Exposition::default());
    }
}
