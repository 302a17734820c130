//! Responses of a database to commands.

use super::bson::{Fields, Malformed, Value};
use super::error::QueryError;
use super::message::{HEADER_BYTES, MAX_MESSAGE_BYTES, bytes_after, document};

/// Code of a write error: the key exists.
const DUPLICATE_KEY: f64 = 11_000.0;

/// A response to a command that succeeded. Single documents of an insert may still have failed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Response {
    /// Documents that the filter of an update matched.
    pub matched: u64,
    /// Documents of a batch.
    pub found: u32,
    /// Identifies the rest of the documents on the server; 0 if there are no more.
    pub cursor: i64,
    pub write_errors: Vec<WriteError>,
    write_concern_error: Option<String>,
}

/// Why one document was not written.
#[derive(Debug, PartialEq)]
pub(super) struct WriteError {
    is_duplicate: bool,
    message: String,
}

impl Response {
    /// `encoded`: the document of the response.
    pub(super) fn read(encoded: &[u8]) -> Result<Self, QueryError> {
        let mut response = Self::default();
        let (mut is_ok, mut message) = (false, None);
        for field in Fields::new(encoded)? {
            match field? {
                ("ok", value) => is_ok = value.number() == Some(1.0),
                ("errmsg", Value::String(text)) => message = Some(text),
                ("n", value) => response.matched = value.number().unwrap_or_default() as u64,
                ("cursor", Value::Document(cursor)) => response.read_cursor(cursor)?,
                ("writeErrors", Value::Array(errors)) => {
                    let errors = values(errors)?.map(write_error);
                    response.write_errors = errors.collect::<Result<_, _>>()?;
                }
                ("writeConcernError", Value::Document(error)) => {
                    response.write_concern_error = Some(write_error(Ok(Value::Document(error)))?.message);
                }
                _ => {}
            }
        }
        if is_ok {
            Ok(response)
        } else {
            Err(QueryError::Refused(message.unwrap_or("the operation failed without a message").to_owned()))
        }
    }

