//! Reads a traffic file: the server, and its kinds of requests with their templates.

use super::data::{DataReader, check_pointer, text_of};
use super::keys::{
    EXPECT, MAX_BODIES_BYTES, MAX_BODY_BYTES, MAX_KINDS, MAX_NAME_LENGTH, MAX_WEIGHT, REQUEST, ROOT,
};
use super::template::Piece;
use super::{Body, Data, Expectation, Header, RequestKind, Template, TrafficFile};
use crate::diagnostic::{ExperimentError, Place, Source};
use crate::file::{Files, MAX_FILE_BYTES};
use crate::keys::names;
use crate::yaml::document::{self, Entry, Node, Value};
use crate::yaml::section::{Field, Item, Section, alternatives};
use crate::yaml::suggestion::nearest;
use results::units::{format_size, parse_size, shortened, shortened_to};
use results::{ExpectedStatuses, StatusPattern};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const ROOT_KEYS: [&str; ROOT.len()] = names(&ROOT);
const REQUEST_KEYS: [&str; REQUEST.len()] = names(&REQUEST);
const EXPECT_KEYS: [&str; EXPECT.len()] = names(&EXPECT);

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
    let templates = Templates { index, data: &data };
    let common = templates.headers(&section)?;
    let field = section.required("requests", "requests: [{path: /}]")?;
    let nodes = field.nodes("expected a list of maps, such as `- path: /`")?;
    if nodes.is_empty() || nodes.len() > MAX_KINDS {
        return Err(field.place().error(
            format!("there are {} kinds of requests", nodes.len()),
            format!("expected 1 to {MAX_KINDS}"),
        ));
    }
    let (mut requests, mut known, mut body_bytes) = (Vec::new(), HashSet::new(), 0);
    for node in nodes {
        let (request, name_place) = templates.request(node, &common, files)?;
        if !known.insert(request.name.clone()) {
            return Err(name_place.error(
                format!("there are two requests `{}`", shortened(&request.name)),
                "expected a `name` of its own for each",
            ));
        }
        body_bytes += request.body.bytes();
        if body_bytes > MAX_BODIES_BYTES {
            let most = format_size(MAX_BODIES_BYTES);
            return Err(node
                .place
                .error("the bodies are too large", format!("expected at most {most} together")));
        }
        requests.push(request);
    }
    Ok(TrafficFile { url: url.text()?.to_owned(), requests, sources: reader.sources, data })
}

/// Entries of a map with at least one.
fn entries<'a>(field: &Field<'a>) -> Result<&'a [Entry]> {
    match field.node.entries() {
        [] => Err(field
            .place()
            .error(format!("`{}` is not a map with entries", field.path), "expected names with values")),
        entries => Ok(entries),
    }
}

/// Compiles templates of these data.
struct Templates<'d> {
    data: &'d [Data],
    /// Index of data by name.
    index: HashMap<&'d str, usize>,
}

