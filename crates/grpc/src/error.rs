//! Why a method could not be described, and what to do about it.

use crate::files::SourceError;
use crate::reflection::AnswerError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why a method is not described.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// A path that is not one of gRPC.
    #[error("`{0}` names no gRPC method")]
    NotAMethod(String),
    /// A file cannot be read.
    #[error("read `{}`", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A `.proto` file, or one that it imports, is wrong or absent.
    #[error("compile `{}`", file.display())]
    Proto {
        /// The file that was asked for.
        file: PathBuf,
        /// What is wrong, with file and line.
        #[source]
        cause: SourceError,
    },
    /// A file is no set of descriptors, or one without its imports.
    #[error("read `{}` as a set of descriptors", file.display())]
    Protoset {
        /// Which.
        file: PathBuf,
        /// What is wrong.
        #[source]
        cause: prost_reflect::DescriptorError,
    },
    /// The description has no such service.
    #[error("there is no service `{service}`")]
    UnknownService {
        /// As asked for.
        service: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The service has no such method.
    #[error("the service `{service}` has no method `{method}`")]
    UnknownMethod {
        /// The service.
        service: String,
        /// As asked for.
        method: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The server could not be asked.
    #[error("ask {authority} for the description of its methods (gRPC reflection)")]
    Reflection {
        /// Host and port.
        authority: String,
        /// Why not.
        #[source]
        cause: ReflectionError,
    },
}

/// Why a server could not be asked for descriptions.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// The runtime for it could not be set up.
    #[error("set up the client")]
    Client(#[source] io::Error),
    /// No connection.
    #[error("connect to {address}")]
    Connect {
        /// The address tried last.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// No TLS session.
    #[error("TLS handshake with {address}")]
    Handshake {
        /// The address tried last.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// TLS without HTTP/2.
    #[error("the server does not offer HTTP/2 over TLS (ALPN `h2`)")]
    NoAlpn,
    /// What came back is not gRPC.
    #[error(transparent)]
    Answer(AnswerError),
    /// Neither version of reflection is there.
    #[error("the server offers no reflection")]
    NotOffered,
    /// The server answered with an error.
    #[error("the server answered {code}: {message}")]
    Refused {
        /// The name of the gRPC status.
        code: String,
        /// What it says.
        message: String,
    },
    /// No answer.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// What it described makes no sense.
    #[error("the descriptors that the server sent do not fit together")]
    Descriptors(#[source] prost_reflect::DescriptorError),
    /// A descriptor that is none.
    #[error("a descriptor that the server sent cannot be read")]
    Malformed(#[source] prost::DecodeError),
    /// It never came to an end.
    #[error("the server sent more than {0}")]
    Endless(&'static str),
}

impl DescribeError {
    pub(crate) fn unknown_service(service: &str, known: impl Iterator<Item = String>) -> Self {
        let mut known: Vec<String> = known.collect();
        known.sort_unstable();
        known.dedup();
        Self::UnknownService { service: service.to_owned(), known }
    }

    /// Whether something outside is at fault, and not what was asked for.
    #[must_use]
    pub fn is_of_environment(&self) -> bool {
        matches!(self, Self::Reflection { .. })
    }

    /// What to do about it, where that can be said.
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
            Self::Handshake { .. } => "see --cacert, --insecure, --sni, --cert; clear text is grpc://",
            Self::NoAlpn => "clear text is grpc://; or does a gRPC server listen on that port?",
            Self::Answer(AnswerError::NotHttp2(_)) => {
                "does a gRPC server listen on that port? over TLS it is grpcs://"
            }
            Self::Answer(AnswerError::NotGrpc { .. }) => "does a gRPC server listen on that port?",
            Self::Refused { .. } => {
                "give what the server asks for with --header, or describe the method with --proto FILE"
            }
            Self::Timeout(_) => "give it longer with --timeout, or describe the method with --proto FILE",
            Self::Client(_) => return None,
        })
    }
}
