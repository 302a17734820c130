//! gRPC against tonic's client: every kind of method, statuses, health, reflection, and client misbehaviour.

mod client;

use client::{Running, settings};
use prost::bytes::Bytes;
use service::{Answer, Counters, Settings};
use std::time::{Duration, Instant};
use tokio_stream::StreamExt as _;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

/// As a user of `echo.proto` defines it, independent of the service.
#[derive(Clone, PartialEq, prost::Message)]
struct EchoRequest {
    #[prost(bytes = "bytes", tag = "1")]
    payload: Bytes,
    #[prost(uint64, optional, tag = "2")]
    reply_bytes: Option<u64>,
    #[prost(uint32, optional, tag = "3")]
    replies: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    delay_us: Option<u64>,
    #[prost(uint32, optional, tag = "5")]
    status: Option<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EchoReply {
    #[prost(bytes = "bytes", tag = "1")]
    payload: Bytes,
    #[prost(uint64, tag = "2")]
    requests: u64,
    #[prost(uint64, tag = "3")]
    request_bytes: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheck {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Health {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// A client of the server.
struct Client(Grpc<Channel>);

impl Client {
    async fn new(server: &Running) -> Self {
        let endpoint = Channel::from_shared(format!("http://{}", server.address())).unwrap();
        Self(Grpc::new(endpoint.connect().await.unwrap()).max_decoding_message_size(usize::MAX))
    }

    async fn unary(&mut self, request: EchoRequest) -> Result<EchoReply, Status> {
        self.call("/meshmeter.v1.Echo/Unary", request).await
    }

    async fn call<Q, R>(&mut self, path: &'static str, request: Q) -> Result<R, Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static(path);
        Ok(self.0.unary(Request::new(request), path, ProstCodec::default()).await?.into_inner())
    }

    async fn server_streaming(&mut self, request: EchoRequest) -> Result<Streaming<EchoReply>, Status> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static("/meshmeter.v1.Echo/ServerStreaming");
        Ok(self.0.server_streaming(Request::new(request), path, ProstCodec::default()).await?.into_inner())
    }

    async fn bidi_streaming(
        &mut self,
        requests: impl tokio_stream::Stream<Item = EchoRequest> + Send + 'static,
    ) -> Result<Streaming<EchoReply>, Status> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static("/meshmeter.v1.Echo/BidiStreaming");
        Ok(self.0.streaming(Request::new(requests), path, ProstCodec::default()).await?.into_inner())
    }
}

/// Runs a client against a server and returns the server's counters.
fn against<F: Future<Output = ()>>(settings: &Settings, client: impl FnOnce(Client) -> F) -> Counters {
    let server = Running::start(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let patience = Duration::from_secs(60);
        tokio::time::timeout(patience, async { client(Client::new(&server).await).await }).await.unwrap();
    });
    drop(runtime);
    server.stop()
}

/// Start of every reply's payload.
const FILLER: &[u8] = b"0000....";

#[test]
fn unary_call_is_answered_as_settings_or_request_say() {
    let counters = against(&settings(100), async |mut client| {
        let reply =
            client.unary(EchoRequest { payload: Bytes::from(vec![7; 5000]), ..EchoRequest::default() });
        let reply = reply.await.unwrap();
        assert_eq!((reply.payload.len(), reply.requests, reply.request_bytes), (100, 1, 5000));
        assert!(reply.payload.starts_with(FILLER));
        for reply_bytes in [0, 1, 8192, 8193, 3_000_000] {
            let request = EchoRequest { reply_bytes: Some(reply_bytes), ..EchoRequest::default() };
            let reply = client.unary(request).await.unwrap();
            assert_eq!(reply.payload.len() as u64, reply_bytes);
        }
        let payload = Bytes::from(vec![1; 3_000_000]);
        let reply = client.unary(EchoRequest { payload, ..EchoRequest::default() }).await.unwrap();
        assert_eq!(reply.request_bytes, 3_000_000);
    });
    let counts = counters.grpc;
    assert_eq!((counts.requests, counts.answered, counts.failed, counts.incomplete), (7, 7, 0, 0));
    assert_eq!((counters.http2.requests, counters.http2.connections), (0, 1));
}

#[test]
fn statuses_are_the_requested_ones() {
    let counters = against(&settings(1), async |mut client| {
        for code in 1..=16 {
            let request = EchoRequest { status: Some(code), ..EchoRequest::default() };
            let status = client.unary(request).await.unwrap_err();
            assert_eq!(status.code() as u32, code);
            assert_eq!(status.message(), "the request set this status");
        }
        let status =
            client.unary(EchoRequest { status: Some(17), ..EchoRequest::default() }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "expected a status from 0 to 16, not 17");
        let missing = client.call::<_, EchoReply>("/meshmeter.v1.Echo/Missing", EchoRequest::default()).await;
        assert_eq!(missing.unwrap_err().code(), Code::Unimplemented);
        let payload = Bytes::from(vec![0; 17 * 1024 * 1024]);
        let status = client.unary(EchoRequest { payload, ..EchoRequest::default() }).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::ResourceExhausted, "a message is longer than 16 MiB")
        );
    });
    assert_eq!((counters.grpc.requests, counters.grpc.answered, counters.errors), (19, 19, 0));
}

