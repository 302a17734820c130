//! BSON as the test server reads and writes it: into values of its own, recursively.

use std::ops::Index;

#[derive(Clone, Debug, PartialEq)]
pub enum Bson {
    Double(f64),
    String(String),
    Document(Document),
    Array(Vec<Bson>),
    ObjectId([u8; 12]),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document(pub Vec<(String, Bson)>);

pub fn document<const N: usize>(fields: [(&str, Bson); N]) -> Document {
    Document(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

impl Index<&str> for Document {
    type Output = Bson;

    fn index(&self, name: &str) -> &Bson {
        self.get(name).unwrap_or_else(|| panic!("{name} in {self:?}"))
    }
}

impl Document {
    pub fn get(&self, name: &str) -> Option<&Bson> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    pub fn set(&mut self, name: &str, value: Bson) {
        self.0.retain(|(own, _)| own != name);
        self.0.push((name.to_owned(), value));
    }

    pub fn encoded(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        for (name, value) in &self.0 {
            let (kind, bytes) = value.encoded();
            fields.push(kind);
            fields.extend([name.as_bytes(), &[0], &bytes].concat());
        }
        let length = (fields.len() as i32 + 5).to_le_bytes();
        [&length[..], &fields, &[0]].concat()
    }

    /// Takes a document off the front.
    pub fn take(bytes: &mut &[u8]) -> Self {
        let length = i32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let mut fields = &bytes[4..length - 1];
        assert_eq!(bytes[length - 1], 0);
        *bytes = &bytes[length..];
        let mut document = Self::default();
        while !fields.is_empty() {
            let kind = take(&mut fields, 1)[0];
            let end = fields.iter().position(|byte| *byte == 0).unwrap();
            let name = String::from_utf8(take(&mut fields, end + 1)[..end].to_vec()).unwrap();
            document.0.push((name, Bson::take(kind, &mut fields)));
        }
        document
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

impl Bson {
    fn encoded(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Double(value) => (1, value.to_le_bytes().to_vec()),
            Self::String(text) => {
                (2, [&(text.len() as i32 + 1).to_le_bytes(), text.as_bytes(), &[0]].concat())
            }
            Self::Document(document) => (3, document.encoded()),
            Self::Array(values) => {
                let fields = values.iter().enumerate();
                let fields = fields.map(|(index, value)| (index.to_string(), value.clone()));
                (4, Document(fields.collect()).encoded())
            }
            Self::ObjectId(id) => (7, id.to_vec()),
            Self::Boolean(value) => (8, vec![u8::from(*value)]),
            Self::Int32(value) => (16, value.to_le_bytes().to_vec()),
            Self::Int64(value) => (18, value.to_le_bytes().to_vec()),
        }
    }

    fn take(kind: u8, bytes: &mut &[u8]) -> Self {
        match kind {
            1 => Self::Double(f64::from_le_bytes(take(bytes, 8).try_into().unwrap())),
            2 => {
                let length = i32::from_le_bytes(take(bytes, 4).try_into().unwrap()) as usize;
                let text = take(bytes, length);
                assert_eq!(text[length - 1], 0);
                Self::String(String::from_utf8(text[..length - 1].to_vec()).unwrap())
            }
            3 => Self::Document(Document::take(bytes)),
            4 => Self::Array(Document::take(bytes).0.into_iter().map(|(_, value)| value).collect()),
            7 => Self::ObjectId(take(bytes, 12).try_into().unwrap()),
            8 => Self::Boolean(take(bytes, 1)[0] == 1),
            16 => Self::Int32(i32::from_le_bytes(take(bytes, 4).try_into().unwrap())),
            18 => Self::Int64(i64::from_le_bytes(take(bytes, 8).try_into().unwrap())),
            other => panic!("no command has a field of type {other}"),
        }
    }
}
