//! What is wrong with an experiment, shown at its place in the text.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Longest line that is shown around a place, bytes. A file of one endless line is cut to this much.
const LONGEST_LINE_SHOWN: usize = 160;

/// A text that an experiment comes from: a file, or an option of the command line.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Source {
    /// A file's name, or an option such as `--set`.
    pub(crate) name: String,
    /// All of it.
    pub(crate) text: String,
}

/// Where something stands in a source.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) source: Arc<Source>,
    /// Bytes of the source's text.
    pub(crate) span: Range<usize>,
}

impl Place {
    /// The first error at this place: what is wrong, and what to write beside the text.
    pub(crate) fn error(&self, message: impl Into<String>, label: impl Into<String>) -> Box<ExperimentError> {
        let text = &self.source.text;
        let start = floor_to_character(text, self.span.start);
        let end = floor_to_character(text, self.span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        Box::new(ExperimentError {
            message: message.into(),
            label: label.into(),
            source_name: self.source.name.clone(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            span: start..end,
            hint: None,
            source: Arc::clone(&self.source),
        })
    }
}

/// The nearest character boundary at or before a byte.
fn floor_to_character(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

/// An experiment that cannot be run as it is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExperimentError {
    /// What is wrong.
    pub message: String,
    /// What to write beside the place: what was expected.
    pub label: String,
    /// The file's name, or the option (such as `--set`) that it comes from.
    pub source_name: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The same place in bytes of the source's text. Empty where something is missing.
    pub span: Range<usize>,
    /// What to do about it.
    pub hint: Option<String>,
    source: Arc<Source>,
}

impl ExperimentError {
    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// The error for a terminal: the message, the place in the text with a label, the hint. Opens with the message
    /// itself, without a word such as `error`, and has no line break at its end.
    #[must_use]
    pub fn render(&self, colors: bool) -> String {
        let renderer = if colors { Renderer::styled() } else { Renderer::plain() };
        let (lines, first_line, span) = self.surroundings();
        let snippet = Snippet::source(lines)
            .path(self.source_name.as_str())
            .line_start(first_line)
            .annotation(AnnotationKind::Primary.span(span).label(self.label.as_str()));
        let mut group = Group::with_level(Level::ERROR).element(snippet);
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
        }
        format!("{}\n{}", self.message, renderer.render(&[group]))
    }

    /// The line of the error with one before it, as they may be shown, the number of the first, and the place in them.
    fn surroundings(&self) -> (String, usize, Range<usize>) {
        let text = self.source.text.as_str();
        let line_start = text[..self.span.start].rfind('\n').map_or(0, |newline| newline + 1);
        let before = text[..line_start.saturating_sub(1)].rfind('\n').map_or(0, |newline| newline + 1);
        let shows_before = before < line_start && line_start - before <= LONGEST_LINE_SHOWN;
        let mut lines = String::new();
        if shows_before {
            lines.push_str(&shown(&text[before..line_start - 1]));
            lines.push('\n');
        }
        let line = text[line_start..].split('\n').next().unwrap_or_default();
        let offset = self.span.start - line_start;
        // A window of the line around the place where the line is too long to show.
        let from = floor_to_character(
            line,
            if offset > LONGEST_LINE_SHOWN / 2 && line.len() > LONGEST_LINE_SHOWN {
                offset - LONGEST_LINE_SHOWN / 2
            } else {
                0
            },
        );
        let to = floor_to_character(line, (from + LONGEST_LINE_SHOWN).min(line.len()));
        let end = (self.span.end - line_start).clamp(offset, to.max(offset));
        let start_shown = lines.len() + shown(&line[from..offset]).len();
        let end_shown = start_shown + shown(&line[offset..end]).len();
        lines.push_str(&shown(&line[from..to]));
        let first_line = if shows_before { self.line - 1 } else { self.line };
        (lines, first_line, start_shown..end_shown)
    }
}

/// A text without control characters: a file must not steer the terminal.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: {}", self.source_name, self.line, self.column, self.message, self.label)
    }
}

impl std::error::Error for ExperimentError {}
