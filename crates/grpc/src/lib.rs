//! Resolves gRPC methods and encodes their messages, before a load starts.
//!
//! [`MethodPath`] parses the path of a URL. [`describe`] finds the method in `.proto` files, in a descriptor
//! set or by server reflection ([`Description`]). [`Method::encode`] encodes messages from JSON. Nothing here
//! runs during a measurement, and no other crate depends on the protobuf libraries.
//!
//! Start with `method`. Decoding of responses is not needed: the load engine counts messages without parsing
//! them.

mod descriptors;
mod error;
mod files;
mod health;
mod message;
mod method;
mod reflection;

pub use descriptors::DescriptorsError;
pub use error::{AnswerError, DescribeError, ReflectionError};
pub use files::SourceError;
pub use message::MessageError;
pub use method::{Method, MethodPath, Streaming};
pub use reflection::{Server, Tls, check_reflection};

use std::path::PathBuf;

/// Source of a method's descriptor.
#[derive(Clone, Debug)]
pub enum Description {
    /// `.proto` files.
    Proto {
        /// The files. Their imports are found automatically.
        files: Vec<PathBuf>,
        /// Import paths; empty: the current directory and those of the files.
        folders: Vec<PathBuf>,
    },
    /// Descriptor sets, as written by `protoc --descriptor_set_out --include_imports` and `buf build`.
    Protoset(Vec<PathBuf>),
    /// The server itself (gRPC server reflection, v1 or v1alpha).
    Reflection(Server),
}

/// True if the method is of the health service, for which no server is asked.
#[must_use]
pub fn is_built_in(path: &MethodPath) -> bool {
    path.service() == health::SERVICE
}

/// Finds a method. The health service (`grpc.health.v1.Health`) is built in.
///
/// Blocks while files are read or the server is queried. A query takes at most a few times the server's
/// timeout.
///
/// # Errors
/// Returns an error if the description is unavailable, or has no such service or method. The error then lists
/// those that exist.
pub fn describe(description: &Description, path: &MethodPath) -> Result<Method, DescribeError> {
    let pool = match description {
        Description::Proto { files, folders } => files::compile(files, folders)?,
        Description::Protoset(files) => files::read_sets(files)?,
        Description::Reflection(_) if is_built_in(path) => health::pool(),
        Description::Reflection(server) => reflection::describe(server, path.service())?,
    };
    Method::find(&pool, path)
}
