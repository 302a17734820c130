//! Metrics as Prometheus scrapes them: text exposition 0.0.4, with classic histograms.

use crate::metric::{Families, Value};
use results::exposition::Page;

/// The metrics in Prometheus text format.
#[must_use]
pub fn text(families: &Families) -> String {
    let mut page = Page::default();
    for family in families.iter() {
        page.family(family.name, family.help, family.kind);
        for point in &family.points {
            let labels = point.labels.iter().map(|(name, value)| (name.as_ref(), value.as_str()));
            match &point.value {
                Value::Number(value) => page.number(labels, *value),
                Value::Distribution(distribution) => page.histogram(
                    labels,
                    distribution.cumulative(),
                    distribution.count(),
                    distribution.sum_s(),
                ),
                // A page simply omits series that have ended.
                Value::Ended => {}
            }
        }
    }
    page.into_text()
}