impl Templates<'_> {
    fn request<'a>(
        &self,
        node: &'a Node,
        common: &[Header],
        files: &dyn Files,
    ) -> Result<(RequestKind, &'a Place)> {
        let section = Section::new(node, "traffic.requests", &REQUEST_KEYS, node.place.clone())?;
        let method = section.field("method")?;
        let method = method.map_or(Ok("GET".to_owned()), |field| method_of(&field))?;
        let path_field = section.required("path", "path: /")?;
        let path = self.path(&path_field)?;
        let name_field = section.field("name")?;
        let name = match &name_field {
            Some(field) => name(field)?,
            None => shortened_to(&format!("{method} {}", path_field.text()?), MAX_NAME_LENGTH),
        };
        let mut headers = self.headers(&section)?;
        let is_own = |other: &&Header| headers.iter().any(|own| own.name.eq_ignore_ascii_case(&other.name));
        let inherited: Vec<_> = common.iter().filter(|header| !is_own(header)).cloned().collect();
        headers.splice(0..0, inherited);
        let request = RequestKind {
            name,
            weight: section.field("weight")?.map_or(Ok(1), |field| field.whole(1..=MAX_WEIGHT))? as u32,
            method,
            path,
            shown_path: path_field.text()?.to_owned(),
            headers,
            body: self.body(&section, files)?,
            expect: section
                .field("expect")?
                .map_or(Ok(Expectation::default()), |field| expectation(&field))?,
        };
        Ok((request, name_field.map_or(&node.place, |field| field.place())))
    }

    fn compile(&self, text: &str, place: &Place) -> Result<Template> {
        Template::compile(text, |name| {
            self.index.get(name).copied().ok_or_else(|| {
                let names: Vec<&str> = self.data.iter().map(|data| data.name.as_str()).take(20).collect();
                let expected = if names.is_empty() {
                    "expected data with this name in `data`, which is missing".to_owned()
                } else {
                    format!("expected {}", shortened(&alternatives(&names)))
                };
                let near = nearest(name, self.data.iter().map(|data| data.name.as_str()));
                let hint = near.map_or_else(
                    || format!("braces that are to be sent are written `{{{{{}}}`", shortened(name)),
                    |near| format!("did you mean `{{{near}}}`?"),
                );
                place.error(format!("`{{{}}}` is not in `data`", shortened(name)), expected).with_hint(hint)
            })
        })
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
            Some(Piece::Brace) | None => false,
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
            Piece::Brace => None,
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
    fn body(&self, section: &Section<'_>, files: &dyn Files) -> Result<Body> {
        let given = [section.field("body")?, section.field("body-file")?, section.field("body-size")?];
        if let Some(second) = given.iter().flatten().nth(1) {
            return Err(second
                .key_place
                .error(format!("`{}` is a second body", second.path), "expected one of the three keys"));
        }
        let template = match given {
            [Some(text), ..] => self.compile(text.text()?, text.place())?,
            [_, Some(file), _] => self.compile(&text_of(&file, files)?, file.place())?,
            [.., Some(size)] => return bounded(&size).map(Body::Filler),
            [None, None, None] => Template::default(),
        };
        Ok(Body::Template(template))
    }
}

fn method_of(field: &Field<'_>) -> Result<String> {
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

fn name(field: &Field<'_>) -> Result<String> {
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

fn expectation(field: &Field<'_>) -> Result<Expectation> {
    let section = Section::new(field.node, &field.path, &EXPECT_KEYS, field.key_place.clone())?;
    let status = match section.field("status")? {
        Some(field) => {
            let patterns = field.one_or_list()?.into_iter().map(|item| {
                item.text.parse::<StatusPattern>().map_err(|error| {
                    item.place.error(
                        format!("`{}`: `{}` is not valid", field.path, shortened(item.text)),
                        error.to_string(),
                    )
                })
            });
            ExpectedStatuses::new(patterns.collect::<Result<_>>()?)
        }
        None => None,
    };
    let size = |key| section.field(key)?.map(|field| field.quantity(parse_size)).transpose();
    let (min_bytes, max_bytes) = (size("min-bytes")?, size("max-bytes")?);
    if let (Some(least), Some(most), Some(field)) = (min_bytes, max_bytes, section.field("max-bytes")?)
        && least > most
    {
        return Err(field.place().error(
            format!("`{}` is below `min-bytes`", field.path),
            format!("expected at least {}", format_size(least)),
        ));
    }
    if section.first_key().is_none() {
        return Err(field.place().error(
            format!("`{}` checks nothing", field.path),
            format!("expected {}", alternatives(&EXPECT_KEYS)),
        ));
    }
    let text = match section.field("text")? {
        Some(field) => texts(&field)?,
        None => Vec::new(),
    };
    let json = section.field("json")?.map_or(Ok(Vec::new()), |field| {
        entries(&field)?.iter().map(|entry| json_value(entry, &field.path)).collect()
    })?;
    Ok(Expectation { status, min_bytes, max_bytes, text, json })
}

fn texts(field: &Field<'_>) -> Result<Vec<String>> {
    let text = |item: Item<'_>| match item.text {
        "" => Err(item.place.error(
            format!("`{}` has an empty text", field.path),
            "expected one that not all bodies contain",
        )),
        text => Ok(text.to_owned()),
    };
    field.one_or_list()?.into_iter().map(text).collect()
}

/// A JSON pointer and the value there.
fn json_value(entry: &Entry, path: &str) -> Result<(String, String)> {
    check_pointer(&entry.key, &entry.key_place)?;
    let value = match entry.node.value {
        Value::Empty => "null",
        _ => {
            Field::new(&format!("{path}.{}", shortened(&entry.key)), &entry.key_place, &entry.node).text()?
        }
    };
    Ok((entry.key.clone(), value.to_owned()))
}
