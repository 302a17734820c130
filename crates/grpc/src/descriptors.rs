//! Descriptors from outside: of a server, or of a file.

use prost::Message as _;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};

/// Error in descriptors.
#[derive(Debug, thiserror::Error)]
pub enum DescriptorsError {
    /// An edition, or no syntax of protobuf's.
    #[error("`{file}` has the syntax `{syntax}`; proto2 and proto3 can be read")]
    Syntax {
        /// Name of the file.
        file: String,
        /// Name of the syntax.
        syntax: String,
    },
    /// Entries of a map whose keys cannot be keys.
    #[error(
        "`{0}` is the entry of a map without a value, or with keys that are not whole numbers, bool or string"
    )]
    MapEntry(String),
    /// They are not descriptors, or do not fit together.
    #[error(transparent)]
    Inconsistent(#[from] prost_reflect::DescriptorError),
}

/// A pool of these files.
pub(crate) fn pool(files: Vec<FileDescriptorProto>) -> Result<DescriptorPool, DescriptorsError> {
    check_syntax(&files)?;
    let pool = DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: files })?;
    check_maps(&pool)?;
    Ok(pool)
}

/// Adds the files of an encoded set to a pool, without those that it has.
pub(crate) fn add_set(pool: &mut DescriptorPool, set: &[u8]) -> Result<(), DescriptorsError> {
    if let Ok(set) = FileDescriptorSet::decode(set) {
        check_syntax(&set.file)?;
    }
    pool.decode_file_descriptor_set(set)?;
    check_maps(pool)
}

/// The library panics instead of reporting an unknown syntax.
fn check_syntax(files: &[FileDescriptorProto]) -> Result<(), DescriptorsError> {
    let unknown =
        files.iter().find(|file| !matches!(file.syntax.as_deref(), None | Some("proto2" | "proto3")));
    unknown.map_or(Ok(()), |file| {
        Err(DescriptorsError::Syntax { file: file.name().to_owned(), syntax: file.syntax().to_owned() })
    })
}

/// The library takes entries of maps as they come, and panics when it reads one.
fn check_maps(pool: &DescriptorPool) -> Result<(), DescriptorsError> {
    let invalid = pool.all_messages().find(|message| message.is_map_entry() && !is_entry(message));
    invalid.map_or(Ok(()), |message| Err(DescriptorsError::MapEntry(message.full_name().to_owned())))
}

/// Fields 1 and 2 are key and value; floating-point numbers, bytes, enums and messages cannot be keys.
fn is_entry(message: &MessageDescriptor) -> bool {
    let is_key =
        |kind| !matches!(kind, Kind::Double | Kind::Float | Kind::Bytes | Kind::Enum(_) | Kind::Message(_));
    message.get_field(1).is_some_and(|key| is_key(key.kind())) && message.get_field(2).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
    use prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, MessageOptions};

    fn field(number: i32, name: &str, of: Type) -> FieldDescriptorProto {
        FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(number),
            label: Some(Label::Optional.into()),
            r#type: Some(of.into()),
            ..FieldDescriptorProto::default()
        }
    }

    /// The pool of a message with a map whose entry has these fields.
    fn pool_with(entry: Vec<FieldDescriptorProto>) -> Result<DescriptorPool, DescriptorsError> {
        let entry = DescriptorProto {
            name: Some("MapEntry".to_owned()),
            field: entry,
            options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
            ..DescriptorProto::default()
        };
        let map = FieldDescriptorProto {
            label: Some(Label::Repeated.into()),
            type_name: Some(".M.MapEntry".to_owned()),
            ..field(1, "map", Type::Message)
        };
        let message = DescriptorProto {
            name: Some("M".to_owned()),
            field: vec![map],
            nested_type: vec![entry],
            ..DescriptorProto::default()
        };
        pool(vec![FileDescriptorProto {
            name: Some("m.proto".to_owned()),
            syntax: Some("proto3".to_owned()),
            message_type: vec![message],
            ..FileDescriptorProto::default()
        }])
    }

    #[test]
    fn maps_with_impossible_keys_are_refused() {
        let entry = |key: Type| vec![field(1, "key", key), field(2, "value", Type::String)];
        for key in [Type::String, Type::Bool, Type::Sint64] {
            pool_with(entry(key)).unwrap();
        }
        for key in [Type::Bytes, Type::Double, Type::Float] {
            let error = pool_with(entry(key)).unwrap_err();
            assert!(error.to_string().starts_with("`M.MapEntry` is the entry of a map"), "{error}");
        }
        assert!(pool_with(vec![field(1, "key", Type::String)]).is_err());
        assert!(pool_with(Vec::new()).is_err());
    }
}
