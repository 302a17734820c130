//! The report as one self-contained HTML file: no script, nothing fetched, and a policy in the page that forbids both.
//!
//! Read `sections/` for what each part says, [`charts`] for how figures are drawn, `templates/` for the page itself.
//! Templates escape all text; only our own SVG is passed through, and its writer escapes.

pub mod charts;
mod curves;
mod sections;
pub mod style;

use crate::run::RunData;
use minijinja::{AutoEscape, Environment};

/// The page.
///
/// # Panics
/// Never for any run: the templates are constants that the tests render.
#[must_use]
pub fn render(run: &RunData) -> String {
    let page = sections::Page::new(run);
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source).expect("templates are constants");
    }
    let template = environment.get_template("report.html").expect("templates are constants");
    template.render(minijinja::value::Serde(&page)).expect("the page has what its template names")
}

/// Embedded, so that the command is one file too.
const TEMPLATES: [(&str, &str); 11] = [
    ("report.html", include_str!("../../templates/report.html")),
    ("style.css", include_str!("../../templates/style.css")),
    ("colours.css", include_str!("../../templates/colours.css")),
    ("graph.css", include_str!("../../templates/graph.css")),
    ("parts.html", include_str!("../../templates/parts.html")),
    ("results.html", include_str!("../../templates/results.html")),
    ("corrected.html", include_str!("../../templates/corrected.html")),
    ("reservations.html", include_str!("../../templates/reservations.html")),
    ("drivers.html", include_str!("../../templates/drivers.html")),
    ("evidence.html", include_str!("../../templates/evidence.html")),
    ("tables.html", include_str!("../../templates/tables.html")),
];
