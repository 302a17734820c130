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

pub(super) fn bold(text: &str, options: Options) -> String {
    if options.colours { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Replaces control characters in untrusted text, which a terminal would interpret.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Lines of at most `width` characters, broken at spaces but not at no-break spaces; a longer word gets its
/// own line.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
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
