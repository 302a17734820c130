//! Reads the data of templates: numbers, values in the file, columns of CSV and fields of JSON lines.

use super::csv::Records;
use super::keys::{DATA, MAX_BODY_BYTES, MAX_NAME_LENGTH, MAX_NUMBER};
use super::template::is_name;
use super::{AtEnd, Data, FILLER_SIZES, Order, Rows, Source, Values};
use crate::diagnostic::{ExperimentError, Place};
use crate::file::Files;
use crate::keys::names;
use crate::keys::words::Words as _;
use crate::topology::file::size_up_to;
use crate::yaml::document::Entry;
use crate::yaml::section::{Field, Section, alternatives};
use crate::yaml::suggestion::nearest;
use results::json_part;
use results::units::shortened;
use std::collections::HashMap;
use std::rc::Rc;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const DATA_KEYS: [&str; DATA.len()] = names(&DATA);

/// Origin of values.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Origin {
    Unique,
    Range,
    Values,
    Filler,
    Csv,
    JsonLines,
}

/// Key of each origin, and the keys that it takes beside.
const ORIGINS: [(&str, Origin, &[&str]); 6] = [
    ("unique", Origin::Unique, &["from"]),
    ("range", Origin::Range, &["order", "at-end"]),
    ("values", Origin::Values, &["order", "at-end"]),
    ("filler", Origin::Filler, &[]),
    ("csv", Origin::Csv, &["column", "order", "at-end"]),
    ("json-lines", Origin::JsonLines, &["pointer", "order", "at-end"]),
];

/// Reads data with the sources that they share.
pub(super) struct DataReader<'f> {
    files: &'f dyn Files,
    /// Files read so far.
    texts: HashMap<String, Rc<str>>,
    /// Source of each file, by how it is taken.
    of_files: Vec<(String, Order, AtEnd, usize)>,
    pub(super) sources: Vec<Source>,
}

impl<'f> DataReader<'f> {
    pub(super) fn new(files: &'f dyn Files) -> Self {
        Self { files, texts: HashMap::new(), of_files: Vec::new(), sources: Vec::new() }
    }

    pub(super) fn read(&mut self, entry: &Entry) -> Result<Data> {
        let name = entry.key.as_str();
        if !is_name(name) || name.len() > MAX_NAME_LENGTH {
            return Err(entry.key_place.error(
                format!("`{}` is not a name of data", shortened(name)),
                format!("expected at most {MAX_NAME_LENGTH} letters, digits, `-` and `_`, a letter first"),
            ));
        }
        let path = format!("traffic.data.{name}");
        let section = Section::new(&entry.node, &path, &DATA_KEYS, entry.key_place.clone())?;
        let (field, origin) = origin(&section)?;
        let order = choice(&section, "order", Order::WORDS)?;
        let at_end = choice(&section, "at-end", AtEnd::WORDS)?;
        if let (Order::Random, AtEnd::Stop, Some(field)) = (order, at_end, section.field("at-end")?) {
            return Err(field.place().error(
                format!("`{}` contradicts `order: random`", field.path),
                "expected `again`: values that are drawn have no end",
            ));
        }
        let values = match origin {
            Origin::Unique | Origin::Range => Values::Numbers,
            Origin::Filler => Values::Filler(size_up_to(&field, MAX_BODY_BYTES)?),
            Origin::Values => {
                let mut rows = Rows::default();
                field.one_or_list()?.iter().for_each(|item| rows.push(item.text));
                Values::Rows(rows)
            }
            Origin::Csv => {
                Values::Rows(column(&field, section.field("column")?.as_ref(), &self.text(&field)?)?)
            }
            Origin::JsonLines => {
                Values::Rows(parts(&field, section.field("pointer")?.as_ref(), &self.text(&field)?)?)
            }
        };
        let order = if origin == Origin::Filler { Order::Random } else { order };
        let (first, count) = match (origin, &values) {
            (_, Values::Rows(rows)) => (0, Some(rows.count() as u64)),
            (_, Values::Filler(_)) => (0, Some(FILLER_SIZES)),
            (Origin::Range, Values::Numbers) => range(&field)?,
            (_, Values::Numbers) => (first(&field, section.field("from")?)?, None),
        };
        let source = Source { first, count, order, at_end };
        let is_file = matches!(origin, Origin::Csv | Origin::JsonLines);
        let source = self.source(is_file.then(|| field.text()).transpose()?, source);
        Ok(Data { name: name.to_owned(), source, values })
    }

    /// Index of a source. Data of one file that are taken in the same way share it.
    fn source(&mut self, file: Option<&str>, source: Source) -> usize {
        let index = self.sources.len();
        if let Some(file) = file {
            let known = self.of_files.iter().find(|(known, order, at_end, _)| {
                (known.as_str(), *order, *at_end) == (file, source.order, source.at_end)
            });
            if let Some((.., index)) = known {
                return *index;
            }
            self.of_files.push((file.to_owned(), source.order, source.at_end, index));
        }
        self.sources.push(source);
        index
    }

    fn text(&mut self, field: &Field<'_>) -> Result<Rc<str>> {
        let path = field.text()?;
        if let Some(text) = self.texts.get(path) {
            return Ok(Rc::clone(text));
        }
        let text: Rc<str> = text_of(field, self.files)?.into();
        self.texts.insert(path.to_owned(), Rc::clone(&text));
        Ok(text)
    }
}

/// Text of the file that a field names.
pub(super) fn text_of(field: &Field<'_>, files: &dyn Files) -> Result<String> {
    let text = files.text(field.text()?);
    text.map_err(|reason| field.place().error(format!("`{}` cannot be read", field.path), reason))
}

