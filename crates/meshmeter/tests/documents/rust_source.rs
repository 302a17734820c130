//! String literals and comments of Rust source. Only as much of the language as that takes.

/// Texts of a source file.
#[derive(Default)]
pub struct Texts {
    /// Values of string literals, with escapes resolved.
    pub literals: Vec<String>,
    /// Comments, one line each, without their slashes; other lines are empty.
    pub comments: String,
}

/// Reads a source file.
pub fn texts(source: &str) -> Texts {
    let mut texts = Texts::default();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        rest = if let Some(after) = rest.strip_prefix("//") {
            let (line, after) = after.split_once('\n').unwrap_or((after, ""));
            texts.comments += &format!("{}\n", line.trim_start_matches(['/', '!']));
            after
        } else if rest.starts_with("r#\"") || rest.starts_with("r\"") {
            raw_literal(rest, &mut texts)
        } else if first == '"' {
            literal(&rest[1..], &mut texts)
        } else if let Some(after) = rest.strip_prefix('\'') {
            after_quote(after)
        } else {
            if first == '\n' {
                texts.comments.push('\n');
            }
            &rest[first.len_utf8()..]
        };
    }
    texts
}

/// A quote begins a character or a lifetime. Only the character may be a double quote.
fn after_quote(rest: &str) -> &str {
    ["\"'", "\\\"'", "\\''", "\\\\'"]
        .iter()
        .find_map(|character| rest.strip_prefix(character))
        .unwrap_or(rest)
}

fn raw_literal<'a>(rest: &'a str, texts: &mut Texts) -> &'a str {
    let (opening, closing) = if rest.starts_with("r#") { ("r#\"", "\"#") } else { ("r\"", "\"") };
    let (literal, after) = rest[opening.len()..].split_once(closing).unwrap_or((rest, ""));
    texts.literals.push(literal.to_owned());
    after
}

fn literal<'a>(rest: &'a str, texts: &mut Texts) -> &'a str {
    let mut literal = String::new();
    let mut characters = rest.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => {
                texts.literals.push(literal);
                return &rest[index + 1..];
            }
            '\\' => match characters.next() {
                Some((_, 'n')) => literal.push('\n'),
                // A line's end after a backslash joins it with the next line's text.
                Some((index, '\n')) => {
                    let blank = rest[index + 1..].len() - rest[index + 1..].trim_start().len();
                    characters = rest.char_indices();
                    characters.by_ref().find(|(other, _)| *other == index + blank);
                }
                Some((_, escaped)) => literal.push(escaped),
                None => {}
            },
            _ => literal.push(character),
        }
    }
    ""
}
