//! gRPC server reflection (grpc/grpc, `doc/server-reflection.md`): version 1, or v1alpha if the server only
//! supports that. The two differ only in the name of the service.
//!
//! A server responds with the file that contains a service, with or without its imports. Missing imports are
//! requested by name, in rounds, until all are known. `connection` is the HTTP/2 layer.

mod connection;
mod invariants;

use crate::descriptors::pool;
use crate::error::{AnswerError, DescribeError, ReflectionError};
use connection::Channel;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};
pub use invariants::check_reflection;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tonic::client::Grpc;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

/// Paths of the reflection service, newest version first.
const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
/// Maximum size of a response, bytes.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of files for one service.
const MAX_FILES: usize = 4096;
/// Maximum number of rounds of requests for missing imports.
const MAX_ROUNDS: usize = 64;

/// Server with reflection.
#[derive(Clone, Debug)]
pub struct Server {
    /// Host and port, as sent in requests.
    pub authority: String,
    /// Addresses, tried in turn; not empty.
    pub addresses: Vec<SocketAddr>,
    /// TLS settings; absent: plaintext.
    pub tls: Option<Tls>,
    /// Metadata sent with each call.
    pub metadata: Vec<(HeaderName, HeaderValue)>,
    /// Timeout of the connection, and of each call.
    pub timeout: Duration,
}

/// TLS settings of a [`Server`].
#[derive(Clone, Debug)]
pub struct Tls {
    /// Trusted CAs and client certificate. ALPN is set here.
    pub config: Arc<ClientConfig>,
    /// Server name for SNI and verification.
    pub name: ServerName<'static>,
}

/// Fetches all descriptors of a service.
pub(crate) fn describe(server: &Server, service: &str) -> Result<DescriptorPool, DescribeError> {
    let about = |cause| DescribeError::Reflection { authority: server.authority.clone(), cause };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| about(ReflectionError::Client(cause)))?;
    let described = runtime.block_on(async {
        let mut client = Client::connect(server).await?;
        client.describe(service).await
    });
    match described.map_err(about)? {
        Described::Files(files) => pool(files).map_err(|cause| about(ReflectionError::Descriptors(cause))),
        Described::Unknown { services } => Err(DescribeError::unknown_service(service, services.into_iter())),
    }
}

enum Described {
    Files(Vec<FileDescriptorProto>),
    Unknown { services: Vec<String> },
}

/// Connection to the server, with its version of reflection.
struct Client {
    grpc: Grpc<Channel>,
    path: &'static str,
    timeout: Duration,
}

impl Client {
    async fn connect(server: &Server) -> Result<Self, ReflectionError> {
        let channel = within(server.timeout, connection::open(server)).await?;
        let origin = channel.origin();
        let grpc = Grpc::with_origin(channel, origin).max_decoding_message_size(MAX_ANSWER_BYTES);
        Ok(Self { grpc, path: PATHS[0], timeout: server.timeout })
    }

    async fn describe(&mut self, service: &str) -> Result<Described, ReflectionError> {
        let mut answers = self.find_version(MessageRequest::FileContainingSymbol(service.to_owned())).await?;
        let mut files = BTreeMap::new();
        let mut asked = Vec::new();
        for _ in 0..MAX_ROUNDS {
            for answer in answers {
                take(answer, &mut files)?;
            }
            if files.is_empty() {
                return Ok(Described::Unknown { services: self.services().await? });
            }
            let missing = missing(&files);
            // Files that the server does not have are reported when the descriptor pool is built.
            if missing.is_empty() || missing == asked {
                break;
            }
            answers = self.ask(missing.iter().cloned().map(MessageRequest::FileByFilename).collect()).await?;
            asked = missing;
        }
        Ok(Described::Files(files.into_values().collect()))
    }

    /// Sends the first request to the newest version that the server supports.
    async fn find_version(
        &mut self,
        question: MessageRequest,
    ) -> Result<Vec<Option<MessageResponse>>, ReflectionError> {
        for path in PATHS {
            self.path = path;
            match self.ask(vec![question.clone()]).await {
                Err(ReflectionError::NotOffered) => {}
                outcome => return outcome,
            }
        }
        Err(ReflectionError::NotOffered)
    }

