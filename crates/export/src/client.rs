//! HTTP(S) POST requests with a timeout and a limit on the size of the response.

use crate::destination::{Authorities, Destination};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use http::{HeaderName, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as HyperClient, Error as HyperError};
use hyper_util::rt::TokioExecutor;
use results::Build;
use std::time::Duration;

/// Timeout of a request, from connecting to the end of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of response bytes that are read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Persistent connections to a server.
pub(crate) type Connections = HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// HTTP client for one receiver, with persistent connections.
pub(crate) struct Client {
    http: Connections,
    destination: Destination,
}

/// A request body with its content type and headers.
pub(crate) struct Post {
    pub body: Bytes,
    pub content_type: &'static str,
    /// Headers required by the protocol.
    pub headers: Vec<(HeaderName, &'static str)>,
}

/// A response.
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Client {
    pub(crate) fn new(destination: Destination) -> Self {
        Self { http: connections(&destination.authorities, destination.is_https()), destination }
    }

    /// Sends the request once. The error is a short description of the cause.
    pub(crate) async fn post(&self, post: &Post) -> Result<Reply, String> {
        let mut request = Request::post(self.destination.uri.clone())
            .header(CONTENT_TYPE, post.content_type)
            .header(USER_AGENT, Build::this().user_agent());
        for (name, value) in &post.headers {
            request = request.header(name, *value);
        }
        let mut request =
            request.body(Full::new(post.body.clone())).map_err(|error| format!("a request: {error}"))?;
        request.headers_mut().extend(self.destination.headers.clone());
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| cause(&error))?;
            let (head, body) = response.into_parts();
            // The status has arrived; the body is only an explanation, so an incomplete one does not matter.
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
            let body = body.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
            Ok(Reply { status: head.status, headers: head.headers, body })
        };
        match tokio::time::timeout(REQUEST_TIMEOUT, exchange).await {
            Ok(reply) => reply,
            Err(_) => Err(format!("no response in {} s", REQUEST_TIMEOUT.as_secs())),
        }
    }
}

/// Connections over HTTP or HTTPS.
pub(crate) fn connections(authorities: &Authorities, is_https: bool) -> Connections {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls(authorities, is_https))
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    HyperClient::builder(TokioExecutor::new()).build(https)
}

/// The innermost cause: `Connection refused`, not that a client error happened.
pub(crate) fn cause(error: &HyperError) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    // The OS error number adds nothing.
    let text = innermost.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// TLS configuration. The system's certificate authorities are loaded only if needed.
fn tls(authorities: &Authorities, is_https: bool) -> rustls::ClientConfig {
    roots::client_config(match authorities {
        Authorities::Private(roots) => Ok(rustls::RootCertStore::clone(roots)),
        Authorities::System if is_https => roots::of_system(),
        Authorities::System => Ok(rustls::RootCertStore::empty()),
    })
}
