//! Untrusted text on one line, for terminals, drawings and pages.

/// True for characters that act on the text around them: control characters, line and paragraph separators, and those that turn the
/// direction of writing (Unicode Standard Annex #9, table 4).
#[must_use]
pub fn is_acting(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The text with spaces in place of characters that act on the text around them.
#[must_use]
pub fn plain_text(text: &str) -> String {
    text.chars().map(|character| if is_acting(character) { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_turn_or_break_text_become_spaces() {
        assert_eq!(plain_text("a\u{1b}[31m\u{202e}b\u{2067}c\u{2028}d\u{200f}e"), "a [31m b c d e");
        assert_eq!(
            plain_text("größer × 2 – 日本 👩\u{200d}🔧 עברית"),
            "größer × 2 – 日本 👩\u{200d}🔧 עברית"
        );
    }
}
