//! The report as one self-contained HTML file: no script, no external resources, and a content security
//! policy that forbids both. [`view`] has the pages of `meshmeter view`, whose only script adds what is new.
//!
//! `sections/` has the content of each part, [`charts`] draws figures, `templates/` is the page itself.
//! Templates escape all text; only our own SVG is passed through, and its writer escapes.

pub mod charts;
mod course;
mod curves;
pub(crate) mod sections;
pub mod style;
pub mod view;

use crate::comparison::Page;
use crate::profile::Profile;
use crate::run::RunData;
use crate::side_by_side::SideBySide;
use crate::size::SizeParts;
use minijinja::{AutoEscape, Environment};
use results::{Comparison, PriceResult, SizeResult};
use serde::Serialize;
use std::sync::LazyLock;

/// The report page.
///
/// # Panics
/// Never for any run: the templates are constants that the tests render.
#[must_use]
pub fn render(run: &RunData) -> String {
    fill("report.html", &sections::Page::new(run))
}

/// The page of a comparison.
///
/// # Panics
/// Never: the template is a constant that the tests render.
#[must_use]
pub fn render_comparison(comparison: &Comparison, profiles: &[Profile]) -> String {
    fill("comparison.html", &Page::new(comparison, profiles))
}

/// The page of a comparison, for two runs side by side.
///
/// # Panics
/// Never: the template is a constant that the tests render.
#[must_use]
pub fn render_side_by_side(compared: &SideBySide) -> String {
    fill("comparison.html", &Page::side_by_side(compared))
}

/// The page of an answer of `meshmeter size`.
///
/// # Panics
/// Never: the template is a constant that the tests render.
#[must_use]
pub fn render_size(result: &SizeResult) -> String {
    fill("size.html", &SizeParts::new(result))
}

/// The page of an answer of `meshmeter price`.
///
/// # Panics
/// Never: the template is a constant that the tests render.
#[must_use]
pub fn render_price(result: &PriceResult) -> String {
    fill("size.html", &SizeParts::of_price(result))
}

fn fill(template: &str, page: &impl Serialize) -> String {
    let template = ENVIRONMENT.get_template(template).expect("templates are constants");
    template.render(minijinja::value::Serde(page)).expect("the page has what its template names")
}

/// All templates, read once: pages that are watched have parts that are rendered each second.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    for (name, source) in TEMPLATES.iter().copied() {
        environment.add_template(name, source).expect("templates are constants");
    }
    environment
});

/// Name and text of each file in `templates/`.
macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../templates/", $name)))),*]
    };
}

/// Each section has a file here, a file in `sections/` and a line in `report.html`.
const TEMPLATES: &[(&str, &str)] = templates![
    "report.html",
    "head.html",
    "style.css",
    "colours.css",
    "graph.css",
    "parts.html",
    "glance.html",
    "streams.html",
    "rates.html",
    "throughput.html",
    "percentiles.html",
    "added.html",
    "resources.html",
    "profiles.html",
    "gateways.html",
    "fleets.html",
    "differences.html",
    "factors.html",
    "scaling.html",
    "control-plane-model.html",
    "sizes.html",
    "domains.html",
    "holdings.html",
    "trials.html",
    "corrected.html",
    "disturbed.html",
    "drivers.html",
    "reservations.html",
    "excluded.html",
    "path.html",
    "published.html",
    "machine.html",
    "method.html",
    "repeat.html",
    "tables.html",
    "comparison.html",
    "size.html",
    "view.html",
    "view-course.html",
    "view-links.html",
    "view-list.html",
    "view-notes.html",
    "view-now.html",
    "view-last.html",
    "view-rows.html",
];
