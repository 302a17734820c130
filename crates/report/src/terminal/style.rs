//! Width, colour and line breaks.

/// Layout of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Columns of the terminal; the text keeps to them down to about 60.
    pub width: usize,
    /// Whether to use colour.
    pub colours: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 80, colours: false }
    }
}

/// From this width on, an interval stands beside its estimate, not under it.
pub(crate) const WIDE: usize = 118;

pub(super) fn bold(text: &str, options: Options) -> String {
    if options.colours { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Text from elsewhere without the control characters that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Lines of at most `width` characters, broken at spaces but not at no-break spaces; a longer word has a line of its own.
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