/// The one key that says where the values come from.
fn origin<'a>(section: &Section<'a>) -> Result<(Field<'a>, Origin)> {
    let mut given = Vec::new();
    for (key, origin, beside) in ORIGINS {
        given.extend(section.field(key)?.map(|field| (field, key, origin, beside)));
    }
    let all = alternatives(&ORIGINS.map(|(key, ..)| key));
    if let [_, (second, ..), ..] = &given[..] {
        return Err(second.key_place.error(
            format!("`{}` is a second origin of the values", second.path),
            format!("expected one of {all}"),
        ));
    }
    let Some((field, own, origin, beside)) = given.pop() else {
        return Err(section.place().error("these data have no values", format!("expected {all}")));
    };
    for key in DATA_KEYS.into_iter().filter(|key| !ORIGINS.iter().any(|(origin, ..)| origin == key)) {
        if let Some(other) = section.field(key)?.filter(|_| !beside.contains(&key)) {
            return Err(other
                .key_place
                .error(format!("`{}` has no effect beside `{own}`", other.path), "expected to be left out"));
        }
    }
    Ok((field, origin))
}

fn choice<T: Copy + Default>(section: &Section<'_>, key: &str, words: &[(&'static str, T)]) -> Result<T> {
    section.field(key)?.map_or(Ok(T::default()), |field| field.choice(words))
}

/// First of the unique numbers.
fn first(unique: &Field<'_>, from: Option<Field<'_>>) -> Result<u64> {
    unique.choice(&[("true", ())])?;
    from.map_or(Ok(1), |field| field.whole(0..=MAX_NUMBER)).map(|first| first as u64)
}

/// First number of a range, and how many there are.
fn range(field: &Field<'_>) -> Result<(u64, Option<u64>)> {
    let bounds = field.one_or_list()?;
    let [first, last] = &bounds[..] else {
        return Err(field.place().error(
            format!("`{}` does not have two bounds", field.path),
            "expected two numbers, such as `[1, 50]`",
        ));
    };
    let low = first.whole(&field.path, 0..=MAX_NUMBER)?;
    let high = last.whole(&field.path, 0..=MAX_NUMBER)?;
    if low > high {
        return Err(last
            .place
            .error("the upper bound is below the lower", "expected the lower first, then the upper"));
    }
    Ok((low as u64, Some((high - low) as u64 + 1)))
}

/// Error in a file of data.
fn fault(field: &Field<'_>, line: usize, reason: &str) -> Box<ExperimentError> {
    let file = field.text().unwrap_or_default();
    field.place().error(format!("`{}`, line {line}: {reason}", shortened(file)), "in this file")
}

/// Fails if a file has no values.
fn not_empty(field: &Field<'_>, rows: Rows) -> Result<Rows> {
    if rows.count() == 0 {
        return Err(field
            .place()
            .error(format!("`{}` has no values", field.path), "expected at least one in this file"));
    }
    Ok(rows)
}

/// A column of CSV, whose first record has the names.
fn column(field: &Field<'_>, column: Option<&Field<'_>>, text: &str) -> Result<Rows> {
    let mut records = Records::new(text);
    let mut next = || {
        let record = records.next().transpose();
        record.map_err(|malformed| fault(field, malformed.line, malformed.reason))
    };
    let Some((_, head)) = next()? else { return not_empty(field, Rows::default()) };
    let head: Vec<&str> = head.iter().map(|name| name.trim()).collect();
    let index = match column {
        Some(column) => {
            let name = column.text()?;
            if head.iter().filter(|known| **known == name).count() > 1 {
                let text = format!("the file has several columns `{}`", shortened(name));
                return Err(column.place().error(text, "expected a name that only one column has"));
            }
            head.iter().position(|known| *known == name).ok_or_else(|| {
                let shown: Vec<&str> = head.iter().copied().take(20).collect();
                let error = column.place().error(
                    format!("`{}` is not a column of the file", shortened(name)),
                    format!("expected {}", shortened(&alternatives(&shown))),
                );
                error.did_you_mean(nearest(name, head.iter().copied()))
            })?
        }
        None if head.len() == 1 => 0,
        None => {
            let missing = field.place().error(
                format!("`{}` has {} columns", field.path, head.len()),
                "expected `column` beside it, with the name of one",
            );
            return Err(missing);
        }
    };
    let mut rows = Rows::default();
    while let Some((line, record)) = next()? {
        if record.len() != head.len() {
            let reason = format!("it has {} of {} values", record.len(), head.len());
            return Err(fault(field, line, &reason));
        }
        rows.push(&record[index]);
    }
    not_empty(field, rows)
}

/// Rejects text that is not a JSON pointer.
pub(super) fn check_pointer(pointer: &str, place: &Place) -> Result<()> {
    if pointer.is_empty() || pointer.starts_with('/') {
        return Ok(());
    }
    let text = format!("`{}` is not a JSON pointer", shortened(pointer));
    Err(place.error(text, "expected one such as `/user/id`"))
}

/// The part of each JSON line that a pointer names: the text of a string, anything else as JSON.
fn parts(field: &Field<'_>, pointer: Option<&Field<'_>>, text: &str) -> Result<Rows> {
    let path = pointer.map_or(Ok(""), Field::text)?;
    pointer.map_or(Ok(()), |field| check_pointer(path, field.place()))?;
    let mut rows = Rows::default();
    let lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().zip(1..);
    for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
        let part = json_part(line.as_bytes(), path)
            .map_err(|_| fault(field, number, "it is not a JSON value"))?
            .ok_or_else(|| fault(field, number, &format!("it has nothing at `{}`", shortened(path))))?;
        rows.push(&part);
    }
    not_empty(field, rows)
}
