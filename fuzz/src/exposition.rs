//! Invariants of any page of Prometheus' text format. Included by the fuzz target and by the test that replays the corpus.

use results::exposition::{Exposition, Kind, Page, add_up, samples};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of an error's excerpt of a page, characters.
const MAX_SHOWN: usize = 80;
const LABEL: &str = "code";

/// # Panics
/// Panics if an invariant is violated.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let names: BTreeSet<&str> = samples(text).map(|sample| sample.name).collect();
    match Exposition::parse(text) {
        Ok(page) => check_page(&page, &names, samples(text).count()),
        Err(error) => {
            assert!((1..=text.lines().count()).contains(&error.line), "{error}");
            assert!(!error.text.is_empty() && error.text.chars().count() <= MAX_SHOWN, "{error}");
        }
    }
    let mut counters = BTreeMap::new();
    add_up(text, |sample| vec![sample.name.to_owned()], &mut counters);
    assert_eq!(counters.len(), names.len());
    check_written(text);
}

/// Strict and lenient readers agree, and sums do not overflow.
fn check_page(page: &Exposition<'_>, names: &BTreeSet<&str>, count: usize) {
    assert_eq!(names.iter().map(|name| page.named(name).count()).sum::<usize>(), count);
    for name in names {
        assert!(page.sum(name).is_some(), "{name}");
        let counts = page.counts_by(name, LABEL);
        assert!(counts.len() <= page.named(name).count(), "{name}");
        let Some(of_histogram) = name.strip_suffix("_count") else { continue };
        let mut histogram = page.histogram(of_histogram).expect("it has a count");
        assert!(histogram.buckets.is_sorted_by(|one, other| one.0 < other.0), "{histogram:?}");
        let once = histogram.clone();
        histogram.add(&once);
        assert_eq!(histogram.buckets.len(), once.buckets.len());
        assert!(histogram.since(&once).count <= histogram.count);
    }
}

/// Any text is read back as it was written as a label.
fn check_written(text: &str) {
    let mut page = Page::default();
    page.family("requests", text, Kind::Counter);
    page.number([(LABEL, text)], 3.0);
    let page = page.into_text();
    let read = Exposition::parse(&page).unwrap_or_else(|error| panic!("{error}"));
    let sample = read.named("requests").next().expect("the sample");
    assert_eq!((sample.label(LABEL).as_deref(), sample.value), (Some(text), 3.0));
}
