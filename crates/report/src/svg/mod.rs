//! A small SVG writer with just the shapes that our charts need.
//!
//! Coordinates are in units of the view box, about a pixel each on a phone; the page scales charts to its
//! width. Styling (colours, dashes, text sizes) is done by classes of the page's style sheet, so that dark
//! mode and print apply. Text is escaped here. Shapes with a non-finite coordinate are omitted: a missing
//! figure never breaks a chart.

pub mod scale;

use crate::format::cut;
use results::is_acting;
use std::fmt::Write as _;

/// Width of a character relative to the text size, in the widest default fonts.
const CHARACTER_WIDTH: f64 = 0.62;
/// Size of chart text in units, the same as in the style sheet.
pub const TEXT_SIZE: f64 = 12.0;

/// Position of a text relative to its point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Anchor {
    /// Text to the right of the point.
    Start,
    /// Text centred on the point.
    Middle,
    /// Text to the left of the point.
    End,
}

/// Shapes that distinguish series without colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
    /// ▼
    TriangleDown,
    /// ✚
    Plus,
    /// ×
    Cross,
}

/// A drawing in progress.
#[derive(Debug)]
pub struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

impl Drawing {
    /// An empty drawing of this size, in units.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        if finite(&[from, to]) {
            let _ = write!(
                self.body,
                r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
                short(from.0),
                short(from.1),
                short(to.0),
                short(to.1)
            );
        }
    }

    /// A line through points; non-finite points are skipped.
    pub fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<_> = points.iter().filter(|point| finite(&[**point])).collect();
        if points.len() < 2 {
            return;
        }
        let _ = write!(self.body, r#"<polyline class="{class}" points=""#);
        for (index, (x, y)) in points.into_iter().enumerate() {
            let _ = write!(self.body, "{}{},{}", if index > 0 { " " } else { "" }, short(*x), short(*y));
        }
        self.body.push_str(r#""/>"#);
    }

    /// A filled area; omitted if a corner is not finite.
    pub fn polygon(&mut self, corners: &[(f64, f64)], class: &str) {
        if !finite(corners) {
            return;
        }
        let corners: Vec<String> =
            corners.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
        let _ = write!(self.body, r#"<polygon class="{class}" points="{}"/>"#, corners.join(" "));
    }

    /// A rectangle; omitted if it has no area.
    pub fn rectangle(&mut self, corner: (f64, f64), width: f64, height: f64, class: &str) {
        self.rectangle_with_tip(corner, width, height, class, "");
    }

    /// A rectangle with a tooltip.
    pub fn rectangle_with_tip(
        &mut self,
        corner: (f64, f64),
        width: f64,
        height: f64,
        class: &str,
        tip: &str,
    ) {
        if finite(&[corner, (width, height)]) && width > 0.0 && height > 0.0 {
            let [x, y] = [corner.0, corner.1].map(short);
            let [width, height] = [width, height].map(short);
            let _ = write!(
                self.body,
                r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}""#
            );
            self.body.push_str(&match tip_element(tip) {
                tip if tip.is_empty() => "/>".to_owned(),
                tip => format!(">{tip}</rect>"),
            });
        }
    }

    /// An invisible strip around one of several places, reaching halfway to its neighbours, with a tooltip.
    pub fn strip(&mut self, places: &[f64], index: usize, ends: (f64, f64), vertical: (f64, f64), tip: &str) {
        let Some(place) = places.get(index) else { return };
        let halfway = |other: Option<&f64>, end: f64| other.map_or(end, |other| (place + other) / 2.0);
        let before = index.checked_sub(1).and_then(|before| places.get(before));
        let (left, right) = (halfway(before, ends.0), halfway(places.get(index + 1), ends.1));
        let (width, height) = (right - left, vertical.1 - vertical.0);
        self.rectangle_with_tip((left, vertical.0), width, height, "hover", tip);
    }

    /// A marker with a radius of about `radius`, and a tooltip.
    pub fn marker(&mut self, marker: Marker, (x, y): (f64, f64), radius: f64, class: &str, tip: &str) {
        if !finite(&[(x, y)]) {
            return;
        }
        let r = radius;
        let around = |corners: &[(f64, f64)]| {
            let mut path = String::new();
            for (index, (dx, dy)) in corners.iter().enumerate() {
                let _ = write!(
                    path,
                    "{}{},{}",
                    if index == 0 { 'M' } else { 'L' },
                    short(x + dx * r),
                    short(y + dy * r)
                );
            }
            path + "Z"
        };
        let path = match marker {
            Marker::Circle => String::new(),
            Marker::Square => around(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Marker::Triangle => around(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
            Marker::TriangleDown => around(&[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)]),
            Marker::Diamond => around(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Marker::Plus => around(&[
                (-0.4, -1.2),
                (0.4, -1.2),
                (0.4, -0.4),
                (1.2, -0.4),
                (1.2, 0.4),
                (0.4, 0.4),
                (0.4, 1.2),
                (-0.4, 1.2),
                (-0.4, 0.4),
                (-1.2, 0.4),
                (-1.2, -0.4),
                (-0.4, -0.4),
            ]),
            Marker::Cross => around(&[
                (-1.1, -0.7),
                (-0.7, -1.1),
                (0.0, -0.4),
                (0.7, -1.1),
                (1.1, -0.7),
                (0.4, 0.0),
                (1.1, 0.7),
                (0.7, 1.1),
                (0.0, 0.4),
                (-0.7, 1.1),
                (-1.1, 0.7),
                (-0.4, 0.0),
            ]),
        };
        let tip = tip_element(tip);
        let _ = if marker == Marker::Circle {
            write!(
                self.body,
                r#"<circle class="{class}" cx="{}" cy="{}" r="{}">{tip}</circle>"#,
                short(x),
                short(y),
                short(r)
            )
        } else {
            write!(self.body, r#"<path class="{class}" d="{path}">{tip}</path>"#)
        };
    }

    /// A shape given by its path data, with a tooltip.
    pub(crate) fn path(&mut self, data: &str, class: &str, tip: &str) {
        let _ = write!(self.body, r#"<path class="{class}" d="{data}">{}</path>"#, tip_element(tip));
    }

    /// A line with its own width, given by its path data.
    pub(crate) fn stroke(&mut self, data: &str, class: &str, width: f64, tip: &str) {
        let (width, tip) = (short(width), tip_element(tip));
        let _ = write!(self.body, r#"<path class="{class}" stroke-width="{width}" d="{data}">{tip}</path>"#);
    }

    /// A text placed on its baseline.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        if !finite(&[(x, y)]) || text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            r#"<text class="{class}" x="{}" y="{}" text-anchor="{anchor}">{}</text>"#,
            short(x),
            short(y),
            escape(text)
        );
    }

    /// The elements without the enclosing `svg` element.
    pub(crate) fn into_body(self) -> String {
        self.body
    }

    /// The `svg` element. `id` must be unique in the page; title and description are for screen readers.
    #[must_use]
    pub fn finish(self, id: &str, title: &str, description: &str) -> String {
        let (id, title, description) = (escape(id), escape(title), escape(description));
        format!(
            concat!(
                r#"<svg class="chart" viewBox="0 0 {} {}" role="img" aria-labelledby="{id}-title {id}-description">"#,
                r#"<title id="{id}-title">{title}</title><desc id="{id}-description">{description}</desc>{}</svg>"#
            ),
            short(self.width),
            short(self.height),
            self.body,
            id = id,
            title = title,
            description = description,
        )
    }
}

impl Drawing {
    /// The `svg` element for a drawing whose content is already in the text beside it: hidden from screen
    /// readers.
    #[must_use]
    pub fn finish_decoration(self, class: &str) -> String {
        format!(
            r#"<svg class="{class}" viewBox="0 0 {} {}" aria-hidden="true">{}</svg>"#,
            short(self.width),
            short(self.height),
            self.body
        )
    }
}

/// Approximate width of a text of [`TEXT_SIZE`], in units.
#[must_use]
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * TEXT_SIZE * CHARACTER_WIDTH
}

/// The text, with `…` in its middle if it would be wider than `width`.
#[must_use]
pub fn fitted(text: &str, width: f64) -> String {
    cut(text, ((width / (TEXT_SIZE * CHARACTER_WIDTH)).floor() as usize).max(2))
}

/// The text in lines of at most this width, broken at spaces. A word that is wider is cut in its middle.
#[must_use]
pub fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(word) + text_width(" ") <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fitted(word, width)),
        }
    }
    lines
}

