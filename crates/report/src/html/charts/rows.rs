//! Charts of rows: a label and a figure as text, and below them the same figure on an axis that all rows
//! share.
//!
//! Used for added latency (dot and whisker), for CPU and memory (bars with whiskers) and for single trials
//! (dots). Every row has its figure as text, so nothing depends on colour.

use super::WIDTH;
use crate::format;
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing, Marker, fitted, text_width, wrapped};

const LEFT: f64 = 5.0;
const RIGHT_MARGIN: f64 = 8.0;
const HEADING_HEIGHT: f64 = 26.0;
const TEXT_HEIGHT: f64 = 18.0;
const LINE_HEIGHT: f64 = 15.0;
const AXIS_HEIGHT: f64 = 40.0;
const DOT_STEP: f64 = 7.0;

/// A chart of rows.
#[derive(Debug)]
pub struct RowChart {
    /// Label of the axis: what the figures are, with their unit.
    pub axis: String,
    /// From top to bottom.
    pub lines: Vec<Line>,
    /// Further figures that the axis must cover, so that several charts can share it.
    pub shared: Vec<f64>,
    /// Allows a logarithmic axis if the figures span a wide range; otherwise the axis starts at zero.
    pub may_be_logarithmic: bool,
}

/// One line of the chart.
#[derive(Debug)]
pub enum Line {
    /// Heading of a group.
    Heading(String),
    /// Row with a figure.
    Row(Row),
}

/// One figure.
#[derive(Debug)]
pub struct Row {
    /// Name of what the figure belongs to.
    pub label: String,
    /// Marker and class, the same as in other charts.
    pub symbol: Option<(Marker, &'static str)>,
    /// The figure as text.
    pub value: String,
    /// How the figure is drawn.
    pub mark: Mark,
}

/// How a figure is drawn; all values are in the unit of the axis.
#[derive(Debug)]
pub enum Mark {
    /// An estimate with its interval.
    Whisker {
        /// Position of the marker.
        estimate: f64,
        /// Confidence interval.
        interval: Option<(f64, f64)>,
        /// Marker of the estimate.
        marker: Marker,
        /// CSS class of the mode.
        class: &'static str,
    },
    /// A change with its interval, over the range around zero within which a change counts as none.
    Change {
        /// Position of the marker.
        estimate: f64,
        /// Confidence interval.
        interval: Option<(f64, f64)>,
        /// Half-width of the range.
        margin: f64,
        /// Marker of the estimate.
        marker: Marker,
        /// CSS class.
        class: &'static str,
    },
    /// A bar from zero, with its interval.
    Bar {
        /// Length of the bar.
        value: f64,
        /// Length that is drawn solid, from zero; the rest is pale.
        part: Option<f64>,
        /// Confidence interval.
        interval: Option<(f64, f64)>,
        /// CSS class of the mode, or `other`.
        class: &'static str,
    },
    /// Dots, each in its own track within the row.
    Dots(Vec<Dot>),
    /// No figure.
    Nothing,
}

/// One dot of a row.
#[derive(Debug)]
pub struct Dot {
    /// Position on the axis.
    pub value: f64,
    /// Track within the row, from the top, starting at 0.
    pub track: usize,
    /// Shape of the dot.
    pub marker: Marker,
    /// CSS classes of the dot.
    pub class: String,
    /// Text of the tooltip.
    pub tip: String,
}

impl Mark {
    fn figures(&self) -> Vec<f64> {
        match self {
            Self::Whisker { estimate: value, interval, .. } | Self::Bar { value, interval, .. } => {
                let (low, high) = interval.unwrap_or((*value, *value));
                vec![*value, low, high]
            }
            Self::Change { estimate, interval, margin, .. } => {
                let (low, high) = interval.unwrap_or((*estimate, *estimate));
                vec![*estimate, low, high, -margin, *margin]
            }
            Self::Dots(dots) => dots.iter().map(|dot| dot.value).collect(),
            Self::Nothing => Vec::new(),
        }
    }

