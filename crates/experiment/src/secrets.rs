//! Hides secrets in text that errors quote: values whose names say what they are, such as `Authorization: Bearer …`.
//!
//! Works on any text, since a file may be quoted because it is not valid YAML. It hides too much rather than too little.

/// Parts of names of secrets, in lower case.
const NAMES: [&str; 11] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "passw",
    "credential",
    "api-key",
    "api_key",
    "apikey",
    "access-key",
    // Of data.
    "values",
];

/// Lines that belong to a value which began on a line before.
#[derive(Clone, Copy)]
enum Below {
    /// Lines that begin to the right of this column.
    DeeperThan(usize),
    /// Items of a list that begin at this column or to its right.
    ItemsFrom(usize),
}

impl Below {
    fn has(self, line: &str) -> bool {
        let item = line.trim_start();
        let column = line.len() - item.len();
        match self {
            Self::DeeperThan(key) => item.is_empty() || column > key,
            Self::ItemsFrom(key) => item.starts_with('-') && column >= key,
        }
    }
}

/// The text with `*` for each byte of a secret, so that all places in it stay.
pub(crate) fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut below = None;
    for line in text.split_inclusive('\n') {
        below = below.filter(|below: &Below| below.has(line));
        if below.is_some() {
            masked.push_str(&stars(line));
        } else {
            below = mask_line(line, &mut masked);
        }
    }
    masked
}

/// The path with `*` for each byte of a secret in its query.
pub(crate) fn masked_query(path: &str) -> String {
    match path.split_once('?') {
        Some((path, query)) => format!("{path}?{}", masked(query)),
        None => path.to_owned(),
    }
}

/// Appends the line. Returns which lines below belong to its last value, if that is a secret.
fn mask_line(line: &str, masked: &mut String) -> Option<Below> {
    let (mut done, mut below) = (0, None);
    for (at, separator) in line.match_indices([':', '=']) {
        let Some(column) = secret_before(line, at).filter(|_| at >= done) else { continue };
        let from = line.len() - line[at + 1..].trim_start_matches([' ', '"', '\'']).len();
        let before = &line[at + 1..from];
        let rest = &line[from..];
        // A map, or a placeholder.
        if rest.starts_with('{') {
            continue;
        }
        let length = match before.trim_start().chars().next() {
            Some(quote) => end_of_quoted(rest, quote),
            None if separator == "=" => rest.find(['&', ' ', '"', '\'', '\n']).unwrap_or(rest.len()),
            None if rest.starts_with('[') => rest.find(']').map_or(rest.len(), |end| end + 1),
            None if line[..column].contains('{') => end_in_map(rest),
            None => rest.len(),
        };
        let is_last = rest[length..].trim().is_empty();
        below = is_last.then_some(match rest.trim() {
            "" => Below::ItemsFrom(column),
            _ => Below::DeeperThan(column),
        });
        masked.push_str(&line[done..from]);
        masked.push_str(&stars(&rest[..length]));
        done = from + length;
    }
    masked.push_str(&line[done..]);
    below.filter(|_| line[done..].trim().is_empty())
}

/// Column of the name before a separator, if it is that of a secret.
fn secret_before(line: &str, separator: usize) -> Option<usize> {
    let name_end = line[..separator].trim_end_matches([' ', '"', '\'']).len();
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let column = line[..name_end].trim_end_matches(is_of_name).len();
    let name = line[column..name_end].to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part)).then_some(column)
}

/// Length of a quoted value without its last quote.
fn end_of_quoted(value: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = value.char_indices().find(|(_, letter)| {
        let ends = *letter == quote && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    });
    end.map_or(value.len(), |(end, _)| end)
}

/// Length of a value in a map in braces: up to its end, or to the next key.
fn end_in_map(value: &str) -> usize {
    let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || " -_\"'".contains(letter);
    let begins_key = |rest: &str| rest.trim_start_matches(is_of_key).starts_with(':');
    let commas = value.match_indices(',').map(|(comma, _)| comma);
    let next = commas.into_iter().find(|comma| begins_key(&value[comma + 1..]));
    next.into_iter().chain(value.find('}')).min().unwrap_or(value.len())
}

fn stars(secret: &str) -> String {
    let star = |letter: char| match letter {
        '\n' | '\r' => letter.to_string(),
        _ => "*".repeat(letter.len_utf8()),
    };
    secret.chars().map(star).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_places_stay() {
        for (text, shown) in [
            ("Authorization: Bearer ab\nx: y", "Authorization: *********\nx: y"),
            ("{Authorization: Digest a=b, c=d, X-A: e}", "{Authorization: ***************, X-A: e}"),
            ("{x-api-key: ab}, b: c", "{x-api-key: **}, b: c"),
            (r#"{"Cookie": "a=\"b\"; c", "d": "e"}"#, r#"{"Cookie": "**********", "d": "e"}"#),
            ("  set-cookie: é|\n    more\n  a: b", "  set-cookie: ***\n********\n  a: b"),
            ("Authorization:\n- ab\n- c\nd: e", "Authorization:\n****\n***\nd: e"),
            ("token:\n  csv: a.csv", "token:\n  csv: a.csv"),
            ("token: {json: /a}", "token: {json: /a}"),
            ("path: /?api_key=ab&c=d", "path: /?api_key=**&c=d"),
            ("body: '{\"password\": \"ab\"}'", "body: '{\"password\": \"**\"}'"),
            ("token: [a, b], c: d", "token: ******, c: d"),
            (
                "data:\n  user:\n    values:\n      - ab\n      - c\n    order: x",
                "data:\n  user:\n    values:\n**********\n*********\n    order: x",
            ),
            ("user: {values: [ab, c], order: x}", "user: {values: *******, order: x}"),
            ("a: token\nb: 'it''s'", "a: token\nb: 'it''s'"),
        ] {
            assert_eq!(masked(text), shown, "{text}");
            assert_eq!(masked(text).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn secrets_are_hidden_in_queries_alone() {
        for (path, shown) in [
            ("/token:a/b?c=d", "/token:a/b?c=d"),
            ("/a?b=c&api_key=ab&token={n}&secret=d", "/a?b=c&api_key=**&token={n}&secret=*"),
        ] {
            assert_eq!(masked_query(path), shown);
        }
    }
}
