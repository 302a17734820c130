//! Writing Prometheus' text format.

use super::BUCKET_BOUND;
use std::fmt::{Display, Write};

/// HTTP content type of a [`Page`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Meaning of a metric's values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A count that grows.
    Counter,
    /// A distribution with cumulative counts.
    Histogram,
}

/// A page in the making. The samples of a family follow its [`Page::family`].
#[derive(Clone, Debug, Default)]
pub struct Page {
    text: String,
    family: String,
}

impl Page {
    /// Begins a family of samples. `help` is one line or more of prose.
    pub fn family(&mut self, name: &str, help: &str, kind: Kind) {
        name.clone_into(&mut self.family);
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        self.push_escaped(help, false);
        self.line(format_args!("\n# TYPE {name} {kind}"));
    }

    /// A sample of a gauge or counter.
    pub fn number<'l>(&mut self, labels: impl IntoIterator<Item = (&'l str, &'l str)>, value: f64) {
        self.sample("", labels, None, number(value));
    }

    /// A histogram: upper bounds in ascending order with cumulative counts, and what it holds in all.
    /// The bucket without a bound is added.
    pub fn histogram<'l>(
        &mut self,
        labels: impl IntoIterator<Item = (&'l str, &'l str)> + Clone,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        for (bound, cumulative) in buckets {
            self.sample("_bucket", labels.clone(), Some(&bound.to_string()), cumulative);
        }
        self.sample("_bucket", labels.clone(), Some("+Inf"), count);
        self.sample("_sum", labels.clone(), None, number(sum));
        self.sample("_count", labels, None, count);
    }

    /// The page as text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn sample<'l>(
        &mut self,
        suffix: &str,
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.text.push_str(&self.family);
        self.text.push_str(suffix);
        let mut opening = '{';
        for (name, value) in labels {
            self.label(&mut opening, name, value);
        }
        if let Some(bound) = bound {
            self.label(&mut opening, BUCKET_BOUND, bound);
        }
        let closing = if opening == '{' { "" } else { "}" };
        self.line(format_args!("{closing} {value}"));
    }

    /// `opening`: what stands before it.
    fn label(&mut self, opening: &mut char, name: &str, value: &str) {
        self.text.push(std::mem::replace(opening, ','));
        self.text.push_str(name);
        self.text.push_str("=\"");
        self.push_escaped(value, true);
        self.text.push('"');
    }

    fn line(&mut self, text: impl Display) {
        writeln!(self.text, "{text}").expect("a string takes any text");
    }

    fn push_escaped(&mut self, text: &str, is_quoted: bool) {
        for character in text.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '"' if is_quoted => self.text.push_str("\\\""),
                _ => self.text.push(character),
            }
        }
    }
}

/// The format's names of what is not finite differ from Rust's.
fn number(value: f64) -> String {
    if value.is_infinite() {
        if value.is_sign_positive() { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::Exposition;

    #[test]
    fn page_is_written_and_read_back() {
        let mut page = Page::default();
        page.family("requests_total", "Of \\ all\nkinds, \"quoted\".", Kind::Counter);
        page.number([("code", "200"), ("path", "a \"b\" \\ c\n")], 12_000_000_000.0);
        page.number([], 0.5);
        page.family("limit", "None.", Kind::Gauge);
        page.number([], f64::INFINITY);
        page.number([("side", "other")], f64::NEG_INFINITY);
        page.family("duration_seconds", "Of calls.", Kind::Histogram);
        page.histogram([("to", "b")], [(0.000_05, 1), (10.0, 3)], 4, 12.5);
        let text = page.into_text();
        assert_eq!(
            text,
            "# HELP requests_total Of \\\\ all\\nkinds, \"quoted\".
# TYPE requests_total counter
requests_total{code=\"200\",path=\"a \\\"b\\\" \\\\ c\\n\"} 12000000000
requests_total 0.5
# HELP limit None.
# TYPE limit gauge
limit +Inf
limit{side=\"other\"} -Inf
# HELP duration_seconds Of calls.
# TYPE duration_seconds histogram
duration_seconds_bucket{to=\"b\",le=\"0.00005\"} 1
duration_seconds_bucket{to=\"b\",le=\"10\"} 3
duration_seconds_bucket{to=\"b\",le=\"+Inf\"} 4
duration_seconds_sum{to=\"b\"} 12.5
duration_seconds_count{to=\"b\"} 4
"
        );
        let read = Exposition::parse(&text).unwrap();
        assert_eq!(read.sum("requests_total"), Some(12_000_000_000.5));
        assert_eq!(read.named("requests_total").next().unwrap().label("path").unwrap(), "a \"b\" \\ c\n");
        assert_eq!(read.histogram("duration_seconds").unwrap().buckets, [(0.000_05, 1), (10.0, 3)]);
    }
}
