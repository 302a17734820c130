//! A discovery stream: requests in, responses out, with its connection's violation.

use crate::behaviour::Behaviour;
use crate::configuration::Configuration;
use crate::discovery::{DELTA_METHOD, Request, STREAM_METHOD};
use crate::protobuf::{Message, write_varint};
use crate::resources::{CLUSTER, ENDPOINTS};
use crate::state::State;
use crate::subscriptions::{Reply, Subscriptions};
use bytes::{Buf as _, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// gRPC status codes.
const INVALID_ARGUMENT: u32 = 3;
const UNIMPLEMENTED: u32 = 12;
const UNAUTHENTICATED: u32 = 16;

/// Size of the prefix of a gRPC message: a flag and the length.
const PREFIX_BYTES: usize = 5;
/// Maximum size of a response that is sent in one DATA frame.
const MAX_JOINED_BYTES: usize = 8 * 1024;
/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(24 * 3600);
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// Serves a stream until it ends or its connection does.
pub(crate) async fn serve(
    state: Arc<State>,
    behaviour: Behaviour,
    node: Arc<OnceLock<String>>,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let (head, body) = request.into_parts();
    let delta = match head.uri.path() {
        DELTA_METHOD => true,
        STREAM_METHOD => false,
        path => {
            state.counts.complain(&format!("method {path:?} is asked for"));
            return refuse(&mut respond, UNIMPLEMENTED, "unknown method");
        }
    };
    state.counts.streams.add(1);
    if let Some(token) = &state.token {
        let shown = head.headers.get("authorization").map(HeaderValue::as_bytes);
        if shown != Some(format!("Bearer {token}").as_bytes()) {
            return refuse(&mut respond, UNAUTHENTICATED, "authentication failure");
        }
    }
    match behaviour {
        Behaviour::Status(status, message) => return refuse(&mut respond, status, message),
        Behaviour::HttpStatus(status) => return page(&mut respond, status),
        _ => {}
    }
    let mut response = Response::new(());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    let send = respond.send_response(response, false)?;
    let (configuration, seen) = state.start();
    let subscriptions = Subscriptions::new(delta);
    Stream { state, behaviour, node, send, delta, configuration, seen, subscriptions }.run(body).await
}

struct Stream {
    state: Arc<State>,
    behaviour: Behaviour,
    node: Arc<OnceLock<String>>,
    send: SendStream<Bytes>,
    delta: bool,
    configuration: Arc<Configuration>,
    /// Number of changes that the configuration has.
    seen: usize,
    subscriptions: Subscriptions,
}

impl Stream {
    async fn run(mut self, mut body: RecvStream) -> Result<(), h2::Error> {
        let lifetime = match self.behaviour {
            Behaviour::StreamReset(age) | Behaviour::StreamEnd(age) => age,
            _ => FOREVER,
        };
        let end = Instant::now() + lifetime;
        let mut changes = self.state.changes();
        let mut received = BytesMut::new();
        loop {
            tokio::select! {
                data = body.data() => {
                    let Some(data) = data else { return self.finish(0) };
                    let data = data?;
                    body.flow_control().release_capacity(data.len())?;
                    received.extend_from_slice(&data);
                    while let Some(message) = take_message(&mut received) {
                        if !self.receive(&message)? {
                            return self.finish(INVALID_ARGUMENT);
                        }
                    }
                }
                Ok(()) = changes.changed() => self.take_changes()?,
                () = tokio::time::sleep_until(end) => return self.end(),
            }
        }
    }

    /// Processes a request. Returns `false` if it is not a valid request.
    fn receive(&mut self, message: &[u8]) -> Result<bool, h2::Error> {
        let Ok(request) = Request::decode(message, self.delta) else {
            self.state.counts.complain("a request cannot be decoded");
            return Ok(false);
        };
        let counts = &self.state.counts;
        let reply = self.subscriptions.receive(&self.configuration, request, counts);
        if let Some(node) = self.subscriptions.node() {
            self.node.get_or_init(|| node.to_owned());
        }
        if let Some(reply) = reply {
            self.reply(reply)?;
        }
        Ok(true)
    }

    fn take_changes(&mut self) -> Result<(), h2::Error> {
        let (configuration, changes) = self.state.current(self.seen);
        self.configuration = configuration;
        self.seen += changes.len();
        for change in changes {
            if let Some(reply) = self.subscriptions.changed(&self.configuration, &change) {
                self.reply(reply)?;
            }
        }
        Ok(())
    }

    fn reply(&mut self, mut reply: Reply) -> Result<(), h2::Error> {
        match self.behaviour {
            Behaviour::SilentStream => return Ok(()),
            Behaviour::HugeMessage(bytes) => return self.send_zeros(bytes),
            Behaviour::UndecodableBody => return self.send_message(0, &[Bytes::from_static(&[0xff; 64])]),
            Behaviour::UnknownType if reply.type_url == CLUSTER => {
                let unknown = Reply {
                    type_url: UNKNOWN_TYPE,
                    resources: Bytes::new(),
                    removed: Vec::new(),
                    nonce: u64::MAX,
                };
                self.send_message(0, &self.body(&unknown))?;
            }
            Behaviour::WithheldResource if reply.type_url == ENDPOINTS => {
                reply.resources = without_first_field(reply.resources);
            }
            Behaviour::UndecodableResource if reply.type_url == CLUSTER => {
                reply.resources = self.extended(&reply.resources, CLUSTER, "undecodable", &[0xff; 16]);
            }
            Behaviour::UnrequestedResource if reply.type_url == ENDPOINTS => {
                let name = "outbound|1||nobody.asked.svc.cluster.local";
                let value = Message::default().text(1, name);
                reply.resources = self.extended(&reply.resources, ENDPOINTS, name, value.encoded());
            }
            Behaviour::LargeResource(bytes) if reply.type_url == CLUSTER => {
                return self.send_large(&reply, bytes);
            }
            _ => {}
        }
        let compressed = u8::from(self.behaviour == Behaviour::CompressedFlag);
        self.send_message(compressed, &self.body(&reply))
    }

    /// A response, split into its parts.
    fn body(&self, reply: &Reply) -> [Bytes; 3] {
        let nonce = match self.behaviour {
            Behaviour::EmptyNonce => String::new(),
            Behaviour::RepeatedNonce => "1".to_owned(),
            _ => reply.nonce.to_string(),
        };
        let version = Message::default().text(1, &self.seen.to_string());
        let mut end = Message::default().text(4, reply.type_url).text(5, &nonce);
        if self.delta {
            end = reply.removed.iter().fold(end, |end, name| end.text(6, name));
        }
        let copied = |message: &Message| Bytes::copy_from_slice(message.encoded());
        [copied(&version), reply.resources.clone(), copied(&end)]
    }

    /// Sends a response with an additional cluster, padded with zeros.
    fn send_large(&mut self, reply: &Reply, bytes: u32) -> Result<(), h2::Error> {
        const UNKNOWN_FIELD: u32 = 1000;
        let bytes = bytes as usize;
        let name = "outbound|1||large.svc.cluster.local";
        let cluster = Message::default().text(1, name);
        let zeros = header(UNKNOWN_FIELD, bytes);
        let value_bytes = cluster.encoded().len() + zeros.len() + bytes;
        let any = [Message::default().text(1, CLUSTER).encoded(), &header(2, value_bytes)].concat();
        let any_bytes = any.len() + value_bytes;
        let (named, resource) = if self.delta {
            let named = Message::default().text(3, name).text(1, "1");
            let resource = header(2, any_bytes);
            ([named.encoded(), &resource].concat(), named.encoded().len() + resource.len() + any_bytes)
        } else {
            (Vec::new(), any_bytes)
        };
        let start = [&header(2, resource), &named[..], &any, cluster.encoded(), &zeros].concat();
        let [version, resources, end] = self.body(reply);
        let zeros = (0..bytes).step_by(ZEROS.len()).map(|from| &ZEROS[..ZEROS.len().min(bytes - from)]);
        let parts: Vec<_> = [version, resources, start.into()]
            .into_iter()
            .chain(zeros.map(Bytes::from_static))
            .chain([end])
            .collect();
        self.send_message(0, &parts)
    }

    /// Resource fields, followed by an additional one.
    fn extended(&self, fields: &[u8], type_url: &str, name: &str, value: &[u8]) -> Bytes {
        let any = Message::default().text(1, type_url).bytes(2, value);
        let resource =
            if self.delta { Message::default().text(3, name).text(1, "1").message(2, &any) } else { any };
        [fields, Message::default().message(2, &resource).encoded()].concat().into()
    }

    fn send_message(&mut self, flag: u8, parts: &[Bytes]) -> Result<(), h2::Error> {
        let length: usize = parts.iter().map(Bytes::len).sum();
        self.state.counts.responses.add(1);
        self.state.counts.body_bytes.add(length as u64);
        let prefix = prefix(flag, length as u32);
        if length <= MAX_JOINED_BYTES {
            let mut joined = prefix.to_vec();
            parts.iter().for_each(|part| joined.extend_from_slice(part));
            return self.send.send_data(joined.into(), false);
        }
        self.send.send_data(Bytes::copy_from_slice(&prefix), false)?;
        let filled = parts.iter().filter(|part| !part.is_empty());
        filled.into_iter().try_for_each(|part| self.send.send_data(part.clone(), false))
    }

    fn send_zeros(&mut self, bytes: u32) -> Result<(), h2::Error> {
        self.state.counts.responses.add(1);
        self.send.send_data(Bytes::copy_from_slice(&prefix(0, bytes)), false)?;
        let mut left = bytes as usize;
        while left > 0 {
            let part = &ZEROS[..left.min(ZEROS.len())];
            self.send.send_data(Bytes::from_static(part), false)?;
            left -= part.len();
        }
        Ok(())
    }

    /// Ends the stream, which has reached its maximum age.
    fn end(&mut self) -> Result<(), h2::Error> {
        if matches!(self.behaviour, Behaviour::StreamReset(_)) {
            self.send.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        }
        self.finish(0)
    }

    fn finish(&mut self, status: u32) -> Result<(), h2::Error> {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(status));
        self.send.send_trailers(trailers)
    }
}

