//! Reads a traffic file: the server, and its kinds of requests with their templates.

use super::data::{DataReader, text_of};
use super::expect::expectation;
use super::keys::{MAX_BODIES_BYTES, MAX_BODY_BYTES, MAX_KINDS, MAX_NAME_LENGTH, MAX_WEIGHT, REQUEST, ROOT};
use super::sessions;
use super::template::Piece;
use super::{Body, Data, Expectation, Header, RequestKind, Template, TrafficFile};
use crate::diagnostic::{ExperimentError, Place, Source};
use crate::file::{Files, MAX_FILE_BYTES};
use crate::keys::names;
use crate::secrets::masked_query;
use crate::yaml::document::{self, Entry};
use crate::yaml::section::{Field, Item, Section, alternatives};
use crate::yaml::suggestion::nearest;
use results::units::{format_size, parse_size, shortened, shortened_to};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const ROOT_KEYS: [&str; ROOT.len()] = names(&ROOT);
const REQUEST_KEYS: [&str; REQUEST.len()] = names(&REQUEST);

/// Reads a traffic file and the files of data that it names. The file name is used in messages.
///
/// # Errors
/// Returns the first error in the file, with its place.
pub fn read(text: &str, file_name: &str, files: &dyn Files) -> Result<TrafficFile> {
    read_file(text, file_name, files).map_err(ExperimentError::without_secrets)
}

fn read_file(text: &str, file_name: &str, files: &dyn Files) -> Result<TrafficFile> {
    if text.len() > MAX_FILE_BYTES {
        let place = Place::without_text(file_name);
        return Err(place.error("the file is too large", "a traffic file has at most 1 MiB"));
    }
    let source = Arc::new(Source { name: file_name.to_owned(), text: text.to_owned() });
    let root = document::read(&source)?;
    let section = Section::new(&root, "traffic", &ROOT_KEYS, root.place.clone())?;
    let url = section.required("url", "url: http://127.0.0.1:8080")?;
    let mut reader = DataReader::new(files);
    let data: Vec<Data> = match section.field("data")? {
        Some(field) => entries(&field)?.iter().map(|entry| reader.read(entry)).collect::<Result<_>>()?,
        None => Vec::new(),
    };
    let index = data.iter().enumerate().map(|(index, data)| (data.name.as_str(), index)).collect();
    let mut templates = Templates { index, data: &data, values: None, common: Vec::new(), files };
    templates.common = templates.headers(&section)?;
    let (requests, sessions) = match section.field("sessions")? {
        Some(field) => sessions::read(&field, section.field("requests")?.as_ref(), &mut templates)?,
        None => (templates.requests(&section.required("requests", "requests: [{path: /}]")?)?, Vec::new()),
    };
    Ok(TrafficFile { url: url.text()?.to_owned(), requests, sessions, sources: reader.sources, data })
}

/// The requests of a list, as sections with at least the key `path`.
pub(super) fn request_sections<'a>(field: &Field<'a>) -> Result<Vec<Section<'a>>> {
    let nodes = field.nodes("expected a list of maps, such as `- path: /`")?;
    if nodes.is_empty() || nodes.len() > MAX_KINDS {
        return Err(field.place().error(
            format!("there are {} kinds of requests", nodes.len()),
            format!("expected 1 to {MAX_KINDS}"),
        ));
    }
    let section = |node| Section::new(node, "traffic.requests", &REQUEST_KEYS, node.place.clone());
    nodes.iter().map(section).collect()
}

/// Entries of a map with at least one.
pub(super) fn entries<'a>(field: &Field<'a>) -> Result<&'a [Entry]> {
    match field.node.entries() {
        [] => Err(field
            .place()
            .error(format!("`{}` is not a map with entries", field.path), "expected names with values")),
        entries => Ok(entries),
    }
}

/// Bounds the memory of all bodies together.
#[derive(Default)]
pub(super) struct Bodies(u64);

impl Bodies {
    /// Adds the body of a request at this place.
    pub(super) fn add(&mut self, request: &RequestKind, place: &Place) -> Result<()> {
        self.0 += request.body.bytes();
        if self.0 <= MAX_BODIES_BYTES {
            return Ok(());
        }
        let most = format_size(MAX_BODIES_BYTES);
        Err(place.error("the bodies are too large", format!("expected at most {most} together")))
    }
}

/// Compiles templates.
pub(super) struct Templates<'d> {
    data: &'d [Data],
    /// Index of data by name.
    index: HashMap<&'d str, usize>,
    /// Names of the values that the session has extracted; `None` outside of sessions.
    pub(super) values: Option<Vec<String>>,
    /// Headers of all requests.
    common: Vec<Header>,
    pub(super) files: &'d dyn Files,
}

