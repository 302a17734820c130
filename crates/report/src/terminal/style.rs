//! Width, colour and line breaks.

/// Layout options of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Width of the terminal in columns; widths down to about 60 are respected.
    pub width: usize,
    /// True to use colour.
    pub colours: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 80, colours: false }
    }
}

/// From this width on, an interval is shown beside its estimate and not below it.
pub(crate) const WIDE: usize = 118;

const BOLD: &str = "\u{1b}[1m";
const YELLOW: &str = "\u{1b}[33m";
pub(crate) const GREEN: &str = "\u{1b}[32m";
pub(crate) const RED: &str = "\u{1b}[31m";
const RESET: &str = "\u{1b}[0m";

pub(crate) fn bold(text: &str, options: Options) -> String {
    styled(text, Some(BOLD), options)
}

/// Text after an escape sequence, where the output takes colours.
pub(crate) fn styled(text: &str, sequence: Option<&str>, options: Options) -> String {
    match sequence.filter(|_| options.colours) {
        Some(sequence) => format!("{sequence}{text}{RESET}"),
        None => text.to_owned(),
    }
}

/// Style of a table's cell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CellStyle {
    Bold,
    Yellow,
    Red,
}

/// A character without width, and the escape sequence for it.
const MARKS: [(char, &str); 4] = [('\u{2061}', BOLD), ('\u{2062}', YELLOW), ('\u{2063}', RED), (END, RESET)];
const END: char = '\u{2064}';

/// Marks each word of a cell, since a table may break its text anywhere between them. A table measures what it
/// arranges, so the marks have no width until [`painted`] replaces them.
pub(super) fn marked(text: &str, style: CellStyle) -> String {
    let (start, _) = MARKS[style as usize];
    let is_space = |character: char| character == ' ' || character == '\n';
    let words = text.split_inclusive(is_space).map(|word| {
        let (word, space) = word.split_at(word.trim_end_matches(is_space).len());
        format!("{start}{word}{END}{space}")
    });
    words.collect()
}

/// The arranged table with escape sequences.
pub(super) fn painted(table: &str) -> String {
    MARKS.iter().fold(table.to_owned(), |text, (mark, sequence)| text.replace(*mark, sequence))
}

/// Replaces characters of untrusted text that a terminal would interpret.
pub(crate) use results::plain_text as plain;

/// Lines of at most `width` characters, broken at spaces but not at no-break spaces; a longer word gets its
/// own line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let longer = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && longer > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}
