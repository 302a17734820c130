//! Headers as options: `Name: value`, or `@FILE` with one header per line, so that secrets need not be on the command line.

use http::{HeaderName, HeaderValue};
use std::fs::File;
use std::io::Read as _;

/// Maximum size of a file with headers, bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// A header.
pub type Header = (HeaderName, HeaderValue);

/// Headers of one option.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GivenHeaders(Vec<Header>);

impl GivenHeaders {
    /// Headers of all uses of an option, in order.
    pub fn all(given: &[Self]) -> impl Iterator<Item = Header> {
        given.iter().flat_map(|headers| headers.0.iter().cloned())
    }

    /// Parses the value of an option. A header's name never begins with `@`. `parse` parses one header; its errors must not
    /// contain the value.
    pub fn parse<E: ToString>(text: &str, parse: impl Fn(&str) -> Result<Header, E>) -> Result<Self, String> {
        let parse = |line: &str| -> Result<Header, String> {
            let (name, mut value) = parse(line).map_err(|error| error.to_string())?;
            // Not shown by `Debug`.
            value.set_sensitive(true);
            Ok((name, value))
        };
        let Some(path) = text.strip_prefix('@') else { return Ok(Self(vec![parse(text)?])) };
        let content = read(path).map_err(|reason| format!("read {path}: {reason}"))?;
        let lines = content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let headers: Vec<Header> = lines
            .map(|(index, line)| {
                parse(line).map_err(|reason| format!("{path}, line {}: {reason}", index + 1))
            })
            .collect::<Result<_, String>>()?;
        if headers.is_empty() { Err(format!("{path} has no header")) } else { Ok(Self(headers)) }
    }
}

fn read(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut content = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut content).map_err(|error| error.to_string())?;
    if content.len() as u64 > MAX_FILE_BYTES {
        Err("it has more than 64 KiB".to_owned())
    } else {
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use export::parse_header;

    fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
        let headers = GivenHeaders::parse(text, parse_header)?;
        let text = |(name, value): Header| (name.to_string(), value.to_str().unwrap().to_owned());
        Ok(GivenHeaders::all(&[headers]).map(text).collect())
    }

    #[test]
    fn value_is_header_or_file_of_headers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        std::fs::write(&file, "Authorization: Bearer @x\r\n\nX-Scope-OrgID: 1\n").unwrap();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse("X-Handle: @tom").unwrap(),
            [header("x-handle", "@tom")],
            "a value may begin with @"
        );
        assert_eq!(
            parse(&format!("@{}", file.display())).unwrap(),
            [header("authorization", "Bearer @x"), header("x-scope-orgid", "1")]
        );
    }

    #[test]
    fn unusable_files_are_named_without_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        let failure = |content: &str| {
            std::fs::write(&file, content).unwrap();
            parse(&format!("@{}", file.display())).unwrap_err()
        };
        let error = failure("X-A: b\nBearer s3cret\n");
        assert!(
            error.contains("headers, line 2: expected a name and a value") && !error.contains("s3cret"),
            "{error}"
        );
        assert!(failure("\n").ends_with("headers has no header"));
        assert!(failure(&"x".repeat(70_000)).ends_with("it has more than 64 KiB"));
        assert!(parse("@/does/not/exist").unwrap_err().starts_with("read /does/not/exist: "));
    }

    #[test]
    fn values_are_not_in_debug_output() {
        let headers = GivenHeaders::parse("Authorization: s3cret", parse_header).unwrap();
        assert!(!format!("{headers:?}").contains("s3cret"), "{headers:?}");
    }
}