impl Templates<'_> {
    /// The kinds of requests of a file without sessions.
    fn requests(&self, field: &Field<'_>) -> Result<Vec<RequestKind>> {
        let (mut requests, mut known, mut bodies) = (Vec::new(), HashSet::new(), Bodies::default());
        for section in request_sections(field)? {
            let request = self.request(&section)?;
            if !known.insert(request.name.clone()) {
                let name = section.field("name")?;
                return Err(name.map_or(section.place(), |field| field.place()).error(
                    format!("there are two requests `{}`", shortened(&request.name)),
                    "expected a `name` of its own for each",
                ));
            }
            bodies.add(&request, section.place())?;
            requests.push(request);
        }
        Ok(requests)
    }

    pub(super) fn request(&self, section: &Section<'_>) -> Result<RequestKind> {
        let path = section.required("path", "path: /")?;
        let mut headers = self.headers(section)?;
        let is_own = |other: &&Header| headers.iter().any(|own| own.name.eq_ignore_ascii_case(&other.name));
        let inherited: Vec<_> = self.common.iter().filter(|header| !is_own(header)).cloned().collect();
        headers.splice(0..0, inherited);
        let shown_path = masked_query(path.text()?);
        Ok(RequestKind {
            method: method(section)?,
            path: self.path(&path)?,
            name: named(section, &shown_path)?,
            weight: weight(section)?,
            shown_path,
            headers,
            body: self.body(section)?,
            expect: section
                .field("expect")?
                .map_or(Ok(Expectation::default()), |field| expectation(&field))?,
        })
    }

    /// True if data have this name.
    pub(super) fn is_data(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    fn compile(&self, text: &str, place: &Place) -> Result<Template> {
        Template::compile(text, |name| {
            let extracted =
                self.values.iter().flatten().position(|value| value == name).map(Piece::Extracted);
            let piece = extracted.or_else(|| self.index.get(name).copied().map(Piece::Data));
            piece.ok_or_else(|| self.unknown(name, place))
        })
    }

    fn unknown(&self, name: &str, place: &Place) -> Box<ExperimentError> {
        let extracted = || self.values.iter().flatten().map(String::as_str);
        let known = || extracted().chain(self.data.iter().map(|data| data.name.as_str()));
        let names: Vec<&str> = known().take(20).collect();
        let expected = if names.is_empty() {
            "expected data with this name in `data`, which is missing".to_owned()
        } else {
            format!("expected {}", shortened(&alternatives(&names)))
        };
        let hint = nearest(name, known()).map_or_else(
            || format!("braces that are to be sent are written `{{{{{}}}`", shortened(name)),
            |near| format!("did you mean `{{{near}}}`?"),
        );
        let lacks = match self.values {
            Some(_) => ", and no step before extracts it",
            None => "",
        };
        let text = format!("`{{{}}}` is not in `data`{lacks}", shortened(name));
        place.error(text, expected).with_hint(hint)
    }

    /// Values of data are percent-encoded where a path cannot have them.
    fn path(&self, field: &Field<'_>) -> Result<Template> {
        let text = field.text()?;
        let unfit = text.chars().find(|c| !c.is_ascii_graphic() || "\"#<>\\^`|".contains(*c));
        if let Some(unfit) = unfit {
            return Err(field.place().error(
                format!("`{}` has the character `{}`", field.path, unfit.escape_default()),
                "expected a path and query as they are sent, other characters as `%20`",
            ));
        }
        let path = self.compile(text, field.place())?;
        let begins = |text: &str| text.starts_with('/');
        let is_path = match path.pieces().first() {
            Some(Piece::Text(text)) => begins(text),
            Some(Piece::Data(index)) => self.data[*index].rows().is_some_and(|rows| rows.iter().all(begins)),
            Some(Piece::Extracted(_) | Piece::Brace) | None => false,
        };
        if !is_path {
            return Err(field.place().error(
                format!("`{}` does not begin with `/`", field.path),
                "expected a path, such as `/items?page={1..50}`",
            ));
        }
        if path.pieces().contains(&Piece::Brace) {
            return Err(field
                .place()
                .error(format!("`{}` has a brace", field.path), "expected `%7B`: a path has no braces"));
        }
        Ok(path)
    }

    fn headers(&self, section: &Section<'_>) -> Result<Vec<Header>> {
        let Some(field) = section.field("headers")? else { return Ok(Vec::new()) };
        let mut headers: Vec<Header> = Vec::new();
        for entry in entries(&field)? {
            if let Some(same) = headers.iter().find(|header| header.name.eq_ignore_ascii_case(&entry.key)) {
                return Err(entry.key_place.error(
                    format!("`{}` is the header `{}` again", shortened(&entry.key), shortened(&same.name)),
                    "expected one entry, with a list of the values if it is to be sent several times",
                ));
            }
            headers.extend(self.header(entry, &field.path)?);
        }
        Ok(headers)
    }

    /// A header per value.
    fn header(&self, entry: &Entry, path: &str) -> Result<Vec<Header>> {
        let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte);
        if entry.key.is_empty() || !entry.key.bytes().all(is_of_token) {
            return Err(entry.key_place.error(
                format!("`{}` is not the name of a header", shortened(&entry.key)),
                "expected one such as `X-User`",
            ));
        }
        let field = Field::new(&format!("{path}.{}", shortened(&entry.key)), &entry.key_place, &entry.node);
        let header = |item: &Item<'_>| {
            let value = self.header_value(item, &field.path)?;
            Ok(Header { name: entry.key.clone(), value, place: entry.key_place.clone() })
        };
        field.one_or_list()?.iter().map(header).collect()
    }

    fn header_value(&self, item: &Item<'_>, path: &str) -> Result<Template> {
        let value = self.compile(item.text, item.place)?;
        let fits = |text: &str| text.bytes().all(|byte| byte == b'\t' || byte >= b' ' && byte != 0x7f);
        let unfit = |index: usize| {
            let row = self.data[index].rows()?.iter().position(|row| !fits(row))?;
            Some(format!("value {} of `{{{}}}` cannot be in a header", row + 1, self.data[index].name))
        };
        let fault = value.pieces().iter().find_map(|piece| match piece {
            Piece::Text(text) => (!fits(text)).then(|| format!("`{path}` is not a value of a header")),
            Piece::Brace | Piece::Extracted(_) => None,
            Piece::Data(index) => unfit(*index),
        });
        match fault {
            Some(fault) => {
                Err(item.place.error(fault, "expected a line of text, without control characters"))
            }
            None => Ok(value),
        }
    }

    /// At most one of three keys gives the body.
    fn body(&self, section: &Section<'_>) -> Result<Body> {
        let given = [section.field("body")?, section.field("body-file")?, section.field("body-size")?];
        if let Some(second) = given.iter().flatten().nth(1) {
            return Err(second
                .key_place
                .error(format!("`{}` is a second body", second.path), "expected one of the three keys"));
        }
        let template = match given {
            [Some(text), ..] => self.compile(text.text()?, text.place())?,
            [_, Some(file), _] => self.compile(&text_of(&file, self.files)?, file.place())?,
            [.., Some(size)] => return bounded(&size).map(Body::Filler),
            [None, None, None] => Template::default(),
        };
        Ok(Body::Template(template))
    }
}