    fn height(&self) -> f64 {
        match self {
            Self::Whisker { .. } | Self::Change { .. } => 19.0,
            Self::Bar { .. } => 13.0,
            Self::Dots(dots) => {
                dots.iter().map(|dot| dot.track + 1).max().unwrap_or(1) as f64 * DOT_STEP + 6.0
            }
            Self::Nothing => 4.0,
        }
    }
}

impl RowChart {
    /// The chart as SVG.
    pub fn draw(&self, id: &str, title: &str) -> String {
        self.draw_in(WIDTH, id, title)
    }

    /// The chart as SVG, in a width in units.
    pub fn draw_in(&self, width: f64, id: &str, title: &str) -> String {
        let mut figures = self.figures();
        figures.extend(&self.shared);
        let range = (LEFT, width - RIGHT_MARGIN);
        let scale = if self.may_be_logarithmic {
            Scale::fitting(&figures, range)
        } else {
            Scale::linear(figures, range)
        };
        let bottom: f64 = self.lines.iter().map(|line| line.height(width)).sum();
        let axis_height = AXIS_HEIGHT + further_lines(&wrapped(&self.axis, width));
        let mut drawing = Drawing::new(width, bottom + axis_height);
        let ticks = scale.ticks(5);
        self.draw_axis(&mut drawing, &scale, &ticks, (width, bottom));
        let mut top = 0.0;
        for line in &self.lines {
            match line {
                Line::Heading(text) => {
                    for (index, text) in wrapped(text, width).iter().enumerate() {
                        let y = top + 17.0 + index as f64 * LINE_HEIGHT;
                        drawing.text((0.0, y), Anchor::Start, "heading", text);
                    }
                }
                Line::Row(row) => row.draw(&mut drawing, &scale, &ticks, (width, top)),
            }
            top += line.height(width);
        }
        drawing.finish(id, title, &self.description())
    }

    /// Every figure in the chart, including ends of intervals, in the unit of the axis.
    pub fn figures(&self) -> Vec<f64> {
        self.rows().flat_map(|row| row.mark.figures()).collect()
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.lines.iter().filter_map(|line| match line {
            Line::Row(row) => Some(row),
            Line::Heading(_) => None,
        })
    }

    fn draw_axis(&self, drawing: &mut Drawing, scale: &Scale, ticks: &[f64], (width, bottom): (f64, f64)) {
        drawing.line((LEFT, bottom), (width - RIGHT_MARGIN, bottom), "axis");
        for tick in ticks {
            let x = scale.place(*tick);
            drawing.line((x, bottom), (x, bottom + 4.0), "axis");
            let text = format::tick(*tick);
            let half = text_width(&text) / 2.0 + 3.0;
            // Not `clamp`, which panics if the text is wider than the chart: a figure of 300 digits.
            let x = x.min(width - half).max(half);
            drawing.text((x, bottom + 17.0), Anchor::Middle, "tick", &text);
        }
        for (index, text) in wrapped(&self.axis, width).iter().enumerate() {
            let y = bottom + 34.0 + index as f64 * LINE_HEIGHT;
            drawing.text((width / 2.0, y), Anchor::Middle, "tick", text);
        }
    }

    fn description(&self) -> String {
        let mut text = format!("{}.", self.axis);
        for line in &self.lines {
            text.push(' ');
            match line {
                Line::Heading(heading) => text.push_str(&format!("{heading}:")),
                Line::Row(row) => text.push_str(&format!("{} {};", row.label, row.value)),
            }
        }
        text
    }
}

impl Line {
    fn height(&self, width: f64) -> f64 {
        match self {
            Self::Heading(text) => HEADING_HEIGHT + further_lines(&wrapped(text, width)),
            Self::Row(row) => row.text_height(width) + row.mark.height(),
        }
    }
}

/// Height of the lines after the first.
fn further_lines(lines: &[String]) -> f64 {
    lines.len().saturating_sub(1) as f64 * LINE_HEIGHT
}

impl Row {
    fn indent(&self) -> f64 {
        if self.symbol.is_some() { 14.0 } else { 0.0 }
    }

