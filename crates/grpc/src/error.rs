//! Errors of describing a method, with hints.

use crate::descriptors::DescriptorsError;
use crate::files::SourceError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Error of describing a method.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// Not a valid gRPC path.
    #[error("`{0}` names no gRPC method")]
    NotAMethod(String),
    /// A file cannot be read.
    #[error("read `{}`", file.display())]
    Read {
        /// Path of the file.
        file: PathBuf,
        /// I/O error.
        #[source]
        cause: io::Error,
    },
    /// A `.proto` file, or one of its imports, is invalid or missing.
    #[error("compile `{}`", file.display())]
    Proto {
        /// Requested file.
        file: PathBuf,
        /// Compile error with file and line.
        #[source]
        cause: SourceError,
    },
    /// A file is not a descriptor set, or its imports are missing from it.
    #[error("read `{}` as a set of descriptors", file.display())]
    Protoset {
        /// Path of the file.
        file: PathBuf,
        /// Decoding error.
        #[source]
        cause: DescriptorsError,
    },
    /// The description has no service of this name.
    #[error("there is no service `{service}`")]
    UnknownService {
        /// Requested service.
        service: String,
        /// Names of the known services.
        known: Vec<String>,
    },
    /// The service has no method of this name.
    #[error("the service `{service}` has no method `{method}`")]
    UnknownMethod {
        /// Name of the service.
        service: String,
        /// Requested method.
        method: String,
        /// Names of the service's methods.
        known: Vec<String>,
    },
    /// Reflection failed.
    #[error("query {authority} for the description of its methods (gRPC reflection)")]
    Reflection {
        /// Host and port of the server.
        authority: String,
        /// Reflection error.
        #[source]
        cause: ReflectionError,
    },
}

/// Error of querying a server by reflection.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// The client or its runtime cannot be set up.
    #[error("set up the client")]
    Client(#[source] io::Error),
    /// Connection failed.
    #[error("connect to {address}")]
    Connect {
        /// Last address tried.
        address: SocketAddr,
        /// I/O error.
        #[source]
        cause: io::Error,
    },
    /// TLS handshake failed.
    #[error("TLS handshake with {address}")]
    Handshake {
        /// Last address tried.
        address: SocketAddr,
        /// TLS error.
        #[source]
        cause: io::Error,
    },
    /// The server did not negotiate HTTP/2 by ALPN.
    #[error("the server does not offer HTTP/2 over TLS (ALPN `h2`)")]
    NoAlpn,
    /// The response is not gRPC.
    #[error(transparent)]
    Answer(AnswerError),
    /// The server supports neither version of reflection.
    #[error("the server offers no reflection")]
    NotOffered,
    /// The server responded with an error.
    #[error("the server answered {code}: {message}")]
    Refused {
        /// Name of the gRPC status code.
        code: String,
        /// Status message.
        message: String,
    },
    /// Timeout.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The descriptors are inconsistent.
    #[error("the descriptors that the server sent do not fit together")]
    Descriptors(#[source] DescriptorsError),
    /// A descriptor cannot be decoded.
    #[error("a descriptor that the server sent cannot be read")]
    Malformed(#[source] prost::DecodeError),
    /// A limit on the responses was exceeded.
    #[error("the server sent more than {0}")]
    Endless(&'static str),
}

/// Response that is not from a gRPC server.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not HTTP/2, or the connection broke.
    #[error("no HTTP/2 answer: {0}")]
    NotHttp2(String),
    /// HTTP, but not gRPC.
    #[error("no gRPC answer: HTTP status {status}, content-type `{content_type}`")]
    NotGrpc {
        /// HTTP status.
        status: u16,
        /// Content type; empty if there was none.
        content_type: String,
    },
}

impl DescribeError {
    pub(crate) fn unknown_service(service: &str, known: impl Iterator<Item = String>) -> Self {
        let mut known: Vec<String> = known.collect();
        known.sort_unstable();
        known.dedup();
        Self::UnknownService { service: service.to_owned(), known }
    }

    /// True if the cause is outside, such as the server or network, and not the request.
    #[must_use]
    pub fn is_of_environment(&self) -> bool {
        matches!(self, Self::Reflection { .. })
    }

    /// Suggested fix, if any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let fixed = match self {
            Self::NotAMethod(_) => {
                "such as grpc://127.0.0.1:8080/package.Service/Method; without a path, the health check"
            }
            Self::Proto { .. } => {
                "--proto-path names the folder that imports start from; it may be given several times"
            }
            Self::Protoset { .. } => {
                "protoc --include_imports --descriptor_set_out=FILE and buf build write such sets"
            }
            Self::UnknownService { known, .. } if known.is_empty() => "no service is described at all",
            Self::UnknownService { known, .. } => return Some(format!("there are: {}", known.join(", "))),
            Self::UnknownMethod { known, .. } if known.is_empty() => "it has no methods",
            Self::UnknownMethod { known, .. } => return Some(format!("it has: {}", known.join(", "))),
            Self::Reflection { cause, .. } => return cause.hint().map(str::to_owned),
            Self::Read { .. } => return None,
        };
        Some(fixed.to_owned())
    }
}

impl ReflectionError {
    fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotOffered | Self::Descriptors(_) | Self::Malformed(_) | Self::Endless(_) => {
                "describe the method with --proto FILE or --protoset FILE"
            }
            Self::Connect { .. } => "is the server running, and are address and port right?",
            Self::Handshake { .. } => "see --cacert, --insecure, --sni, --cert; plaintext is grpc://",
            Self::NoAlpn => "plaintext is grpc://; or does a gRPC server listen on that port?",
            Self::Answer(AnswerError::NotHttp2(_)) => {
                "does a gRPC server listen on that port? over TLS it is grpcs://"
            }
            Self::Answer(AnswerError::NotGrpc { .. }) => "does a gRPC server listen on that port?",
            Self::Refused { .. } => {
                "give what the server requires with --header, or describe the method with --proto FILE"
            }
            Self::Timeout(_) => "give it longer with --timeout, or describe the method with --proto FILE",
            Self::Client(_) => return None,
        })
    }
}
