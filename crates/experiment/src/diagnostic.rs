//! Errors in an experiment, shown at their place in the source text.

use crate::secrets;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use results::plain_text as shown;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Maximum length of a source line shown around an error, bytes. Longer lines are cut.
const MAX_SHOWN_LINE_BYTES: usize = 160;

/// Source text of an experiment: a file, or a command-line option.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Source {
    /// File name, or an option such as `--set`.
    pub(crate) name: String,
    /// Full text.
    pub(crate) text: String,
}

/// Place in a source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) source: Arc<Source>,
    /// Byte range in the source's text.
    pub(crate) span: Range<usize>,
}

impl Place {
    /// A file as a whole, whose text errors do not show.
    pub(crate) fn without_text(file_name: &str) -> Self {
        let source = Source { name: file_name.to_owned(), text: String::new() };
        Self { source: Arc::new(source), span: 0..0 }
    }

    /// Builds an error at this place, with a message and a label next to the text.
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

/// Error in an experiment that makes it impossible to run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExperimentError {
    /// Error message.
    pub message: String,
    /// Label next to the place: what was expected.
    pub label: String,
    /// Name of the source: a file, or an option such as `--set`.
    pub source_name: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Same place as a byte range of the source's text. Empty if something is missing there.
    pub span: Range<usize>,
    /// Suggested fix.
    pub hint: Option<String>,
    source: Arc<Source>,
}

impl ExperimentError {
    /// The error without secrets in the lines that it shows.
    #[must_use]
    pub(crate) fn without_secrets(mut self: Box<Self>) -> Box<Self> {
        let text = secrets::masked(&self.source.text);
        self.source = Arc::new(Source { name: self.source.name.clone(), text });
        self
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint if there is one.
    #[must_use]
    pub(crate) fn with_some_hint(mut self: Box<Self>, hint: Option<impl Into<String>>) -> Box<Self> {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    /// Adds the known word nearest to an unknown one as a hint, if there is one.
    #[must_use]
    pub(crate) fn did_you_mean(self: Box<Self>, word: Option<&str>) -> Box<Self> {
        self.with_some_hint(word.map(|word| format!("did you mean `{word}`?")))
    }

    /// Formats the error for a terminal: message, source excerpt with a label, hint. Starts with the message
    /// itself, without a prefix such as `error`. Has no trailing newline.
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

    /// Printable text of the error's line and the line before it, number of the first line, and the place
    /// within the text.
    fn surroundings(&self) -> (String, usize, Range<usize>) {
        let text = self.source.text.as_str();
        let line_start = text[..self.span.start].rfind('\n').map_or(0, |newline| newline + 1);
        let before = text[..line_start.saturating_sub(1)].rfind('\n').map_or(0, |newline| newline + 1);
        let shows_before = before < line_start && line_start - before <= MAX_SHOWN_LINE_BYTES;
        let mut lines = String::new();
        if shows_before {
            lines.push_str(&shown(&text[before..line_start - 1]));
            lines.push('\n');
        }
        let line = text[line_start..].split('\n').next().unwrap_or_default();
        let offset = self.span.start - line_start;
        // Cuts a window around the place if the line is too long to show.
        let from = floor_to_character(
            line,
            if offset > MAX_SHOWN_LINE_BYTES / 2 && line.len() > MAX_SHOWN_LINE_BYTES {
                offset - MAX_SHOWN_LINE_BYTES / 2
            } else {
                0
            },
        );
        let to = floor_to_character(line, (from + MAX_SHOWN_LINE_BYTES).min(line.len()));
        let end = (self.span.end - line_start).clamp(offset, to.max(offset));
        let start_shown = lines.len() + shown(&line[from..offset]).len();
        let end_shown = start_shown + shown(&line[offset..end]).len();
        lines.push_str(&shown(&line[from..to]));
        let first_line = if shows_before { self.line - 1 } else { self.line };
        (lines, first_line, start_shown..end_shown)
    }
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: {}", self.source_name, self.line, self.column, self.message, self.label)
    }
}

impl std::error::Error for ExperimentError {}