fn method(section: &Section<'_>) -> Result<String> {
    let Some(field) = section.field("method")? else { return Ok("GET".to_owned()) };
    let method = field.text()?;
    let fits = method.starts_with(|c: char| c.is_ascii_uppercase())
        && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    if !fits || method.len() > MAX_NAME_LENGTH {
        return Err(field.place().error(
            format!("`{}` is not a method", shortened(method)),
            "expected capital letters, such as `POST`",
        ));
    }
    Ok(method.to_owned())
}

/// Share among the sum of all weights.
pub(super) fn weight(section: &Section<'_>) -> Result<u32> {
    Ok(section.field("weight")?.map_or(Ok(1), |field| field.whole(1..=MAX_WEIGHT))? as u32)
}

/// Name by which steps refer to a request: its own, or method and path.
pub(super) fn name_of(section: &Section<'_>) -> Result<String> {
    named(section, section.required("path", "path: /")?.text()?)
}

fn named(section: &Section<'_>, path: &str) -> Result<String> {
    match section.field("name")? {
        Some(field) => name(&field),
        None => Ok(shortened_to(&format!("{} {path}", method(section)?), MAX_NAME_LENGTH)),
    }
}

fn bounded(field: &Field<'_>) -> Result<u64> {
    let bytes = field.quantity(parse_size)?;
    if bytes > MAX_BODY_BYTES {
        return Err(field.place().error(
            format!("`{}` is too large", field.path),
            format!("expected at most {}", format_size(MAX_BODY_BYTES)),
        ));
    }
    Ok(bytes)
}

/// A name for results.
pub(super) fn name(field: &Field<'_>) -> Result<String> {
    let name = field.text()?;
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME_LENGTH || name.chars().any(char::is_control) {
        return Err(field.place().error(
            format!("`{}` is not a name", field.path),
            format!("expected 1 to {MAX_NAME_LENGTH} characters on one line"),
        ));
    }
    Ok(name.to_owned())
}
