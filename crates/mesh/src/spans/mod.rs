//! Collector for the spans of a trial's proxies: it counts spans by sender and stores none.
//! It accepts OTLP over HTTP/1.1 in protobuf, on any path; not gRPC, JSON, compression or TLS. `GET
//! /counters` returns the counts. A sender is the spans' `service.name`. istiod builds it from a proxy's
//! label `app` and its namespace (`client.mesh-3`), so it belongs to one trial only. The collector has one
//! thread, and its cost is reported separately from that of proxies.

mod message;
pub mod tracing;

use crate::admin::{Admin, AdminError};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

const COUNTERS_PATH: &str = "/counters";
/// Maximum size of an export in bytes. Envoy's exports are a few kilobytes.
const MAX_EXPORT_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of senders: their names are untrusted input.
const MAX_SENDERS: usize = 10_000;
/// Pause after a failed accept: there may be too many connections.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Received {
    /// Requests with spans.
    pub exports: u64,
    pub unreadable: u64,
    /// Number of spans by sender.
    pub spans: BTreeMap<String, u64>,
}

impl Received {
    fn count(&mut self, export: &[u8]) -> bool {
        let Some(counted) = message::spans_by_service(export) else {
            self.unreadable += 1;
            return false;
        };
        self.exports += 1;
        for (name, spans) in counted {
            if self.spans.len() < MAX_SENDERS || self.spans.contains_key(&name) {
                *self.spans.entry(name).or_default() += spans;
            }
        }
        true
    }
}

#[derive(Clone, Debug)]
pub struct TraceCollector {
    admin: Admin,
}

impl TraceCollector {
    pub fn new(admin: Admin) -> Self {
        Self { admin }
    }

    pub fn received(&self) -> Result<Received, AdminError> {
        self.admin.get_json(COUNTERS_PATH)
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SentSpans {
    /// `service.name`; shared by the replicas of a workload.
    pub sender: String,
    /// Expected spans per request that is forwarded once.
    pub spans_per_request: u64,
}

/// Runs the collector until the process ends.
pub fn collect(listener: TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let received = Rc::new(RefCell::new(Received::default()));
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
                continue;
            };
            let received = Rc::clone(&received);
            let answer = service_fn(move |request| answer(request, Rc::clone(&received)));
            tokio::task::spawn_local(async move {
                // Connection errors are the client's concern.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    })
}

async fn answer(
    request: Request<Incoming>,
    received: Rc<RefCell<Received>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET && request.uri().path() == COUNTERS_PATH {
        let counters = serde_json::to_vec(&*received.borrow()).unwrap_or_default();
        return Ok(response(StatusCode::OK, "application/json", counters));
    }
    let body = Limited::new(request.into_body(), MAX_EXPORT_BYTES).collect().await;
    let counted = match body {
        Ok(body) => received.borrow_mut().count(&body.to_bytes()),
        Err(_) => {
            received.borrow_mut().unreadable += 1;
            false
        }
    };
    // An empty message means that all spans were accepted.
    let status = if counted { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Ok(response(status, "application/x-protobuf", Vec::new()))
}

fn response(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
