//! Reads the checks of responses.

use super::Expectation;
use super::data::check_pointer;
use super::keys::EXPECT;
use super::reader::entries;
use crate::diagnostic::ExperimentError;
use crate::keys::names;
use crate::yaml::document::Entry;
use crate::yaml::section::{Field, Item, Section, alternatives};
use results::units::{format_size, parse_size, shortened};
use results::{ExpectedStatuses, StatusPattern};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const EXPECT_KEYS: [&str; EXPECT.len()] = names(&EXPECT);

/// The checks of a request.
pub(super) fn expectation(field: &Field<'_>) -> Result<Expectation> {
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
    let path = format!("{path}.{}", shortened(&entry.key));
    let value = Field::new(&path, &entry.key_place, &entry.node).text()?.to_owned();
    Ok((entry.key.clone(), value))
}