    /// Lines of the label. The last is beside the value; it is empty if there is no room for both.
    fn label_lines(&self, width: f64) -> Vec<String> {
        let room = width - self.indent();
        let mut lines = wrapped(&self.label, room);
        let last = lines.last().map_or(0.0, |line| text_width(line));
        if last + text_width(&self.value) + 8.0 > room {
            lines.push(String::new());
        }
        lines
    }

    fn text_height(&self, width: f64) -> f64 {
        TEXT_HEIGHT + further_lines(&self.label_lines(width))
    }

    fn draw(&self, drawing: &mut Drawing, scale: &Scale, ticks: &[f64], (width, top): (f64, f64)) {
        let indent = self.indent();
        if let Some((marker, class)) = self.symbol {
            drawing.marker(marker, (5.0, top + 9.5), 3.6, &format!("mark {class}"), "");
        }
        let lines = self.label_lines(width);
        for (index, line) in lines.iter().enumerate() {
            let y = top + 13.5 + index as f64 * LINE_HEIGHT;
            drawing.text((indent, y), Anchor::Start, "label", line);
        }
        let text_y = top + 13.5 + further_lines(&lines);
        drawing.text((width, text_y), Anchor::End, "value", &fitted(&self.value, width));
        let top = top + self.text_height(width);
        // The grid is limited to the plot area, so that it does not cross text.
        for tick in ticks {
            let x = scale.place(*tick);
            let class = if *tick == 0.0 { "axis" } else { "grid" };
            drawing.line((x, top), (x, top + self.mark.height() - 3.0), class);
        }
        let tip = format!("{}: {}", self.label, self.value);
        if matches!(self.mark, Mark::Whisker { .. } | Mark::Change { .. } | Mark::Bar { .. }) {
            drawing.rectangle_with_tip((0.0, top), width, self.mark.height(), "hover", &tip);
        }
        if let Mark::Change { margin, .. } = self.mark {
            let (low, high) = (scale.place(-margin), scale.place(margin));
            drawing.rectangle((low, top + 1.0), high - low, 14.0, "band grey");
        }
        match &self.mark {
            Mark::Whisker { estimate, interval, marker, class }
            | Mark::Change { estimate, interval, marker, class, .. } => {
                let y = top + 8.0;
                draw_interval(drawing, scale, *interval, y, 4.0, &format!("whisker {class}"));
                drawing.marker(*marker, (scale.place(*estimate), y), 4.2, &format!("mark {class}"), &tip);
            }
            Mark::Bar { value, part, interval, class } => {
                let start = scale.place(0.0);
                let mut draw = |value: f64, class: &str| {
                    let end = scale.place(value);
                    let corner = (start.min(end), top + 1.0);
                    drawing.rectangle_with_tip(corner, (end - start).abs(), 7.0, class, &tip);
                };
                draw(*value, &format!("bar {}{class}", if part.is_some() { "pale " } else { "" }));
                if let Some(part) = part {
                    draw(*part, &format!("bar {class}"));
                }
                draw_interval(drawing, scale, *interval, top + 4.5, 3.0, "whisker on-bar");
            }
            Mark::Dots(dots) => {
                for dot in dots {
                    let place = (scale.place(dot.value), top + 5.0 + dot.track as f64 * DOT_STEP);
                    drawing.marker(dot.marker, place, 3.0, &dot.class, &dot.tip);
                }
            }
            Mark::Nothing => {}
        }
    }
}

fn draw_interval(
    drawing: &mut Drawing,
    scale: &Scale,
    interval: Option<(f64, f64)>,
    y: f64,
    cap: f64,
    class: &str,
) {
    let Some((low, high)) = interval else { return };
    let (low, high) = (scale.place(low), scale.place(high));
    drawing.line((low, y), (high, y), class);
    for x in [low, high] {
        drawing.line((x, y - cap), (x, y + cap), class);
    }
}