    /// Names of all services, for an error that lists them.
    async fn services(&mut self) -> Result<Vec<String>, ReflectionError> {
        let answers = self.ask(vec![MessageRequest::ListServices(String::new())]).await?;
        let lists = answers.into_iter().filter_map(|answer| match answer {
            Some(MessageResponse::ListServicesResponse(list)) => Some(list.service),
            _ => None,
        });
        Ok(lists.flatten().map(|service| service.name).collect())
    }

    /// Sends these requests in one call; returns the responses in order.
    async fn ask(
        &mut self,
        questions: Vec<MessageRequest>,
    ) -> Result<Vec<Option<MessageResponse>>, ReflectionError> {
        within(self.timeout, ask(&mut self.grpc, self.path, questions)).await
    }
}

async fn ask(
    grpc: &mut Grpc<Channel>,
    path: &'static str,
    questions: Vec<MessageRequest>,
) -> Result<Vec<Option<MessageResponse>>, ReflectionError> {
    let expected = questions.len();
    let requests = questions
        .into_iter()
        .map(|question| ServerReflectionRequest { host: String::new(), message_request: Some(question) });
    let request = Request::new(tokio_stream::iter(requests.collect::<Vec<_>>()));
    let codec: ProstCodec<ServerReflectionRequest, ServerReflectionResponse> = ProstCodec::default();
    grpc.ready().await.map_err(ReflectionError::Answer)?;
    let response = grpc
        .streaming(request, PathAndQuery::from_static(path), codec)
        .await
        .map_err(|status| of_status(&status))?;
    let mut stream = response.into_inner();
    let mut answers = Vec::with_capacity(expected);
    while answers.len() < expected {
        match stream.message().await {
            Ok(Some(answer)) => answers.push(answer.message_response),
            Ok(None) => break,
            // Some servers end the call instead of responding that something does not exist.
            Err(status) if status.code() == Code::NotFound => break,
            Err(status) => return Err(of_status(&status)),
        }
    }
    Ok(answers)
}

/// Collects files from a response; nothing if the server does not know the requested item.
fn take(
    answer: Option<MessageResponse>,
    files: &mut BTreeMap<String, FileDescriptorProto>,
) -> Result<(), ReflectionError> {
    match answer {
        Some(MessageResponse::FileDescriptorResponse(response)) => {
            keep(&response.file_descriptor_proto, files)
        }
        Some(MessageResponse::ErrorResponse(error)) if error.error_code != Code::NotFound as i32 => {
            Err(refused(Code::from_i32(error.error_code), &error.error_message))
        }
        _ => Ok(()),
    }
}

/// Adds files by name; the first of each name wins.
fn keep(
    encoded: &[Vec<u8>],
    files: &mut BTreeMap<String, FileDescriptorProto>,
) -> Result<(), ReflectionError> {
    for file in encoded {
        let file = FileDescriptorProto::decode(&file[..]).map_err(ReflectionError::Malformed)?;
        files.entry(file.name().to_owned()).or_insert(file);
    }
    if files.len() > MAX_FILES { Err(ReflectionError::Endless("4096 files")) } else { Ok(()) }
}

/// Imports of the files that are not among them.
fn missing(files: &BTreeMap<String, FileDescriptorProto>) -> Vec<String> {
    let imports = files.values().flat_map(|file| &file.dependency);
    let mut missing: Vec<String> = imports.filter(|name| !files.contains_key(*name)).cloned().collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Error for a gRPC status.
fn of_status(status: &Status) -> ReflectionError {
    let of_connection = status.source().and_then(|cause| cause.downcast_ref::<AnswerError>());
    match (of_connection, status.code()) {
        (Some(cause), _) => ReflectionError::Answer(cause.clone()),
        (None, Code::Unimplemented) => ReflectionError::NotOffered,
        (None, code) => refused(code, status.message()),
    }
}

fn refused(code: Code, message: &str) -> ReflectionError {
    ReflectionError::Refused { code: format!("{code:?}"), message: message.to_owned() }
}

async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, ReflectionError>>,
) -> Result<T, ReflectionError> {
    tokio::time::timeout(timeout, work).await.unwrap_or(Err(ReflectionError::Timeout(timeout)))
}
