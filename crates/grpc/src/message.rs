//! Encodes messages from JSON in protobuf's JSON mapping.

use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

/// Message types that are JSON arrays themselves: an array is then a single message.
const ARRAYS: [&str; 2] = ["google.protobuf.ListValue", "google.protobuf.Value"];

/// Invalid message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The text is not JSON.
    #[error("read the message as JSON")]
    NotJson(#[source] serde_json::Error),
    /// Empty array.
    #[error("the array has no message in it")]
    Empty,
    /// JSON that does not fit a field of the message.
    #[error("{}the field `{field}` does not fit `{message_type}`", nth(*.index, *.messages))]
    Field {
        /// Index of the message, from 0.
        index: usize,
        /// Number of messages.
        messages: usize,
        /// Path of the field, such as `items[2].count`.
        field: String,
        /// Full name of the message type.
        message_type: String,
        /// Deserialization error.
        #[source]
        cause: serde_json::Error,
    },
    /// JSON that does not fit the message, for example because of an unknown field.
    #[error("{}it does not fit `{message_type}`", nth(*.index, *.messages))]
    Type {
        /// Index of the message, from 0.
        index: usize,
        /// Number of messages.
        messages: usize,
        /// Full name of the message type.
        message_type: String,
        /// JSON names of the existing fields.
        known: Vec<String>,
        /// Deserialization error.
        #[source]
        cause: serde_json::Error,
    },
}

impl MessageError {
    /// Suggested fix, if any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotJson(_) | Self::Empty => {
                Some("a message is an object such as '{\"name\": \"x\"}'; several are an array, or one after the other".into())
            }
            Self::Type { known, message_type, .. } if known.is_empty() => {
                Some(format!("`{message_type}` has no fields: {{}} is the only one"))
            }
            Self::Type { known, message_type, .. } => {
                Some(format!("the fields of `{message_type}` are {}", known.join(", ")))
            }
            Self::Field { .. } => None,
        }
    }
}

/// Prefix that says which message is meant, if there are several.
fn nth(index: usize, messages: usize) -> String {
    if messages == 1 { String::new() } else { format!("message {} of {messages}: ", index + 1) }
}

/// See [`crate::Method::encode`].
pub(crate) fn encode(message_type: &MessageDescriptor, json: &str) -> Result<Vec<Vec<u8>>, MessageError> {
    let mut values: Vec<&RawValue> = Vec::new();
    for value in Deserializer::from_str(json).into_iter() {
        values.push(value.map_err(MessageError::NotJson)?);
    }
    if values.is_empty() {
        // Whatever JSON the type has: not all are objects.
        return Ok(vec![DynamicMessage::new(message_type.clone()).encode_to_vec()]);
    }
    if let [only] = values[..]
        && only.get().starts_with('[')
        && !ARRAYS.contains(&message_type.full_name())
    {
        values = serde_json::from_str(only.get()).map_err(MessageError::NotJson)?;
    }
    if values.is_empty() {
        return Err(MessageError::Empty);
    }
    let messages = values.len();
    let encode = |(index, value): (usize, &&RawValue)| encode_one(message_type, value.get(), index, messages);
    values.iter().enumerate().map(encode).collect()
}

fn encode_one(
    message_type: &MessageDescriptor,
    json: &str,
    index: usize,
    messages: usize,
) -> Result<Vec<u8>, MessageError> {
    let mut track = serde_path_to_error::Track::new();
    let mut deserializer = Deserializer::from_str(json);
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    match DynamicMessage::deserialize(message_type.clone(), tracked) {
        Ok(message) => Ok(message.encode_to_vec()),
        Err(cause) => {
            let (field, type_name) = (track.path(), message_type.full_name().to_owned());
            Err(if field.iter().next().is_none() {
                let known = message_type.fields().map(|field| field.json_name().to_owned()).collect();
                MessageError::Type { index, messages, message_type: type_name, known, cause }
            } else {
                MessageError::Field {
                    index,
                    messages,
                    field: field.to_string(),
                    message_type: type_name,
                    cause,
                }
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_reflect::DescriptorPool;
    use protox::file::File;

    /// Message type with a list of another message type.
    fn order() -> MessageDescriptor {
        let source = r#"syntax = "proto3"; message Item { string name = 1; int32 count = 2; }
                        message Order { repeated Item items = 1; bytes data = 2; }"#;
        let mut pool = DescriptorPool::new();
        let file = File::from_source("order.proto", source).unwrap();
        pool.add_file_descriptor_proto(file.file_descriptor_proto().clone()).unwrap();
        pool.get_message_by_name("Order").unwrap()
    }

    fn error(json: &str) -> String {
        let error = encode(&order(), json).unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", cause.unwrap_or_default())
    }

    #[test]
    fn object_array_and_lines_are_messages() {
        let bytes = [0x12, 1, 65].to_vec();
        let one = r#"{"data": "QQ=="}"#;
        assert_eq!(encode(&order(), one).unwrap(), std::slice::from_ref(&bytes));
        for three in [format!("[{one}, {{}}, {one}]"), format!("{one}\n{{}}\n{one}\n")] {
            assert_eq!(encode(&order(), &three).unwrap(), [bytes.clone(), Vec::new(), bytes.clone()]);
        }
        assert_eq!(encode(&order(), " \n").unwrap(), [Vec::<u8>::new()]);
    }

    #[test]
    fn invalid_field_is_named_by_its_path() {
        let wrong = error(r#"{"items": [{}, {"count": "many"}]}"#);
        assert!(wrong.starts_with("the field `items[1].count` does not fit `Order`: "), "{wrong}");
        let unknown = error(r#"[{}, {"item": 1}]"#);
        assert!(unknown.starts_with("message 2 of 2: it does not fit `Order`: "), "{unknown}");
        assert!(unknown.contains("'item'"), "{unknown}");
        assert_eq!(
            encode(&order(), r#"{"item": 1}"#).unwrap_err().hint().unwrap(),
            "the fields of `Order` are items, data"
        );
        assert!(error("3").starts_with("it does not fit `Order`: "));
        assert!(error("{").starts_with("read the message as JSON: "));
        assert!(error("[]").starts_with("the array has no message in it"));
    }
}
