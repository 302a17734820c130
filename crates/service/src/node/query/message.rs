//! OP_MSG, the messages of MongoDB's wire protocol since 3.6:
//! <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>. A message has a header, flags and
//! sections: the command, and for inserts a sequence of documents. Responses have a single section.

use super::bson::{Document, Malformed};

pub(super) const HEADER_BYTES: usize = 16;
/// Maximum length of a message, in either direction: the limit of all servers.
pub(super) const MAX_MESSAGE_BYTES: usize = 48_000_000;
const OP_MSG: i32 = 2013;
const FLAG_BYTES: usize = 4;
/// Flag: the message ends with a checksum.
const CHECKSUM_PRESENT: u32 = 1;
const CHECKSUM_BYTES: usize = 4;
const BODY: u8 = 0;
const DOCUMENT_SEQUENCE: u8 = 1;

/// A command. `documents`: those of an insert, which are sent in a section of their own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub body: Document,
    pub documents: Vec<Document>,
}

impl Command {
    /// `body`: its first field is the command's name.
    pub(super) fn new(body: Document) -> Self {
        Self { body, documents: Vec::new() }
    }

    pub(super) fn encode(&self, request_id: i32) -> Vec<u8> {
        let documents: usize = self.documents.iter().map(|document| document.as_bytes().len()).sum();
        let mut message = Vec::with_capacity(documents + self.body.as_bytes().len() + 64);
        // The length, once it is known.
        message.extend_from_slice(&[0; 4]);
        for field in [request_id, 0, OP_MSG] {
            message.extend_from_slice(&field.to_le_bytes());
        }
        message.extend_from_slice(&[0; FLAG_BYTES]);
        message.push(BODY);
        message.extend_from_slice(self.body.as_bytes());
        if !self.documents.is_empty() {
            message.push(DOCUMENT_SEQUENCE);
            let name = b"documents\0";
            let length = (4 + name.len() + documents) as u32;
            message.extend_from_slice(&length.to_le_bytes());
            message.extend_from_slice(name);
            self.documents.iter().for_each(|document| message.extend_from_slice(document.as_bytes()));
        }
        let length = (message.len() as u32).to_le_bytes();
        message[..4].copy_from_slice(&length);
        message
    }
}

/// Number of bytes that follow the header of a response to `request_id`.
pub(super) fn bytes_after(header: [u8; HEADER_BYTES], request_id: i32) -> Result<usize, Malformed> {
    let field = |index: usize| {
        i32::from_le_bytes(header[4 * index..][..4].try_into().expect("the header has four fields"))
    };
    let length = usize::try_from(field(0)).map_err(|_| Malformed("the length of a message is negative"))?;
    if field(3) != OP_MSG {
        return Err(Malformed("a message has an unknown operation"));
    }
    if field(2) != request_id {
        return Err(Malformed("a message responds to another request"));
    }
    if length > MAX_MESSAGE_BYTES {
        return Err(Malformed("a message is longer than 48 MB"));
    }
    length.checked_sub(HEADER_BYTES).ok_or(Malformed("a message is shorter than its header"))
}

/// The encoded document of a response. `message`: what follows the header.
pub(super) fn document(message: &[u8]) -> Result<&[u8], Malformed> {
    let cut_short = Malformed("a message ends within its sections");
    let (flags, sections) = message.split_first_chunk::<FLAG_BYTES>().ok_or(cut_short)?;
    let flags = u32::from_le_bytes(*flags);
    let sections = match flags {
        0 => sections,
        // Optional, and TLS has checked every byte.
        CHECKSUM_PRESENT => {
            let length = sections.len().checked_sub(CHECKSUM_BYTES).ok_or(cut_short)?;
            &sections[..length]
        }
        _ => return Err(Malformed("a message has unexpected flags")),
    };
    match sections.split_first() {
        Some((&BODY, document)) => Ok(document),
        Some(_) => Err(Malformed("a message has an unexpected section")),
        None => Err(cut_short),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bson::Value;
    use super::*;
    use proptest::prelude::*;

    fn header(fields: [i32; 4]) -> [u8; HEADER_BYTES] {
        fields.map(i32::to_le_bytes).concat().try_into().unwrap()
    }

    #[test]
    fn message_has_header_flags_and_sections() {
        let body = Document::new().with("ping", Value::Int32(1));
        let document = Document::new();
        let mut command = Command::new(body);
        let ping = b"\x0f\0\0\0\x10ping\0\x01\0\0\0\0";
        let expected = [&b"\x24\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0"[..], ping].concat();
        assert_eq!(command.encode(7), expected);
        command.documents = vec![document.clone(), document];
        let sequence = b"\x01\x18\0\0\0documents\0\x05\0\0\0\0\x05\0\0\0\0";
        let expected = [&b"\x3d\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0"[..], ping, sequence].concat();
        assert_eq!(command.encode(7), expected);
    }

    #[test]
    fn header_of_a_response_is_checked() {
        assert_eq!(bytes_after(header([36, 9, 7, OP_MSG]), 7), Ok(20));
        for (fields, reason) in [
            ([-1, 9, 7, OP_MSG], "negative"),
            ([15, 9, 7, OP_MSG], "shorter than its header"),
            ([48_000_001, 9, 7, OP_MSG], "longer than 48 MB"),
            ([36, 9, 8, OP_MSG], "another request"),
            ([36, 9, 7, 1], "unknown operation"),
        ] {
            let error = bytes_after(header(fields), 7).unwrap_err().to_string();
            assert!(error.contains(reason), "{fields:?}: {error}");
        }
    }

    #[test]
    fn sections_of_a_response_are_checked() {
        let empty = b"\x05\0\0\0\0";
        assert_eq!(document(&[&[0, 0, 0, 0, 0][..], empty].concat()), Ok(&empty[..]));
        assert_eq!(document(&[&[1, 0, 0, 0, 0][..], empty, &[9; 4]].concat()), Ok(&empty[..]));
        for (message, reason) in [
            (&[0, 0, 0][..], "ends within"),
            (&[0, 0, 0, 0], "ends within"),
            (&[1, 0, 0, 0, 0, 0, 0], "ends within"),
            // More responses to come, which nobody asked for.
            (&[2, 0, 0, 0, 0], "unexpected flags"),
            (&[0, 0, 0, 0, 1], "unexpected section"),
        ] {
            let error = document(message).unwrap_err().to_string();
            assert!(error.contains(reason), "{message:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn input_never_panics(fields in any::<[i32; 4]>(), bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = bytes_after(header(fields), fields[1]);
            let _ = document(&bytes);
        }
    }
}
