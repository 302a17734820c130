//! `meshmeter collect-spans`: counts the spans that proxies send, until it is stopped. Labs run it when an
//! experiment traces.
//!
//! It counts spans by sender and stores none, unless `PUT /spans` requests it to: from then on it keeps up to 64 MiB of exports, which
//! `GET /spans` returns as JSON lines. It accepts OTLP over HTTP/1.1 in protobuf, on any path; not gRPC,
//! JSON, compression or TLS. `GET /counters` returns the counts. A sender is the spans' `service.name`. istiod
//! builds it from a proxy's label `app` and its namespace (`client.mesh-3`), so it belongs to one trial only.
//! A line on standard output says where it listens. The collector has one thread, and its cost is reported
//! separately from that of proxies.

mod kept;
mod message;

use crate::cli::CollectSpansArgs;
use crate::failure::Failure;
use crate::output;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use kept::Kept;
use mesh::spans::{COUNTERS_PATH, Received};
use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

/// Maximum size of an export in bytes: that of the OpenTelemetry Collector's gRPC receiver by default. Envoy's
/// exports are a few kilobytes.
const MAX_EXPORT_BYTES: usize = 4 << 20;
/// Maximum number of senders: their names are untrusted input.
const MAX_SENDERS: usize = 10_000;
/// Maximum length of a sender's name: istiod joins two labels of at most 63 bytes.
const MAX_SENDER_BYTES: usize = 256;
/// Path of the spans that are kept.
const SPANS_PATH: &str = "/spans";
/// Header with the number of exports that were not kept for lack of space.
const LEFT_OUT: &str = "meshmeter-left-out";
/// Pause after a failed accept: there may be too many connections.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(10);

pub fn run(args: &CollectSpansArgs) -> Result<ExitCode, Failure> {
    let listener = TcpListener::bind(args.listen).map_err(|error| Failure::environment(&error))?;
    let address = listener.local_addr().map_err(|error| Failure::environment(&error))?;
    output::print(&format!("listening on http://{address}\n"))?;
    collect(listener).map_err(|error| Failure::environment(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Counts, and the exports that are kept once they are requested.
#[derive(Debug, Default)]
struct Collected {
    received: Received,
    kept: Option<Kept>,
}

/// Runs the collector until the process ends.
fn collect(listener: TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let collected = Rc::new(RefCell::new(Collected::default()));
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
                continue;
            };
            let collected = Rc::clone(&collected);
            let answer = service_fn(move |request| answer(request, Rc::clone(&collected)));
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
    collected: Rc<RefCell<Collected>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, COUNTERS_PATH) => {
            let counters = serde_json::to_vec(&collected.borrow().received).unwrap_or_default();
            return Ok(response(StatusCode::OK, "application/json", counters));
        }
        (&Method::GET, SPANS_PATH) => return Ok(kept_spans(collected.borrow().kept.as_ref())),
        (&Method::PUT, SPANS_PATH) => {
            collected.borrow_mut().kept = Some(Kept::default());
            return Ok(response(StatusCode::NO_CONTENT, "text/plain", Vec::new()));
        }
        _ => {}
    }
    let body = Limited::new(request.into_body(), MAX_EXPORT_BYTES).collect().await;
    let counted = match body {
        Ok(body) => {
            let body = body.to_bytes();
            let Collected { received, kept } = &mut *collected.borrow_mut();
            let counted = count(received, &body);
            if let Some(kept) = kept.as_mut().filter(|_| counted) {
                kept.add(body);
            }
            counted
        }
        Err(_) => {
            collected.borrow_mut().received.unreadable += 1;
            false
        }
    };
    // An empty message means that all spans were accepted.
    let status = if counted { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Ok(response(status, "application/x-protobuf", Vec::new()))
}

/// The spans that are kept, and how many exports were left out.
fn kept_spans(kept: Option<&Kept>) -> Response<Full<Bytes>> {
    let Some(kept) = kept else {
        return response(
            StatusCode::NOT_FOUND,
            "text/plain",
            b"PUT /spans keeps spans from then on\n".to_vec(),
        );
    };
    let mut response = response(StatusCode::OK, "application/x-ndjson", kept.lines());
    response.headers_mut().insert(LEFT_OUT, header::HeaderValue::from(kept.left_out));
    response
}

fn response(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// Counts the spans of an export. Returns false if it is not one, and then counts none of them.
fn count(received: &mut Received, export: &[u8]) -> bool {
    if message::senders(export).any(|sender| sender.is_err()) {
        received.unreadable += 1;
        return false;
    }
    received.exports += 1;
    for (name, spans) in message::senders(export).flatten() {
        if let Some(known) = received.spans.get_mut(name) {
            *known += spans;
        } else if received.spans.len() < MAX_SENDERS && name.len() <= MAX_SENDER_BYTES {
            received.spans.insert(name.to_owned(), spans);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::tests::export_of;

    #[test]
    fn names_of_senders_are_bounded_in_number_and_length() {
        let mut received = Received::default();
        let long = "n".repeat(MAX_SENDER_BYTES + 1);
        for name in (0..MAX_SENDERS + 10).map(|number| number.to_string()).chain([long]) {
            assert!(count(&mut received, &export_of(&name, 1)));
        }
        assert_eq!(received.spans.len(), MAX_SENDERS);
        assert!(count(&mut received, &export_of("0", 2)), "known senders are counted further");
        assert_eq!(received.spans["0"], 3);
    }

    #[test]
    fn export_that_breaks_off_counts_for_no_sender() {
        let mut received = Received::default();
        let whole = [export_of("a", 1), export_of("b", 1)].concat();
        assert!(!count(&mut received, &whole[..whole.len() - 1]));
        assert_eq!(received, Received { unreadable: 1, ..Received::default() });
    }
}
