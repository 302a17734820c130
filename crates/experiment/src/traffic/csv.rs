//! Comma-separated values (RFC 4180). Lines may end with a line feed alone, and blank ones are skipped. Malformed quotes are errors
//! with their line; the crate `csv` has none for them: a quote that is not closed takes in the rest of the file.

use std::borrow::Cow;

/// Records of a text, each with the number of its first line.
pub(super) struct Records<'t> {
    rest: &'t str,
    line: usize,
}

/// A malformed record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Malformed {
    pub(super) line: usize,
    pub(super) reason: &'static str,
}

impl<'t> Records<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    /// Takes a field off the text. Returns true if it was the last one of its record.
    fn field(&mut self) -> Result<(Cow<'t, str>, bool), &'static str> {
        let field = if let Some(quoted) = self.rest.strip_prefix('"') {
            let end = end_of_quoted(quoted).ok_or("a quote is not closed")?;
            self.rest = &quoted[end + 1..];
            self.line += quoted[..end].matches('\n').count();
            let inner = &quoted[..end];
            if inner.contains('"') { Cow::Owned(inner.replace("\"\"", "\"")) } else { Cow::Borrowed(inner) }
        } else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (field, rest) = self.rest.split_at(end);
            self.rest = rest;
            let is_last = !rest.starts_with(',');
            Cow::Borrowed(if is_last { field.strip_suffix('\r').unwrap_or(field) } else { field })
        };
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            return Ok((field, false));
        }
        let line_end = self.rest.strip_prefix('\r').unwrap_or(self.rest);
        match line_end.strip_prefix('\n') {
            Some(rest) => (self.rest, self.line) = (rest, self.line + 1),
            None if line_end.is_empty() => self.rest = "",
            None => return Err("a closing quote is not the end of its value"),
        }
        Ok((field, true))
    }
}

/// Length of a quoted value whose opening quote was taken.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let quote = from + text[from..].find('"')?;
        if !text[quote + 1..].starts_with('"') {
            return Some(quote);
        }
        from = quote + 2;
    }
}

impl<'t> Iterator for Records<'t> {
    type Item = Result<(usize, Vec<Cow<'t, str>>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (line, mut record) = (self.line, Vec::new());
            loop {
                match self.field() {
                    Ok((field, is_last)) => {
                        record.push(field);
                        if is_last {
                            break;
                        }
                    }
                    Err(reason) => {
                        self.rest = "";
                        return Some(Err(Malformed { line, reason }));
                    }
                }
            }
            if record != [""] {
                return Some(Ok((line, record)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(text: &str) -> Vec<Vec<String>> {
        let owned = |record: Vec<Cow<str>>| record.into_iter().map(Cow::into_owned).collect();
        Records::new(text).map(|record| owned(record.unwrap().1)).collect()
    }

    #[test]
    fn values_may_be_quoted_and_lines_end_either_way() {
        assert_eq!(
            records("\u{feff}a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n\r\n2,\n"),
            [["a", "b"], ["1", "x, \"y\"\nz"], ["2", ""]]
        );
        assert_eq!(records("a\nb"), [["a"], ["b"]]);
        assert_eq!(records("5\" nails,a \"b\"\n"), [["5\" nails", "a \"b\""]]);
        assert!(records("\n\r\n").is_empty());
    }

    #[test]
    fn malformed_records_are_named_by_their_line() {
        let fault = |text: &str| Records::new(text).find_map(Result::err).unwrap();
        assert_eq!(fault("a\n\"b\nc\",1\n\"d"), Malformed { line: 4, reason: "a quote is not closed" });
        assert_eq!(fault("a\n\"b\"c\n").line, 2);
    }

    proptest! {
        #[test]
        fn quoted_values_read_back(rows in prop::collection::vec(prop::collection::vec("[a\",\r\n é]{0,6}", 2..4), 1..6)) {
            let quoted = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",");
            let text = rows.iter().map(line).collect::<Vec<_>>().join("\r\n");
            prop_assert_eq!(records(&text), rows);
        }
    }
}
