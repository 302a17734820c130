//! What a gRPC method is called, which streams it has, and its messages as bytes.
//!
//! All of it is preparation: [`MethodPath`] reads what a URL names, [`describe`] finds the method in `.proto` files, in a
//! compiled set of them or by asking the server ([`Description`]), [`Method::encode`] turns messages from JSON into bytes.
//! Nothing here runs while a load is measured, and no other crate knows these libraries.
//!
//! Read `method` first. Left out: decoding of answers, which the load engine counts and does not read.

mod error;
mod files;
mod health;
mod message;
mod method;
mod reflection;

pub use error::{DescribeError, ReflectionError};
pub use files::SourceError;
pub use message::MessageError;
pub use method::{Method, MethodPath, Streaming};
pub use reflection::{AnswerError, Server, Tls};

use std::path::PathBuf;

/// Where a method is described.
#[derive(Clone, Debug)]
pub enum Description {
    /// In `.proto` files.
    Proto {
        /// The files; what they import is found by itself.
        files: Vec<PathBuf>,
        /// Where imports are looked for; empty for the current folder and those of the files.
        folders: Vec<PathBuf>,
    },
    /// In sets of descriptors, as `protoc --descriptor_set_out --include_imports` and `buf build` write them.
    Protoset(Vec<PathBuf>),
    /// The server itself tells (gRPC server reflection, v1 or v1alpha).
    Reflection(Server),
}

/// Finds a method. The health service (`grpc.health.v1.Health`) is known without being described.
///
/// Blocks while files are read, or while the server is asked, then at most a few times the server's timeout.
///
/// # Errors
/// Where the description cannot be had, or has no such service or method: the error lists those that there are.
pub fn describe(description: &Description, path: &MethodPath) -> Result<Method, DescribeError> {
    let pool = match description {
        Description::Proto { files, folders } => files::compile(files, folders)?,
        Description::Protoset(files) => files::read_sets(files)?,
        Description::Reflection(_) if path.service() == health::SERVICE => health::pool(),
        Description::Reflection(server) => reflection::describe(server, path.service())?,
    };
    Method::find(&pool, path)
}
