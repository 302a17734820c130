//! A small HTTP server in a pod, of workers and of runners, which the run reaches through a port forward.

use crate::runner::StreamedBody;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use serde::Serialize;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{JoinSet, spawn_local};

/// Maximum size of a request, which may hold input files of an experiment.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// Pause until file descriptors are available again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Complete, or streamed by a thread.
pub(crate) type Reply = Response<Either<Full<Bytes>, StreamedBody>>;

pub(crate) trait Respond {
    async fn respond(&self, request: Request<Incoming>) -> Reply;
}

/// The listeners of a pod's server, and their connections. It must be used in a `LocalSet`.
#[derive(Default)]
pub(crate) struct Endpoint {
    connections: Rc<GracefulShutdown>,
    listeners: JoinSet<()>,
}

impl Endpoint {
    /// Serves each connection of this listener in a task of its own.
    pub(crate) fn serve<R: Respond + 'static>(&mut self, listener: TcpListener, responder: Rc<R>) {
        self.listeners.spawn_local(accept(listener, responder, Rc::clone(&self.connections)));
    }

    /// Accepts nothing more and sends the rest of each response, for at most this time.
    pub(crate) async fn finish(mut self, max_time: Duration) {
        self.listeners.shutdown().await;
        if let Ok(connections) = Rc::try_unwrap(self.connections) {
            let _ = tokio::time::timeout(max_time, connections.shutdown()).await;
        }
    }
}

async fn accept<R: Respond + 'static>(
    listener: TcpListener,
    responder: Rc<R>,
    connections: Rc<GracefulShutdown>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors; some become available again.
            tokio::time::sleep(RETRY_INTERVAL).await;
            continue;
        };
        let responder = Rc::clone(&responder);
        let service = service_fn(move |request| {
            let responder = Rc::clone(&responder);
            async move { Ok::<_, Infallible>(responder.respond(request).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // Clients may disconnect at any time.
        spawn_local(connections.watch(connection));
    }
}

/// Reads the whole body. The error is the response to send.
pub(crate) async fn whole(body: Incoming) -> Result<Bytes, Reply> {
    match Limited::new(body, MAX_REQUEST_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(refused(StatusCode::BAD_REQUEST, &error.to_string())),
    }
}

pub(crate) fn json(message: &impl Serialize) -> Reply {
    complete(serde_json::to_vec(message).expect("messages are plain data").into())
}

pub(crate) fn complete(body: Bytes) -> Reply {
    Response::new(Either::Left(Full::new(body)))
}

pub(crate) fn refused(status: StatusCode, reason: &str) -> Reply {
    let mut response = complete(Bytes::copy_from_slice(reason.as_bytes()));
    *response.status_mut() = status;
    response
}
