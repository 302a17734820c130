//! Reads maps key by key: only known keys, each with its place for error messages.

use super::document::{Entry, Node, Value};
use super::suggestion::nearest;
use crate::diagnostic::{ExperimentError, Place};
use crate::keys::MAX_RUN_DURATION;
use results::units::{UnitError, parse_duration};
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Sections of a kind of file: dotted key, and names of the keys below it.
pub(crate) type SectionTable = [(&'static str, &'static [&'static str])];

/// Map in the file.
pub(crate) struct Section<'a> {
    /// Dotted key of the map; empty for the top level.
    path: String,
    /// Key that the map belongs to, or the start of the file.
    place: Place,
    entries: &'a [Entry],
    table: &'static SectionTable,
}

impl<'a> Section<'a> {
    /// Section for the whole file, which consists of the sections of a table.
    pub(crate) fn root(node: &'a Node, table: &'static SectionTable) -> Result<Self> {
        Self::of_table(node, "", node.place.clone(), table)
    }

    /// Map with these keys. `path` names it in messages; errors about missing keys point at `place`.
    pub(crate) fn new(node: &'a Node, path: &str, known: &[&'static str], place: Place) -> Result<Self> {
        Self::with_table(node, path, known, place, &[])
    }

    fn of_table(node: &'a Node, path: &str, place: Place, table: &'static SectionTable) -> Result<Self> {
        Self::with_table(node, path, keys_of(table, path), place, table)
    }

    fn with_table(
        node: &'a Node,
        path: &str,
        known: &[&'static str],
        place: Place,
        table: &'static SectionTable,
    ) -> Result<Self> {
        let entries = match &node.value {
            Value::Map(entries) => entries.as_slice(),
            Value::Empty => &[],
            _ => {
                let first: Vec<&str> = known.iter().copied().take(2).collect();
                let subject = if path.is_empty() { "this".to_owned() } else { format!("`{path}`") };
                return Err(node.place.error(
                    format!("{subject} is not a map"),
                    format!("expected keys such as {}", listed(&first)),
                ));
            }
        };
        if let Some(unknown) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            return Err(unknown_key(table, path, known, &unknown.key, &unknown.key_place));
        }
        Ok(Self { path: path.to_owned(), place, entries, table })
    }

    /// Section under a key; has no entries if absent.
    pub(crate) fn section(&self, key: &str) -> Result<Self> {
        let dotted = self.dotted(key);
        let known = self.table.iter().find(|(section, _)| *section == dotted);
        let (path, _) = *known.expect("the reader asks for sections of the table alone");
        match self.entries.iter().find(|entry| entry.key == key) {
            Some(entry) => Self::of_table(&entry.node, path, entry.key_place.clone(), self.table),
            None => {
                Ok(Self { path: path.to_owned(), place: self.place.clone(), entries: &[], table: self.table })
            }
        }
    }

    /// Key that the map belongs to; if absent, that of the enclosing map.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// True if a key is given, with or without a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// First key that is given, dotted, and its place.
    pub(crate) fn first_key(&self) -> Option<(String, &'a Place)> {
        self.entries.first().map(|entry| (self.dotted(&entry.key), &entry.key_place))
    }

    /// Value of a key, if given. A key without a value is an error.
    pub(crate) fn field(&self, key: &str) -> Result<Option<Field<'a>>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else { return Ok(None) };
        let field = Field {
            path: self.dotted(key),
            key_place: &entry.key_place,
            node: &entry.node,
            table: self.table,
        };
        match field.node.value {
            Value::Empty => {
                Err(entry.key_place.error(format!("`{}` has no value", field.path), "expected a value here"))
            }
            _ => Ok(Some(field)),
        }
    }

    /// Value of a mandatory key.
    pub(crate) fn required(&self, key: &str, example: &str) -> Result<Field<'a>> {
        self.field(key)?.ok_or_else(|| self.missing(&format!("`{}`", self.dotted(key)), example))
    }

    /// Error for a missing mandatory key.
    pub(crate) fn missing(&self, what: &str, example: &str) -> Box<ExperimentError> {
        self.place.error(format!("{what} is missing"), format!("expected here, for example `{example}`"))
    }

    fn dotted(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Value of a key.
pub(crate) struct Field<'a> {
    /// Dotted key, for messages.
    pub(crate) path: String,
    pub(crate) key_place: &'a Place,
    pub(crate) node: &'a Node,
    table: &'static SectionTable,
}

impl<'a> Field<'a> {
    /// Value of a key of a file without a table of sections.
    pub(crate) fn new(path: &str, key_place: &'a Place, node: &'a Node) -> Self {
        Self { path: path.to_owned(), key_place, node, table: &[] }
    }

