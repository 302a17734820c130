//! A test suite as XML, in the order of elements that the schema of Jenkins' JUnit plugin demands.

use jiff::Timestamp;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

const INDENT: usize = 4;

pub(super) struct Suite<'s> {
    pub name: &'s str,
    pub started_at: Option<Timestamp>,
    pub properties: Vec<(String, String)>,
    pub cases: Vec<Case>,
    pub output: Option<String>,
}

pub(super) struct Case {
    pub class: String,
    pub name: String,
    /// Absent if it succeeded.
    pub status: Option<Status>,
    pub output: Option<String>,
}

/// Why a case did not succeed.
pub(super) struct Status {
    kind: Kind,
    /// In a word.
    reason: String,
    message: String,
    pub details: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Failure,
    Error,
    Skipped,
}

impl Status {
    pub(super) fn new(kind: Kind, reason: &str, message: String) -> Self {
        Self { kind, reason: reason.to_owned(), message, details: None }
    }
}

impl Kind {
    fn element(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

/// The document, ending with a line break.
pub(super) fn text(suite: &Suite<'_>) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', INDENT);
    write(suite, &mut writer).expect("writing to memory does not fail");
    let mut text = String::from_utf8(writer.into_inner()).expect("all of it comes from strings");
    text.push('\n');
    text
}

type Xml = Writer<Vec<u8>>;

fn write(suite: &Suite<'_>, writer: &mut Xml) -> io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let statuses = suite.cases.iter().filter_map(|case| case.status.as_ref());
    let count = |kind| statuses.clone().filter(|status| status.kind == kind).count().to_string();
    let (failures, errors, skipped) = (count(Kind::Failure), count(Kind::Error), count(Kind::Skipped));
    let tests = suite.cases.len().to_string();
    let name = printable(suite.name);
    let suites = writer.create_element("testsuites").with_attribute(("name", "meshmeter"));
    let suites = suites.with_attributes([
        ("tests", tests.as_str()),
        ("skipped", &skipped),
        ("failures", &failures),
        ("errors", &errors),
    ]);
    suites.write_inner_content(|writer| {
        let mut element = writer.create_element("testsuite").with_attributes([
            ("name", name.as_str()),
            ("tests", &tests),
            ("skipped", &skipped),
            ("errors", &errors),
            ("failures", &failures),
        ]);
        if let Some(time) = suite.started_at {
            let time = time.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string();
            element = element.with_attribute(("timestamp", time.as_str()));
        }
        element.write_inner_content(|writer| write_content(suite, writer)).map(drop)
    })?;
    Ok(())
}

fn write_content(suite: &Suite<'_>, writer: &mut Xml) -> io::Result<()> {
    writer.create_element("properties").write_inner_content(|writer| {
        for (name, value) in &suite.properties {
            let (name, value) = (printable(name), printable(value));
            let property = writer.create_element("property");
            property.with_attributes([("name", name.as_str()), ("value", &value)]).write_empty()?;
        }
        Ok(())
    })?;
    for case in &suite.cases {
        write_case(case, writer)?;
    }
    write_output(suite.output.as_deref(), writer)
}

fn write_case(case: &Case, writer: &mut Xml) -> io::Result<()> {
    let (name, class) = (printable(&case.name), printable(&case.class));
    let element = writer.create_element("testcase");
    let element = element.with_attributes([("name", name.as_str()), ("classname", &class)]);
    if case.status.is_none() && case.output.is_none() {
        element.write_empty()?;
        return Ok(());
    }
    element.write_inner_content(|writer| {
        if let Some(status) = &case.status {
            let (message, reason) = (printable(&status.message), printable(&status.reason));
            let element = writer.create_element(status.kind.element());
            let element = element.with_attributes([("message", message.as_str()), ("type", &reason)]);
            match &status.details {
                Some(details) => element.write_text_content(BytesText::new(&printable(details)))?,
                None => element.write_empty()?,
            };
        }
        write_output(case.output.as_deref(), writer)
    })?;
    Ok(())
}

fn write_output(output: Option<&str>, writer: &mut Xml) -> io::Result<()> {
    if let Some(output) = output {
        writer.create_element("system-out").write_text_content(BytesText::new(&printable(output)))?;
    }
    Ok(())
}

/// Without terminals' escape sequences, and without characters that XML cannot have even escaped.
fn printable(text: &str) -> String {
    let mut text = anstream::adapter::strip_str(text).to_string();
    let is_xml = |character| match character {
        '\t' | '\n' | '\r' => true,
        '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    };
    text.retain(is_xml);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_what_xml_can_have() {
        assert_eq!(printable("\u{1b}[31mred\u{1b}[0m\tä\n\u{0}\u{b}\u{fffe}end"), "red\tä\nend");
    }
}
