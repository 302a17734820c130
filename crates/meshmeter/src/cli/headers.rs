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
pub struct GivenHeaders {
    headers: Vec<GivenHeader>,
    is_file: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct GivenHeader {
    header: Header,
    /// Name as typed: `header` has lower case only.
    written: String,
}

impl GivenHeaders {
    /// Headers of all uses of an option, in order.
    pub fn all(given: &[Self]) -> impl Iterator<Item = Header> {
        given.iter().flat_map(|option| option.headers.iter().map(|given| given.header.clone()))
    }

    /// The same for requests: names keep their letter case, and values on the command line may have ranges of numbers.
    pub fn of_requests(given: &[Self]) -> impl Iterator<Item = load::Header> {
        given.iter().flat_map(|option| {
            option.headers.iter().map(|given| {
                let value = given.header.1.to_str().unwrap_or_default();
                let header = load::Header::new(&given.written, value).expect("it was parsed before");
                if option.is_file { header } else { header.with_ranges() }
            })
        })
    }

    /// Parses the value of an option. A header's name never begins with `@`. `parse` parses one header, `Name: value`; its
    /// errors must not contain the value.
    pub fn parse<E: ToString>(text: &str, parse: impl Fn(&str) -> Result<Header, E>) -> Result<Self, String> {
        let parse = |line: &str| -> Result<GivenHeader, String> {
            let (name, mut value) = parse(line).map_err(|error| error.to_string())?;
            // Not shown by `Debug`.
            value.set_sensitive(true);
            let written = line.split(':').next().unwrap_or_default().trim().to_owned();
            Ok(GivenHeader { header: (name, value), written })
        };
        let Some(path) = text.strip_prefix('@') else {
            return Ok(Self { headers: vec![parse(text)?], is_file: false });
        };
        let content = read(path).map_err(|reason| format!("read {path}: {reason}"))?;
        let lines = content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let headers: Vec<GivenHeader> = lines
            .map(|(index, line)| {
                parse(line).map_err(|reason| format!("{path}, line {}: {reason}", index + 1))
            })
            .collect::<Result<_, String>>()?;
        if headers.is_empty() {
            Err(format!("{path} has no header"))
        } else {
            Ok(Self { headers, is_file: true })
        }
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
    fn names_keep_their_case_and_only_the_command_line_has_ranges() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        std::fs::write(&file, "X-From-File: {1..9}\n").unwrap();
        let options = ["X-Request-ID: {1..9}".to_owned(), format!("@{}", file.display())];
        let given = options.map(|text| GivenHeaders::parse(&text, parse_header).unwrap());
        let expected = [
            load::Header::new("X-Request-ID", "{1..9}").unwrap().with_ranges(),
            load::Header::new("X-From-File", "{1..9}").unwrap(),
        ];
        assert_eq!(GivenHeaders::of_requests(&given).collect::<Vec<_>>(), expected);
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
