//! Descriptors from outside: of a server, or of a file.

use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};

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
    /// They are not descriptors, or do not fit together.
    #[error(transparent)]
    Inconsistent(#[from] prost_reflect::DescriptorError),
}

/// A pool of these files.
pub(crate) fn pool(files: Vec<FileDescriptorProto>) -> Result<DescriptorPool, DescriptorsError> {
    check_syntax(&files)?;
    Ok(DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: files })?)
}

/// Adds the files of an encoded set to a pool, without those that it has.
pub(crate) fn add_set(pool: &mut DescriptorPool, set: &[u8]) -> Result<(), DescriptorsError> {
    if let Ok(set) = FileDescriptorSet::decode(set) {
        check_syntax(&set.file)?;
    }
    Ok(pool.decode_file_descriptor_set(set)?)
}

/// The library panics instead of reporting an unknown syntax.
fn check_syntax(files: &[FileDescriptorProto]) -> Result<(), DescriptorsError> {
    let unknown =
        files.iter().find(|file| !matches!(file.syntax.as_deref(), None | Some("proto2" | "proto3")));
    unknown.map_or(Ok(()), |file| {
        Err(DescriptorsError::Syntax { file: file.name().to_owned(), syntax: file.syntax().to_owned() })
    })
}
