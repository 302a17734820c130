//! Text of a finding as a line of limited length, and the detail that the line leaves out.
//!
//! A text is written with the most important clause first. Clauses that do not fit into the line, after `; ` or as sentences
//! of their own, are the detail. Names that are too long for the first clause are cut in the middle, and the detail has the
//! whole text.

use crate::format::cut;
use statistics::words;

/// Maximum length of a line, characters.
pub const MAX_LINE: usize = 100;
/// Names are not cut shorter than this, characters.
const MIN_NAME: usize = 9;

/// A line that is cut keeps at least so much of its clause, bytes.
const MIN_PART: usize = 40;

/// Text of a finding.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Said {
    pub(super) line: String,
    pub(super) detail: String,
}

impl Said {
    /// A text with names, which are cut as far as the line requires it.
    pub(super) fn with_names(names: &[impl AsRef<str>], text: impl Fn(&[String]) -> String) -> Self {
        let cut_to = |room: usize| names.iter().map(|name| cut(name.as_ref(), room)).collect::<Vec<_>>();
        let longest = names.iter().map(|name| length(name.as_ref())).max().unwrap_or(0);
        let whole = text(&cut_to(longest));
        let fits = |text: &String| length(text) <= MAX_LINE || breaks(text).next().is_some();
        if fits(&whole) {
            return whole.into();
        }
        match (MIN_NAME..longest).rev().map(|room| text(&cut_to(room))).find(fits) {
            Some(text) => Self { line: Self::from(text).line, detail: whole },
            None => whole.into(),
        }
    }

    /// True if the first clause of the text fits into the line.
    pub(super) fn is_whole(&self) -> bool {
        !self.line.ends_with('…')
    }

    /// The text with a further sentence at the beginning of the detail.
    pub(super) fn beginning_with(self, sentence: &str) -> Self {
        Self { line: self.line, detail: String::new() }.and(sentence).and(&self.detail)
    }

    /// The text with a further sentence in the detail.
    pub(super) fn and(mut self, sentence: &str) -> Self {
        if !self.detail.is_empty() && !sentence.is_empty() {
            self.detail.push(' ');
        }
        self.detail.push_str(sentence);
        self
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        if length(&text) <= MAX_LINE {
            return Self { line: text, detail: String::new() };
        }
        if let Some((line, rest)) = breaks(&text).last() {
            let line = line.trim_end_matches('.').to_owned() + ".";
            return Self { line, detail: beginning(rest.trim_start()) };
        }
        let mut line: String = text.chars().take(MAX_LINE - 1).collect();
        // Not within a figure, where there is another place.
        let end = ends(&line).last().or_else(|| line.rfind(' ')).unwrap_or(line.len());
        line.truncate(end);
        // A figure is left out with its verdict.
        if text.contains("not shown") && !line.contains("not shown") {
            line.truncate(line.rfind(": ").unwrap_or(line.len()));
        }
        let line = line.trim_end_matches(", not").trim_end_matches([',', ':', ' ']).to_owned() + "…";
        Self { line, detail: text }
    }
}

/// The rest of a text as a text of its own, with a capital letter; names of percentiles keep theirs.
fn beginning(rest: &str) -> String {
    let is_percentile = rest.chars().nth(1).is_some_and(|second| second.is_ascii_digit());
    if is_percentile { rest.to_owned() } else { words::sentence(rest) }
}

/// Both parts of the text at each end of a clause or sentence where the first part is a line, outside brackets. The first part
/// has no separator.
fn breaks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut depth = 0_i32;
    let places =
        text.char_indices().enumerate().take(MAX_LINE).filter_map(move |(place, (byte, character))| {
            depth += i32::from(character == '(') - i32::from(character == ')');
            let is_end = depth == 0 && place > 0 && matches!(character, ';' | '.');
            is_end.then_some(byte)
        });
    places.filter_map(|byte| {
        let (line, rest) = (text.get(..byte)?, text.get(byte + 1..)?);
        rest.starts_with(' ').then_some((line, rest))
    })
}

/// Ends of parts of a clause, outside brackets, beyond its beginning.
fn ends(line: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0_i32;
    let places = line.char_indices().filter_map(move |(byte, character)| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        let is_end = depth == 0 && matches!(character, ',' | ':') && line[byte + 1..].starts_with(' ');
        is_end.then_some(byte)
    });
    places.filter(|byte| *byte > MIN_PART)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_where_a_clause_ends_and_detail_has_the_rest() {
        let text = format!("{}; {} (a; b); c. D.", "a".repeat(40), "b".repeat(60));
        let said = Said::from(text);
        assert_eq!(
            (said.line.as_str(), said.detail.as_str()),
            (&*format!("{}.", "a".repeat(40)), &*format!("B{} (a; b); c. D.", "b".repeat(59)))
        );
        let short = Said::from("One. Two; three.".to_owned());
        assert_eq!((short.line.as_str(), short.detail.as_str()), ("One. Two; three.", ""));
    }

    #[test]
    fn endless_clause_is_cut_and_whole_in_the_detail() {
        let text = "word ".repeat(40);
        let said = Said::from(text.clone());
        assert!(length(&said.line) <= MAX_LINE && said.line.ends_with("word…"), "{}", said.line);
        assert_eq!(said.detail, text);
        let said = Said::from("x".repeat(150));
        assert_eq!(length(&said.line), MAX_LINE);
    }

    #[test]
    fn names_are_cut_in_the_middle_only_as_far_as_needed() {
        assert_eq!(cut("checkout-service", 9), "chec…vice");
        assert_eq!(cut("checkout → cart", 20), "checkout → cart");
        let name = format!("{}-service", "very-long-".repeat(8));
        let text =
            |names: &[String]| format!("Of 5 calls between services, {} grew most; and so on.", names[0]);
        let said = Said::with_names(&[&name], text);
        assert_eq!(length(said.line.trim_end_matches("; and so on.").trim_end_matches('.')), MAX_LINE - 1);
        assert!(said.line.contains('…') && said.detail.contains(&name), "{said:?}");
        let short = Said::with_names(&["web"], text);
        assert_eq!(short.detail, "");
    }
}
