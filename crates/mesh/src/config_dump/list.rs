//! Lists and objects of a dump, read one element after the other.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

pub struct Each<T, F>(F, PhantomData<T>);

impl<T, F: FnMut(T)> Each<T, F> {
    pub fn new(look: F) -> Self {
        Self(look, PhantomData)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

#[derive(Default)]
pub struct Length(pub u64);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut length = 0;
        Each::new(|_: IgnoredAny| length += 1).deserialize(deserializer)?;
        Ok(Self(length))
    }
}

/// Reads a dump or a section of it, one entry after the other.
pub trait ReadEntries: Copy {
    fn read_entries<'de, A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error>;
}

#[derive(Clone, Copy)]
pub struct Object<R>(pub R);

impl<'de, R: ReadEntries> DeserializeSeed<'de> for Object<R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, R: ReadEntries> Visitor<'de> for Object<R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a configuration dump or a section of it")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.read_entries(map)
    }
}

pub struct Sections<R>(pub R);

impl<'de, R: ReadEntries> DeserializeSeed<'de> for Sections<R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, R: ReadEntries> Visitor<'de> for Sections<R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sections of a configuration dump")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Object(self.0))?.is_some() {}
        Ok(())
    }
}
