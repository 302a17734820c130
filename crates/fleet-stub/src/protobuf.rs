//! Protobuf messages written field by field: generated types would be a hundred times as much code.

/// A message being built.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Appends an integer, boolean or enum field.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Self {
        write_varint(&mut self.0, u64::from(field) << 3);
        write_varint(&mut self.0, value);
        self
    }

    /// Appends a bytes field.
    #[must_use]
    pub fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        write_varint(&mut self.0, u64::from(field) << 3 | 2);
        write_varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Appends a string field.
    #[must_use]
    pub fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// Appends a message field.
    #[must_use]
    pub fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// Appends a repeated message field.
    #[must_use]
    pub fn messages(self, field: u32, values: impl IntoIterator<Item = Self>) -> Self {
        values.into_iter().fold(self, |message, value| message.message(field, &value))
    }

    /// The encoded message.
    #[must_use]
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }
}

/// `google.protobuf.Any`.
#[must_use]
pub fn any(type_url: &str, value: &Message) -> Message {
    Message::default().text(1, type_url).message(2, value)
}

/// `google.protobuf.Duration`.
#[must_use]
pub fn seconds(seconds: u64) -> Message {
    Message::default().number(1, seconds)
}

/// Wrappers such as `google.protobuf.UInt32Value` and `BoolValue`.
#[must_use]
pub fn wrapped(value: u64) -> Message {
    Message::default().number(1, value)
}

/// An entry of a map from strings to messages.
#[must_use]
pub fn entry(key: &str, value: &Message) -> Message {
    Message::default().text(1, key).message(2, value)
}

/// `google.protobuf.Struct` with string values.
#[must_use]
pub fn structure(fields: &[(&str, &str)]) -> Message {
    let entries = fields.iter().map(|(key, value)| entry(key, &Message::default().text(3, value)));
    Message::default().messages(1, entries)
}

pub(crate) fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_specified_by_protobuf() {
        let message = Message::default().number(1, 300).text(2, "testing").message(3, &wrapped(150));
        let expected = [&[0x08, 0xac, 0x02][..], &[0x12, 0x07], b"testing", &[0x1a, 0x03, 0x08, 0x96, 0x01]];
        assert_eq!(message.encoded(), expected.concat());
    }
}