/// Type URL of no known type.
const UNKNOWN_TYPE: &str = "type.googleapis.com/meshmeter.fleet.UnknownType";

/// Tag and length of a field of this many bytes.
fn header(field: u32, bytes: usize) -> Vec<u8> {
    let mut header = Vec::new();
    write_varint(&mut header, u64::from(field) << 3 | 2);
    write_varint(&mut header, bytes as u64);
    header
}

fn prefix(flag: u8, length: u32) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = length.to_be_bytes();
    [flag, a, b, c, d]
}

/// The next message, if it is complete.
fn take_message(received: &mut BytesMut) -> Option<BytesMut> {
    let length: [u8; 4] = received.get(1..PREFIX_BYTES)?.try_into().ok()?;
    let length = u32::from_be_bytes(length) as usize;
    if received.len() < PREFIX_BYTES + length {
        return None;
    }
    received.advance(PREFIX_BYTES);
    Some(received.split_to(length))
}

/// Encoded fields of at least one resource, without the first.
fn without_first_field(mut fields: Bytes) -> Bytes {
    let mut length = 0_usize;
    let mut header = 1;
    for (position, byte) in fields.iter().skip(1).take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * position);
        header += 1;
        if byte & 0x80 == 0 {
            break;
        }
    }
    fields.advance((header + length).min(fields.len()));
    fields
}

/// Ends a stream with a gRPC status, without a message.
fn refuse(respond: &mut SendResponse<Bytes>, status: u32, message: &str) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from(status));
    if let Ok(message) = HeaderValue::from_str(message) {
        headers.insert("grpc-message", message);
    }
    respond.send_response(response, true).map(drop)
}

/// Responds with a page, as an intermediate proxy does.
fn page(respond: &mut SendResponse<Bytes>, status: u16) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/html"));
    respond.send_response(response, false)?.send_data(Bytes::from_static(b"<h1>no upstream</h1>"), true)
}
