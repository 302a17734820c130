//! The admin endpoint of a node, on a separate listener: counters, metrics, health. Nothing here is counted.

use super::application::Application;
use super::metrics;
use super::readiness::Readiness;
use super::tally::NodeTally;
use crate::reply::COUNTERS_PATH;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio::time::sleep;

const METRICS_PATH: &str = "/metrics";
const LIVE_PATH: &str = "/health/live";
const READY_PATH: &str = "/health/ready";
/// Pause after a failed accept.
const ACCEPT_REST: Duration = Duration::from_millis(20);

/// State behind the admin endpoint.
#[derive(Debug)]
pub(crate) struct Admin {
    tally: NodeTally,
    application: Arc<Application>,
    readiness: Arc<Readiness>,
}

impl Admin {
    pub(crate) fn new(tally: NodeTally, application: &Arc<Application>, readiness: &Arc<Readiness>) -> Self {
        Self { tally, application: Arc::clone(application), readiness: Arc::clone(readiness) }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, media_type, text) = match request.uri().path() {
            _ if !matches!(*request.method(), Method::GET | Method::HEAD) => {
                (StatusCode::METHOD_NOT_ALLOWED, "text/plain", String::new())
            }
            COUNTERS_PATH => (StatusCode::OK, "application/json", self.tally.to_json()),
            METRICS_PATH => (
                StatusCode::OK,
                results::exposition::CONTENT_TYPE,
                metrics::text(&self.tally, &self.application),
            ),
            READY_PATH if let Some(reason) = self.readiness.reason() => {
                (StatusCode::SERVICE_UNAVAILABLE, "text/plain", reason + "\n")
            }
            LIVE_PATH | READY_PATH => (StatusCode::OK, "text/plain", "ok\n".to_owned()),
            _ => (
                StatusCode::NOT_FOUND,
                "text/plain",
                format!("expected {COUNTERS_PATH}, {METRICS_PATH}, {LIVE_PATH} or {READY_PATH}\n"),
            ),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        response
    }
}

/// Serves a listener while polled.
pub(crate) async fn serve(listener: TcpListener, admin: Admin) {
    let admin = Rc::new(admin);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_REST).await;
            continue;
        };
        let admin = Rc::clone(&admin);
        spawn_local(async move {
            let service = service_fn(|request| {
                let response = admin.answer(&request);
                async { Ok::<_, Infallible>(response) }
            });
            // The client has disconnected.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