#[test]
fn injected_errors_are_a_status_and_keep_delays() {
    let answer = Answer { error_fraction: 1.0, delay: Duration::from_millis(3), ..Answer::default() };
    let counters = against(&Settings { answer, ..settings(0) }, async |mut client| {
        let asked = Instant::now();
        let status = client.unary(EchoRequest::default()).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        assert!(asked.elapsed() >= Duration::from_millis(3));
        let asked = Instant::now();
        let request = EchoRequest { status: Some(0), delay_us: Some(20_000), ..EchoRequest::default() };
        client.unary(request).await.unwrap();
        assert!(asked.elapsed() >= Duration::from_millis(20));
    });
    assert_eq!((counters.grpc.answered, counters.errors), (2, 1));
}

#[test]
fn streams_carry_requested_number_of_messages() {
    let counters = against(&settings(10), async |mut client| {
        let request = EchoRequest { replies: Some(5), status: Some(9), ..EchoRequest::default() };
        let mut replies = client.server_streaming(request).await.unwrap();
        for _ in 0..5 {
            assert_eq!(replies.message().await.unwrap().unwrap().payload.len(), 10);
        }
        assert_eq!(replies.message().await.unwrap_err().code(), Code::FailedPrecondition);

        let requests: Vec<_> = (1..=4)
            .map(|length| EchoRequest { payload: vec![0; length].into(), ..EchoRequest::default() })
            .collect();
        client.0.ready().await.unwrap();
        let path = PathAndQuery::from_static("/meshmeter.v1.Echo/ClientStreaming");
        let request = Request::new(tokio_stream::iter(requests.clone()));
        let reply: EchoReply =
            client.0.client_streaming(request, path, ProstCodec::default()).await.unwrap().into_inner();
        assert_eq!((reply.requests, reply.request_bytes), (4, 10));

        let mut replies = client.bidi_streaming(tokio_stream::iter(requests)).await.unwrap();
        for requests in 1..=4 {
            assert_eq!(replies.message().await.unwrap().unwrap().requests, requests);
        }
        assert_eq!(replies.message().await.unwrap(), None);
    });
    let counts = counters.grpc;
    assert_eq!((counts.requests, counts.answered, counts.failed, counts.incomplete), (3, 3, 0, 0));
}

#[test]
fn stream_is_answered_message_by_message() {
    against(&settings(10), async |mut client| {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
        sender.send(EchoRequest::default()).await.unwrap();
        let mut replies = client.bidi_streaming(requests).await.unwrap();
        for round in 1..20 {
            assert_eq!(replies.message().await.unwrap().unwrap().requests, round);
            sender.send(EchoRequest::default()).await.unwrap();
        }
        drop(sender);
        assert_eq!(replies.message().await.unwrap().unwrap().requests, 20);
        assert_eq!(replies.message().await.unwrap(), None);
    });
}