    fn read_cursor(&mut self, cursor: &[u8]) -> Result<(), Malformed> {
        for field in Fields::new(cursor)? {
            match field? {
                ("id", Value::Int64(id)) => self.cursor = id,
                ("firstBatch" | "nextBatch", Value::Array(batch)) => {
                    for document in values(batch)? {
                        let Value::Document(_) = document? else {
                            return Err(Malformed("a batch has values that are not documents"));
                        };
                        self.found += 1;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An error if a document was not written.
    pub(super) fn written(self) -> Result<Self, QueryError> {
        let first = self.write_errors.first().map(|error| &error.message);
        match first.or(self.write_concern_error.as_ref()) {
            Some(message) => Err(QueryError::Refused(message.clone())),
            None => Ok(self),
        }
    }

    /// An error if a document was not written, unless it was there already.
    pub(super) fn there(mut self) -> Result<Self, QueryError> {
        self.write_errors.retain(|error| !error.is_duplicate);
        self.written()
    }
}

fn values(array: &[u8]) -> Result<impl Iterator<Item = Result<Value<'_>, Malformed>>, Malformed> {
    Ok(Fields::new(array)?.map(|field| field.map(|(_, value)| value)))
}

fn write_error(value: Result<Value<'_>, Malformed>) -> Result<WriteError, Malformed> {
    let Value::Document(encoded) = value? else {
        return Err(Malformed("an error is not a document"));
    };
    let mut error = WriteError { is_duplicate: false, message: String::new() };
    for field in Fields::new(encoded)? {
        match field? {
            ("code", value) => error.is_duplicate = value.number() == Some(DUPLICATE_KEY),
            ("errmsg", Value::String(text)) => error.message = text.to_owned(),
            _ => {}
        }
    }
    Ok(error)
}

/// Reads `input` as the response of a database to its first request, and checks that no more is found than there are bytes. For
/// fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_database_response(input: &[u8]) {
    let Some((header, message)) = input.split_first_chunk::<HEADER_BYTES>() else { return };
    let Ok(length) = bytes_after(*header, 1) else { return };
    assert!(length <= MAX_MESSAGE_BYTES);
    let Some(response) = document(message).ok().and_then(|document| Response::read(document).ok()) else {
        return;
    };
    assert!(response.found as usize <= message.len() && response.write_errors.len() <= message.len());
    let errors = response.write_errors.iter().map(|error| error.message.len()).sum::<usize>();
    assert!(errors <= message.len());
    let is_written = response.write_errors.iter().all(|error| error.is_duplicate);
    assert!(is_written || response.there().is_err());
}

#[cfg(test)]
mod tests {
    use super::super::bson::Document;
    use super::*;

    fn document(fields: &[(&str, Value<'_>)]) -> Document {
        fields.iter().fold(Document::new(), |document, (name, value)| document.with(name, *value))
    }

    fn read(fields: &[(&str, Value<'_>)]) -> Result<Response, String> {
        Response::read(document(fields).as_bytes()).map_err(|error| error.to_string())
    }

    fn insert(codes: &[i32]) -> Response {
        let errors: Vec<Document> = codes
            .iter()
            .map(|code| {
                let message = format!("error {code}");
                document(&[
                    ("index", Value::Int32(0)),
                    ("code", Value::Int32(*code)),
                    ("errmsg", Value::String(&message)),
                ])
            })
            .collect();
        let errors = Document::array(errors.iter().map(|error| Value::Document(error.as_bytes())));
        read(&[("ok", Value::Double(1.0)), ("writeErrors", Value::Array(errors.as_bytes()))]).unwrap()
    }

    #[test]
    fn batches_are_counted() {
        let found = Document::new();
        let batch = Document::array([Value::Document(found.as_bytes()); 3]);
        for name in ["firstBatch", "nextBatch"] {
            let cursor = document(&[(name, Value::Array(batch.as_bytes())), ("id", Value::Int64(7))]);
            let response =
                read(&[("cursor", Value::Document(cursor.as_bytes())), ("ok", Value::Int32(1))]).unwrap();
            assert_eq!((response.found, response.cursor), (3, 7));
        }
        let numbers = Document::array([Value::Int32(1)]);
        let cursor = document(&[("firstBatch", Value::Array(numbers.as_bytes()))]);
        let error = read(&[("cursor", Value::Document(cursor.as_bytes()))]).unwrap_err();
        assert!(error.contains("not documents"), "{error}");
    }

    #[test]
    fn matched_documents_are_read_in_any_numeric_type() {
        for number in [Value::Int32(2), Value::Int64(2), Value::Double(2.0)] {
            assert_eq!(read(&[("n", number), ("ok", Value::Int64(1))]).unwrap().matched, 2);
        }
    }

    #[test]
    fn refusal_has_the_words_of_the_database() {
        let refusal = [("ok", Value::Double(0.0)), ("errmsg", Value::String("no such command"))];
        assert_eq!(read(&refusal).unwrap_err(), "no such command");
        assert_eq!(read(&[]).unwrap_err(), "the operation failed without a message");
    }

    #[test]
    fn duplicates_are_errors_unless_documents_may_be_there() {
        let message = |result: Result<Response, QueryError>| result.map_err(|error| error.to_string());
        assert_eq!(message(insert(&[]).written()), Ok(insert(&[])));
        assert_eq!(message(insert(&[11_000, 11_000]).there()), Ok(insert(&[])));
        assert_eq!(message(insert(&[11_000]).written()), Err("error 11000".to_owned()));
        assert_eq!(message(insert(&[11_000, 13]).there()), Err("error 13".to_owned()));
        let concern = document(&[("code", Value::Int32(64)), ("errmsg", Value::String("timed out"))]);
        let response =
            read(&[("ok", Value::Double(1.0)), ("writeConcernError", Value::Document(concern.as_bytes()))]);
        assert_eq!(message(response.unwrap().there()), Err("timed out".to_owned()));
    }
}