    pub(crate) fn place(&self) -> &'a Place {
        &self.node.place
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// Text of a scalar.
    pub(crate) fn text(&self) -> Result<&'a str> {
        self.scalar(self.node).map(|item| item.text)
    }

    /// The values of a list.
    pub(crate) fn nodes(&self, expected: &str) -> Result<&'a [Node]> {
        match &self.node.value {
            Value::List(nodes) => Ok(nodes),
            _ => Err(self.place().error(format!("`{}` is not a list", self.path), expected)),
        }
    }

    /// A scalar, or every scalar of a non-empty list.
    pub(crate) fn one_or_list(&self) -> Result<Vec<Item<'a>>> {
        let Value::List(items) = &self.node.value else { return Ok(vec![self.scalar(self.node)?]) };
        if items.is_empty() {
            return Err(self
                .place()
                .error(format!("`{}` is empty", self.path), "expected at least one value"));
        }
        items.iter().map(|item| self.scalar(item)).collect()
    }

    /// A map, or every map of a list, as sections.
    pub(crate) fn sections(&self, path: &'static str) -> Result<Vec<Section<'a>>> {
        let section = |node: &'a Node| Section::of_table(node, path, node.place.clone(), self.table);
        match &self.node.value {
            Value::List(items) => items.iter().map(section).collect(),
            _ => Ok(vec![section(self.node)?]),
        }
    }

    /// Value parsed by a parser of [`results::units`].
    pub(crate) fn quantity<T>(&self, parse: impl Fn(&str) -> std::result::Result<T, UnitError>) -> Result<T> {
        self.scalar(self.node)?.quantity(&self.path, parse)
    }

    /// Integer in a range.
    pub(crate) fn whole(&self, range: std::ops::RangeInclusive<usize>) -> Result<usize> {
        self.scalar(self.node)?.whole(&self.path, range)
    }

    /// Duration above 0 and at most 24 h.
    pub(crate) fn positive_duration(&self) -> Result<Duration> {
        let duration = self.quantity(parse_duration)?;
        if duration.is_zero() || duration > MAX_RUN_DURATION {
            return Err(self
                .place()
                .error(format!("`{}` is not valid", self.path), "expected more than 0s and at most 24h"));
        }
        Ok(duration)
    }

    /// One of several words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T> {
        self.scalar(self.node)?.choice(&self.path, choices)
    }

    fn scalar(&self, node: &'a Node) -> Result<Item<'a>> {
        match &node.value {
            Value::Scalar(text) => Ok(Item { text, place: &node.place }),
            Value::Empty => Err(node
                .place
                .error(format!("`{}` holds an empty value", self.path), "expected a value here")),
            Value::List(_) | Value::Map(_) => Err(node.place.error(
                format!("`{}` is not a single value", self.path),
                "expected one value, without keys or a list of its own",
            )),
        }
    }
}

/// Scalar with its place.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) text: &'a str,
    pub(crate) place: &'a Place,
}

impl Item<'_> {
    pub(crate) fn quantity<T>(
        &self,
        path: &str,
        parse: impl Fn(&str) -> std::result::Result<T, UnitError>,
    ) -> Result<T> {
        parse(self.text).map_err(|error| {
            self.with_list_hint(self.place.error(
                format!("`{path}`: `{}` is not a {}", error.given, error.quantity),
                format!("{}, for example `{}`", error.expected, error.example),
            ))
        })
    }

    pub(crate) fn whole(&self, path: &str, range: std::ops::RangeInclusive<usize>) -> Result<usize> {
        let number = self.text.trim().parse::<usize>().ok();
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            self.with_list_hint(self.place.error(
                format!("`{path}`: `{}` is not valid", results::units::shortened(self.text)),
                format!("expected a whole number from {} to {}", range.start(), range.end()),
            ))
        })
    }

    /// Adds a hint: `2,4` is a single text; lists need brackets.
    fn with_list_hint(&self, error: Box<ExperimentError>) -> Box<ExperimentError> {
        if self.text.contains(',') && !self.text.contains('\n') {
            let values: Vec<&str> = self.text.split(',').map(str::trim).collect();
            error.with_hint(format!(
                "several values are a list: `[{}]`",
                results::units::shortened(&values.join(", "))
            ))
        } else {
            error
        }
    }

    pub(crate) fn choice<T: Copy>(&self, path: &str, choices: &[(&'static str, T)]) -> Result<T> {
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == self.text) {
            return Ok(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let error = self.place.error(
            format!("`{path}`: `{}` is not known", results::units::shortened(self.text)),
            format!("expected {}", alternatives(&names)),
        );
        Err(error.did_you_mean(nearest(self.text, names)))
    }
}

/// Names of the keys of a section; none if the table lacks it.
pub(crate) fn keys_of(table: &'static SectionTable, path: &str) -> &'static [&'static str] {
    table.iter().find(|(section, _)| *section == path).map_or(&[], |(_, keys)| keys)
}

/// Error for a key that a section does not have. `known`: the keys that it has.
pub(crate) fn unknown_key(
    table: &'static SectionTable,
    section: &str,
    known: &[&str],
    key: &str,
    place: &Place,
) -> Box<ExperimentError> {
    let shown = results::units::shortened(key);
    if known.is_empty() {
        let sections: Vec<&str> =
            table.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        let section_shown = results::units::shortened(section);
        return place.error(
            format!("`{section_shown}` has no keys below it"),
            format!("expected a key of {}", alternatives(&sections)),
        );
    }
    let subject = if section.is_empty() { "an experiment".to_owned() } else { format!("`{section}`") };
    let error = place
        .error(format!("`{shown}` is not a key of {subject}"), format!("expected {}", alternatives(known)));
    if let Some(name) = nearest(key, known.iter().copied()) {
        return error.with_hint(format!("did you mean `{name}`?"));
    }
    // In a dotted key, the first part may be the unknown one.
    if let Some((first, rest)) = key.split_once('.')
        && let Some(name) = nearest(first, known.iter().copied())
    {
        return error.with_hint(format!("did you mean `{name}.{}`?", results::units::shortened(rest)));
    }
    let elsewhere = |(other, keys): &&(&str, &[&str])| *other != section && keys.contains(&key);
    match table.iter().filter(|_| known == keys_of(table, section)).find(elsewhere) {
        Some(("", _)) => error.with_hint(format!("`{shown}` belongs at the top of the file")),
        Some((other, _)) => error.with_hint(format!("`{shown}` belongs under `{other}`")),
        None => error,
    }
}

/// Formats names as `a, b or c`, each in backticks.
pub(crate) fn alternatives(names: &[&str]) -> String {
    joined(names, "or")
}

/// Formats names as `a, b and c`, each in backticks.
pub(crate) fn listed(names: &[&str]) -> String {
    joined(names, "and")
}

fn joined(names: &[&str], last: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
    }
}
