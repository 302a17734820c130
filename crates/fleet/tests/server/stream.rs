//! One connection of the small control plane.

use super::messages::{
    Any, CertificateRequest, CertificateResponse, Cluster, ConfigSource, Endpoints, EndpointsConfig, Request,
    Resource, Response,
};
use super::{Misbehaviour, State, TOKEN};
use bytes::{Buf as _, Bytes, BytesMut};
use fleet::Security;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue};
use prost::Message;
use std::process::Command;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Number of clusters.
const CLUSTER_COUNT: usize = 3;

pub(super) async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    has_certificate: bool,
    state: &Arc<State>,
) {
    let Ok(mut connection) = h2::server::handshake(socket).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let token = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
        let path = request.uri().path().to_owned();
        let state = Arc::clone(state);
        let body = request.into_body();
        if path.ends_with("CreateCertificate") {
            tokio::spawn(certify(body, respond, token, state));
        } else {
            let is_known = match state.security {
                Security::Plaintext => true,
                Security::Token => token == TOKEN,
                Security::MutualTls => has_certificate,
            };
            tokio::spawn(discover(body, respond, is_known, state));
        }
    }
}

/// Reads one message; absent at the end.
async fn receive<M: Message + Default>(body: &mut RecvStream, buffer: &mut BytesMut) -> Option<M> {
    loop {
        if buffer.len() >= 5 {
            let length = u32::from_be_bytes(buffer[1..5].try_into().unwrap()) as usize;
            if buffer.len() >= 5 + length {
                let message = M::decode(&buffer[5..5 + length]).unwrap();
                buffer.advance(5 + length);
                return Some(message);
            }
        }
        let data = body.data().await?.ok()?;
        body.flow_control().release_capacity(data.len()).unwrap();
        buffer.extend_from_slice(&data);
    }
}

fn send(stream: &mut SendStream<Bytes>, message: &impl Message) {
    let mut framed = vec![0];
    framed.extend_from_slice(&(message.encoded_len() as u32).to_be_bytes());
    message.encode(&mut framed).unwrap();
    // The client may be gone, and then needs no message.
    let _ = stream.send_data(framed.into(), false);
}

fn end(stream: &mut SendStream<Bytes>, status: &'static str) {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    trailers.insert("grpc-message", HeaderValue::from_static("in words"));
    let _ = stream.send_trailers(trailers);
}

async fn certify(mut body: RecvStream, mut respond: SendResponse<Bytes>, token: String, state: Arc<State>) {
    let request: CertificateRequest = receive(&mut body, &mut BytesMut::new()).await.unwrap();
    let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
    if token != TOKEN {
        return end(&mut stream, "16");
    }
    let certificate = signed(&request.signing_request, &state);
    state.seen.lock().unwrap().certificates += 1;
    send(&mut stream, &CertificateResponse { chain: vec![certificate, state.authority.pem()] });
    end(&mut stream, "0");
}

/// A certificate for a signing request, both PEM. OpenSSL reads and verifies the request.
fn signed(request: &str, state: &State) -> String {
    let directory = tempfile::tempdir().unwrap();
    let written = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let output = Command::new("openssl")
        .args(["x509", "-req", "-copy_extensions", "copy", "-days", "30", "-in"])
        .arg(written("request.pem", request))
        .arg("-CA")
        .arg(written("authority.pem", &state.authority.pem()))
        .arg("-CAkey")
        .arg(written("key.pem", &state.authority.key().serialize_pem()))
        .output()
        .expect("openssl is needed by this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn discover(mut body: RecvStream, mut respond: SendResponse<Bytes>, is_known: bool, state: Arc<State>) {
    state.seen.lock().unwrap().streams += 1;
    let misbehaviour = *state.misbehaviour.lock().unwrap();
    if misbehaviour == Some(Misbehaviour::EndConnection) {
        // There are no receivers if the connection has just ended.
        let _ = state.end.send(());
    }
    if misbehaviour == Some(Misbehaviour::Reset) {
        return respond.send_reset(h2::Reason::INTERNAL_ERROR);
    }
    let Ok(mut stream) = respond.send_response(http::Response::new(()), false) else { return };
    if !is_known {
        return end(&mut stream, "16");
    }
    if misbehaviour == Some(Misbehaviour::LargeMessage) {
        let _ = stream.send_data(Bytes::from_static(&[0, 4, 0, 0, 1, 1, 2, 3]), false);
    }
    if misbehaviour.is_some() {
        return std::future::pending().await;
    }
    let mut content = state.content.subscribe();
    let (mut buffer, mut nonce, mut subscribed) = (BytesMut::new(), 0, Vec::new());
    loop {
        let request = {
            let mut request = std::pin::pin!(receive::<Request>(&mut body, &mut buffer));
            let mut changed = std::pin::pin!(content.changed());
            std::future::poll_fn(|context| {
                if let std::task::Poll::Ready(request) = request.as_mut().poll(context) {
                    return std::task::Poll::Ready(Some(request));
                }
                changed.as_mut().poll(context).map(|_| None)
            })
            .await
        };
        nonce += 1;
        match request {
            Some(None) => return,
            Some(Some(request)) => {
                if !request.nonce.is_empty() {
                    state.seen.lock().unwrap().acknowledgements += 1;
                    continue;
                }
                state.seen.lock().unwrap().resumed += request.held.len();
                if request.type_url == ENDPOINTS {
                    subscribed.clone_from(&request.subscribe);
                }
                let text = content.borrow().clone();
                let resources = resources(&request.type_url, &request.subscribe, &text);
                send(
                    &mut stream,
                    &Response { resources, type_url: request.type_url, nonce: nonce.to_string() },
                );
            }
            None => {
                let text = content.borrow().clone();
                let resources = resources(ENDPOINTS, &subscribed, &text);
                send(
                    &mut stream,
                    &Response { resources, type_url: ENDPOINTS.to_owned(), nonce: nonce.to_string() },
                );
            }
        }
    }
}

fn resources(type_url: &str, names: &[String], content: &str) -> Vec<Resource> {
    let resource = |name: &str, value: Vec<u8>| Resource {
        version: content.to_owned(),
        resource: Some(Any { type_url: type_url.to_owned(), value }),
        name: name.to_owned(),
    };
    match type_url {
        CLUSTERS => (0..CLUSTER_COUNT)
            .map(|number| {
                let name = format!("outbound|80||service-{number}.mesh.svc.cluster.local");
                let source = ConfigSource { aggregated: Some(Vec::new()) };
                let endpoints = Some(EndpointsConfig { source: Some(source) });
                resource(&name, Cluster { name: name.clone(), discovery_type: 3, endpoints }.encode_to_vec())
            })
            .collect(),
        ENDPOINTS => names
            .iter()
            .map(|name| {
                let content = vec!["x".repeat(20_000), content.to_owned()];
                resource(name, Endpoints { cluster: name.clone(), content }.encode_to_vec())
            })
            .collect(),
        _ => Vec::new(),
    }
}
