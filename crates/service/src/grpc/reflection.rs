//! Server reflection: describes the services to clients (grpc/grpc, `src/proto/grpc/reflection`).
//!
//! The service's own `.proto` files are compiled at the first request. The older version of the reflection
//! service has the same messages under another name.

use super::call::{Call, Failure};
use super::status::Code;
use super::{echo, health};
use prost_reflect::{DescriptorPool, FileDescriptor};
use protox::Compiler;
use protox::file::{File, FileResolver};
use std::sync::LazyLock;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};

pub(super) const SERVICES: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

const FILES: [(&str, &str); 2] = [
    ("meshmeter/v1/echo.proto", echo::PROTO),
    ("grpc/health/v1/health.proto", include_str!("../../proto/grpc/health/v1/health.proto")),
];

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let mut compiler = Compiler::with_file_resolver(Embedded);
    compiler.open_files(FILES.map(|(name, _)| name)).expect("the service's own files are correct");
    compiler.descriptor_pool()
});

/// The service's own files, and no others.
struct Embedded;

impl FileResolver for Embedded {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let source = FILES.iter().find(|(file, _)| *file == name);
        let (name, source) = source.ok_or_else(|| protox::Error::file_not_found(name))?;
        File::from_source(name, source)
    }
}

/// The names of all services.
pub(super) fn services() -> impl Iterator<Item = &'static str> {
    [echo::SERVICE, health::SERVICE].into_iter().chain(SERVICES)
}

/// Answers each request of a call.
pub(super) async fn answer(call: &mut Call) -> Result<(), Failure> {
    while let Some(request) = call.receive::<ServerReflectionRequest>().await? {
        let answer = request.message_request.as_ref().map(answer_to);
        let response = ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(
                answer.unwrap_or_else(|| error(Code::InvalidArgument, "the request asks for nothing")),
            ),
        };
        call.send(&response).await?;
    }
    Ok(())
}

fn answer_to(request: &MessageRequest) -> MessageResponse {
    match request {
        MessageRequest::ListServices(_) => {
            let service = services().map(|name| ServiceResponse { name: name.to_owned() }).collect();
            MessageResponse::ListServicesResponse(ListServiceResponse { service })
        }
        MessageRequest::FileByFilename(name) => described(POOL.get_file_by_name(name)),
        MessageRequest::FileContainingSymbol(symbol) => described(file_with(symbol)),
        MessageRequest::AllExtensionNumbersOfType(name) => match POOL.get_message_by_name(name) {
            Some(message) => MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                base_type_name: message.full_name().to_owned(),
                extension_number: Vec::new(),
            }),
            None => error(Code::NotFound, "there is no such type"),
        },
        MessageRequest::FileContainingExtension(_) => error(Code::NotFound, "there are no extensions"),
    }
}

fn described(file: Option<FileDescriptor>) -> MessageResponse {
    match file {
        // No file imports another: each one is complete.
        Some(file) => MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
            file_descriptor_proto: vec![file.encode_to_vec()],
        }),
        None => error(Code::NotFound, "there is no such file or symbol"),
    }
}

/// The file that defines a service, a method, a message, a field or an enumeration.
fn file_with(symbol: &str) -> Option<FileDescriptor> {
    let of_type = |name: &str| {
        let service = POOL.get_service_by_name(name).map(|service| service.parent_file());
        let message = || POOL.get_message_by_name(name).map(|message| message.parent_file());
        let enumeration = || POOL.get_enum_by_name(name).map(|enumeration| enumeration.parent_file());
        service.or_else(message).or_else(enumeration)
    };
    of_type(symbol).or_else(|| {
        let (parent, name) = symbol.rsplit_once('.')?;
        let method = POOL
            .get_service_by_name(parent)
            .is_some_and(|service| service.methods().any(|method| method.name() == name));
        let field = || {
            POOL.get_message_by_name(parent).is_some_and(|message| message.get_field_by_name(name).is_some())
        };
        (method || field()).then(|| of_type(parent)).flatten()
    })
}

fn error(code: Code, message: &str) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse {
        error_code: code as i32,
        error_message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::echo::{EchoReply, EchoRequest};
    use prost::Message as _;
    use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};

    fn dynamic(name: &str, bytes: &[u8]) -> DynamicMessage {
        DynamicMessage::decode(POOL.get_message_by_name(name).unwrap(), bytes).unwrap()
    }

    #[test]
    fn messages_match_their_proto_files() {
        let request = EchoRequest {
            payload: "abc".into(),
            reply_bytes: Some(1),
            replies: Some(2),
            delay_us: Some(3),
            status: Some(4),
        };
        let message = dynamic("meshmeter.v1.EchoRequest", &request.encode_to_vec());
        for (name, value) in [
            ("payload", Value::Bytes("abc".into())),
            ("reply_bytes", Value::U64(1)),
            ("replies", Value::U32(2)),
            ("delay_us", Value::U64(3)),
            ("status", Value::U32(4)),
        ] {
            assert_eq!(*message.get_field_by_name(name).unwrap(), value, "{name}");
        }
        assert_eq!(message.fields().count(), message.descriptor().fields().len());
        assert_eq!(message.unknown_fields().count(), 0);

        let reply = EchoReply { requests: 1, request_bytes: 2 };
        let message = dynamic("meshmeter.v1.EchoReply", &reply.encode_to_vec());
        assert_eq!(*message.get_field_by_name("requests").unwrap(), Value::U64(1));
        assert_eq!(*message.get_field_by_name("request_bytes").unwrap(), Value::U64(2));
    }

    #[test]
    fn every_symbol_resolves_to_its_file() {
        for (symbol, file) in [
            ("meshmeter.v1.Echo", Some("meshmeter/v1/echo.proto")),
            ("meshmeter.v1.Echo.Unary", Some("meshmeter/v1/echo.proto")),
            ("meshmeter.v1.EchoReply.payload", Some("meshmeter/v1/echo.proto")),
            ("grpc.health.v1.HealthCheckResponse.ServingStatus", Some("grpc/health/v1/health.proto")),
            ("meshmeter.v1.Echo.Missing", None),
            ("meshmeter.v1", None),
            ("", None),
        ] {
            assert_eq!(file_with(symbol).as_ref().map(FileDescriptor::name), file, "{symbol}");
        }
    }
}