fn tip_element(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}

fn finite(points: &[(f64, f64)]) -> bool {
    points.iter().all(|(x, y)| x.is_finite() && y.is_finite())
}

/// Formats a coordinate with one decimal, which is finer than any screen.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Escapes text for an element or an attribute. Control characters, which XML does not allow, and those that turn the direction of
/// writing become spaces.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other if is_acting(other) => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_finite_coordinates_are_omitted() {
        let mut drawing = Drawing::new(100.0, 50.0);
        drawing.line((0.0, f64::NAN), (1.0, 1.0), "axis");
        drawing.rectangle((0.0, 0.0), f64::INFINITY, 3.0, "bar");
        drawing.marker(Marker::Plus, (f64::NAN, 0.0), 3.0, "dot", "");
        drawing.text((f64::NEG_INFINITY, 0.0), Anchor::Start, "label", "x");
        drawing.polyline(&[(0.0, 0.0), (f64::NAN, 1.0)], "curve");
        drawing.polyline(&[(0.0, 0.0), (f64::NAN, 1.0), (2.0, 2.25)], "curve");
        let svg = drawing.finish("chart-1", "t", "d");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains(r#"<polyline class="curve" points="0,0 2,2.2"/></svg>"#), "{svg}");
    }

    #[test]
    fn text_is_escaped() {
        let mut drawing = Drawing::new(1.0, 1.0);
        drawing.text((0.0, 0.0), Anchor::Middle, "label", "<script>\u{1b}");
        drawing.marker(Marker::Circle, (0.0, 0.0), 1.0, "dot", "</title><script>");
        let svg = drawing.finish("chart-1", "<b>", "\"'");
        assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
    }

    #[test]
    fn long_text_is_shortened() {
        assert_eq!(fitted("short", 100.0), "short");
        let text = fitted("a-name-that-does-not-fit", 60.0);
        assert!(text.starts_with("a-n") && text.ends_with("fit") && text_width(&text) <= 60.0, "{text}");
        let lines = wrapped("one two a-name-that-does-not-fit", 60.0);
        assert_eq!(lines, ["one two".to_owned(), text]);
    }
}
