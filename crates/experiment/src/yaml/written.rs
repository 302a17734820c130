//! YAML to be written.

use serde::ser::{Serialize, SerializeMap, Serializer};
use std::path::Path;

/// YAML value.
#[derive(Clone, Debug)]
pub(crate) enum Yaml {
    Text(String),
    Number(u64),
    Decimal(f64),
    Switch(bool),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    pub(crate) fn path(path: Option<&Path>) -> Option<Self> {
        path.map(|path| Self::Text(path.display().to_string()))
    }

    /// A rate, without a needless decimal point: 1000, not 1000.0.
    pub(crate) fn rate(per_s: f64) -> Self {
        if per_s.fract() == 0.0 && per_s < 1e15 { Self::Number(per_s as u64) } else { Self::Decimal(per_s) }
    }
}

impl Serialize for Yaml {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Decimal(number) => serializer.serialize_f64(*number),
            Self::Switch(on) => serializer.serialize_bool(*on),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// Map builder.
#[derive(Default)]
pub(crate) struct Map(Vec<(String, Yaml)>);

impl Map {
    pub(crate) fn push(&mut self, key: &str, value: Yaml) {
        self.0.push((key.to_owned(), value));
    }

    pub(crate) fn with(mut self, key: &str, value: Yaml) -> Self {
        self.push(key, value);
        self
    }

    pub(crate) fn with_some(self, key: &str, value: Option<Yaml>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub(crate) fn text(self, key: &str, value: impl Into<String>) -> Self {
        self.with(key, Yaml::Text(value.into()))
    }

    pub(crate) fn number(self, key: &str, value: usize) -> Self {
        self.with(key, Yaml::Number(value as u64))
    }

    /// Absent if it is empty.
    pub(crate) fn some(self) -> Option<Yaml> {
        (!self.0.is_empty()).then(|| self.done())
    }

    pub(crate) fn done(self) -> Yaml {
        Yaml::Map(self.0)
    }
}
