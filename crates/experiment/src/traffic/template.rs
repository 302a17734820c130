//! Text with placeholders for data.
//!
//! `{name}` is the value of this data, `{a..b}` a number, and `{{` a brace that begins no placeholder. Any other brace stays as it
//! is, as in JSON.

/// Text with placeholders for data.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Template(Vec<Piece>);

/// Part of a template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Piece {
    /// Text, in which `{a..b}` is a number per request.
    Text(String),
    /// `{`, which begins no placeholder.
    Brace,
    /// The value of the data with this index.
    Data(usize),
    /// The value with this index among those that the session has extracted.
    Extracted(usize),
}

impl Template {
    /// Compiles text. `named` returns the value of a name.
    pub(super) fn compile<E>(text: &str, named: impl Fn(&str) -> Result<Piece, E>) -> Result<Self, E> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(brace) = rest.find('{') {
            template.push(&rest[..brace]);
            let from_brace = &rest[brace..];
            let length = if from_brace.starts_with("{{") {
                template.0.push(Piece::Brace);
                2
            } else if let Some(name) = name_at(from_brace) {
                template.0.push(named(name)?);
                name.len() + 2
            } else {
                template.push("{");
                1
            };
            rest = &from_brace[length..];
        }
        template.push(rest);
        Ok(template)
    }

    fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    /// Size of the text, without data, bytes.
    pub(super) fn text_bytes(&self) -> u64 {
        let bytes = |piece: &Piece| match piece {
            Piece::Text(text) => text.len() as u64,
            Piece::Brace => 1,
            Piece::Data(_) | Piece::Extracted(_) => 0,
        };
        self.0.iter().map(bytes).sum()
    }

    /// Parts in order; none if the text is empty.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }
}

/// The name in braces that text begins with.
fn name_at(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    is_name(name).then_some(name)
}

/// True for a letter or `_`, followed by letters, digits, `-` and `_`.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Piece::{Brace, Data};

    fn compiled(text: &str) -> Vec<Piece> {
        let names = ["order", "user_1"];
        let find = |name: &str| {
            names.iter().position(|known| *known == name).map(Data).ok_or_else(|| name.to_owned())
        };
        Template::compile(text, find).unwrap().0
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn only_names_in_braces_are_placeholders() {
        assert_eq!(compiled(""), []);
        assert_eq!(compiled("{order}"), [Data(0)]);
        assert_eq!(
            compiled(r#"{"id": {order}, "user": "{user_1}"}"#),
            [text(r#"{"id": "#), Data(0), text(r#", "user": ""#), Data(1), text(r#""}"#)]
        );
        for literal in
            [r#"{"a": {"b": {}}}"#, "{", "}", "{}", "{ order }", "{1..5}", "{or der}", "{order", "a{1x}"]
        {
            assert_eq!(compiled(literal), [text(literal)]);
        }
    }

    #[test]
    fn two_braces_are_one_that_begins_no_placeholder() {
        assert_eq!(compiled("{{order}"), [Brace, text("order}")]);
        assert_eq!(compiled("{{{order}}}"), [Brace, Data(0), text("}}")]);
        assert_eq!(compiled("{{{{1..5}"), [Brace, Brace, text("1..5}")]);
    }

    #[test]
    fn unknown_names_are_errors() {
        assert_eq!(Template::compile("{a}{b}", |name| Err::<Piece, _>(name.to_owned())), Err("a".to_owned()));
    }
}
