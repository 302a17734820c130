//! Settings of a section, which describe their keys once: for reading, for writing and for the table of keys.

use super::value::Value;
use super::{DescribedKey, Key, Kind};
use crate::diagnostic::ExperimentError;
use crate::yaml::section::Section;
use crate::yaml::written::{Map, Yaml};

/// Settings of a section of a file.
pub(crate) trait Settings: Default {
    /// Visits every key in the order in which it is written.
    fn visit(&mut self, keys: &mut impl Keys);
}

/// Action on each key.
pub(crate) trait Keys {
    fn key<T: Value>(&mut self, value: &mut T, key: Key);

    /// Key that is not written if its value is the type's default.
    fn rare<T: Value + Default + PartialEq>(&mut self, value: &mut T, key: Key) {
        self.key(value, key);
    }

    /// Key that the reader of the section reads itself; `written` is its value in a file.
    fn own<T>(&mut self, value: &mut T, key: Key, written: impl Fn(&T) -> Option<Yaml>);

    /// Section below this one; the kind of its key names it.
    fn section(&mut self, settings: &mut impl Settings, key: Key);
}

/// Describes the keys of a section. Each line is a method of [`Keys`], a field, and the key's name, kind and meaning; after
/// `as` a label, if the name alone does not tell the setting.
macro_rules! keys {
    ($settings:ty { $($visit:ident $($field:ident).+: $name:literal $(as $label:literal)?, $kind:expr, $summary:expr $(, $written:expr)?;)+ }) => {
        impl $crate::keys::settings::Settings for $settings {
            fn visit(&mut self, keys: &mut impl $crate::keys::settings::Keys) {
                $(keys.$visit(&mut self.$($field).+, $crate::keys::Key::new($name, $kind, $summary)$(.label($label))? $(, $written)?);)+
            }
        }
    };
}
pub(crate) use keys;

/// Dotted key of a section below another.
fn path(key: Key) -> &'static str {
    let Kind::Named(path) = key.value else { unreachable!("`{}` is a section", key.name) };
    path
}

/// Reads the settings of a section. Keys that are not given keep their defaults.
pub(crate) fn read<S: Settings>(section: &Section<'_>) -> Result<S, Box<ExperimentError>> {
    let mut reader = Reader { section, error: None };
    let mut settings = S::default();
    settings.visit(&mut reader);
    reader.error.map_or(Ok(settings), Err)
}

struct Reader<'a> {
    section: &'a Section<'a>,
    /// The first error; the keys after it are not read.
    error: Option<Box<ExperimentError>>,
}

impl Reader<'_> {
    fn set<T>(&mut self, value: &mut T, given: Result<Option<T>, Box<ExperimentError>>) {
        match given {
            Ok(given) => given.into_iter().for_each(|given| *value = given),
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }
}

impl Keys for Reader<'_> {
    fn key<T: Value>(&mut self, value: &mut T, key: Key) {
        let field = self.section.field(key.name);
        self.set(value, field.and_then(|field| field.map(|field| T::read(&field, key.value)).transpose()));
    }

    fn own<T>(&mut self, _: &mut T, _: Key, _: impl Fn(&T) -> Option<Yaml>) {}

    fn section(&mut self, settings: &mut impl Settings, key: Key) {
        self.set(settings, self.section.section(key.name).and_then(|section| read(&section)).map(Some));
    }
}

/// Writes the settings of a section, except keys and sections that are hidden. `is_hidden` gets dotted keys.
pub(crate) fn written(
    settings: &(impl Settings + Clone),
    path: &'static str,
    is_hidden: &dyn Fn(&str) -> bool,
) -> Map {
    let mut writer = Writer { path, is_hidden, map: Map::default() };
    settings.clone().visit(&mut writer);
    writer.map
}

struct Writer<'a> {
    path: &'static str,
    is_hidden: &'a dyn Fn(&str) -> bool,
    map: Map,
}

impl Writer<'_> {
    fn push(&mut self, key: Key, written: Option<Yaml>) {
        let written = written.filter(|_| !(self.is_hidden)(&format!("{}.{}", self.path, key.name)));
        written.into_iter().for_each(|written| self.map.push(key.name, written));
    }
}

impl Keys for Writer<'_> {
    fn key<T: Value>(&mut self, value: &mut T, key: Key) {
        self.push(key, value.written(key.value));
    }

    fn rare<T: Value + Default + PartialEq>(&mut self, value: &mut T, key: Key) {
        if *value != T::default() {
            self.key(value, key);
        }
    }

    fn own<T>(&mut self, value: &mut T, key: Key, written: impl Fn(&T) -> Option<Yaml>) {
        self.push(key, written(value));
    }

    fn section(&mut self, settings: &mut impl Settings, key: Key) {
        let mut below = Writer { path: path(key), is_hidden: self.is_hidden, map: Map::default() };
        settings.visit(&mut below);
        self.push(key, below.map.some());
    }
}

/// Keys of a section and of the sections below it, each with the dotted key of its section.
pub(crate) fn tables<S: Settings>(path: &'static str) -> Vec<(&'static str, Vec<DescribedKey>)> {
    tables_of(&mut S::default(), path)
}

fn tables_of(settings: &mut impl Settings, path: &'static str) -> Vec<(&'static str, Vec<DescribedKey>)> {
    let mut table = Table::default();
    settings.visit(&mut table);
    [(path, table.keys)].into_iter().chain(table.below).collect()
}

#[derive(Default)]
struct Table {
    keys: Vec<DescribedKey>,
    below: Vec<(&'static str, Vec<DescribedKey>)>,
}

impl Table {
    fn push(&mut self, key: Key, default: Option<Yaml>) {
        let default =
            default.map(|default| serde_json::to_value(default).expect("it has text and numbers alone"));
        self.keys.push(DescribedKey { key, default });
    }
}

impl Keys for Table {
    fn key<T: Value>(&mut self, value: &mut T, key: Key) {
        self.push(key, value.written(key.value));
    }

    fn own<T>(&mut self, value: &mut T, key: Key, written: impl Fn(&T) -> Option<Yaml>) {
        self.push(key, written(value));
    }

    fn section(&mut self, settings: &mut impl Settings, key: Key) {
        self.push(key, None);
        self.below.extend(tables_of(settings, path(key)));
    }
}