#[test]
fn call_cancelled_by_client_is_failed() {
    let server = Running::start(&settings(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = Client::new(&server).await;
        let request = EchoRequest { delay_us: Some(3_600_000_000), ..EchoRequest::default() };
        // It has been sent by then, on a machine that stalls for seconds as well.
        let given_up = tokio::time::timeout(Duration::from_secs(4), client.unary(request)).await;
        assert!(given_up.is_err());
        // Its stream is reset before this one begins.
        client.unary(EchoRequest::default()).await.unwrap();
        let endless =
            EchoRequest { replies: Some(u32::MAX), reply_bytes: Some(100_000), ..EchoRequest::default() };
        let mut replies = client.server_streaming(endless).await.unwrap();
        assert_eq!(replies.next().await.unwrap().unwrap().payload.len(), 100_000);
        drop(replies);
        client.unary(EchoRequest::default()).await.unwrap();
    });
    drop(runtime);
    let counts = server.stop().grpc;
    assert_eq!((counts.requests, counts.answered, counts.failed), (4, 2, 2));
}

#[test]
fn health_reports_serving() {
    let counters = against(&settings(0), async |mut client| {
        const CHECK: &str = "/grpc.health.v1.Health/Check";
        for service in ["", "meshmeter.v1.Echo", "grpc.health.v1.Health"] {
            let health: Health = client.call(CHECK, HealthCheck { service: service.into() }).await.unwrap();
            assert_eq!(health.status, 1, "{service}");
        }
        let unknown = client.call::<_, Health>(CHECK, HealthCheck { service: "shop".into() }).await;
        assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
        client.0.ready().await.unwrap();
        let path = PathAndQuery::from_static("/grpc.health.v1.Health/Watch");
        let request = Request::new(HealthCheck { service: String::new() });
        let mut news: Streaming<Health> =
            client.0.server_streaming(request, path, ProstCodec::default()).await.unwrap().into_inner();
        assert_eq!(news.message().await.unwrap().unwrap().status, 1);
    });
    assert_eq!((counters.grpc.requests, counters.grpc.answered), (5, 4), "a watch ends with its connection");
}

async fn ask(server: &Running, questions: Vec<MessageRequest>) -> Vec<ServerReflectionResponse> {
    let endpoint = Channel::from_shared(format!("http://{}", server.address())).unwrap();
    let mut client = ServerReflectionClient::new(endpoint.connect().await.unwrap());
    let requests = questions
        .into_iter()
        .map(|question| ServerReflectionRequest { host: "a".into(), message_request: Some(question) });
    let requests: Vec<_> = requests.collect();
    let answers = client.server_reflection_info(tokio_stream::iter(requests)).await.unwrap().into_inner();
    answers.map(Result::unwrap).collect().await
}

#[test]
fn reflection_describes_services() {
    let server = Running::start(&settings(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers = runtime.block_on(ask(
        &server,
        vec![
            MessageRequest::ListServices(String::new()),
            MessageRequest::FileContainingSymbol("meshmeter.v1.Echo".into()),
            MessageRequest::FileByFilename("grpc/health/v1/health.proto".into()),
            MessageRequest::FileContainingSymbol("shop.Cart".into()),
        ],
    ));
    drop(runtime);
    let [services, echo, health, unknown] = &answers[..] else { panic!("{answers:?}") };
    let Some(MessageResponse::ListServicesResponse(services)) = &services.message_response else {
        panic!("{services:?}")
    };
    let names: Vec<&str> = services.service.iter().map(|service| &service.name[..]).collect();
    assert!(names.contains(&"meshmeter.v1.Echo") && names.contains(&"grpc.reflection.v1.ServerReflection"));
    for (answer, message) in
        [(echo, "meshmeter.v1.EchoRequest"), (health, "grpc.health.v1.HealthCheckResponse")]
    {
        let Some(MessageResponse::FileDescriptorResponse(files)) = &answer.message_response else {
            panic!("{answer:?}")
        };
        let mut pool = prost_reflect::DescriptorPool::new();
        for file in &files.file_descriptor_proto {
            pool.decode_file_descriptor_proto(&file[..]).unwrap();
        }
        assert!(pool.get_message_by_name(message).is_some());
    }
    assert!(
        matches!(&unknown.message_response, Some(MessageResponse::ErrorResponse(error)) if error.error_code == 5)
    );
    assert_eq!(server.stop().grpc.requests, 0, "asking what there is, is no load");
}
