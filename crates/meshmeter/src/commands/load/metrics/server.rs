//! Serves one page over HTTP: `GET /metrics`. Anything else is rejected. No client can block the server:
//! connections are few, carry one request each, and time out.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Maximum concurrent connections; others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 16;
/// Timeout of a connection, from accept to the end of the response.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a request head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Pause after a failed accept, for example when out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Lowers the thread's priority below the measuring threads (nice(2)).
const NICENESS: i32 = 10;

/// A running server; stops when dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and responds to each request with the current result of `page`.
    pub fn start(address: SocketAddr, page: impl Fn() -> String + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            // If this is not permitted, serving at normal priority does no harm.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
            runtime.block_on(async {
                tokio::spawn(accept(listener, Arc::new(page)));
                // Resolves when the sender is dropped, too.
                let _ = stopped.await;
            });
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(serve)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A server that panicked has stopped, too.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, page: Arc<impl Fn() -> String + Send + Sync + 'static>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let page = Arc::clone(&page);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let response = answer(&request, &*page);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .keep_alive(false)
                .max_buf_size(MAX_HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // Errors and timeouts of a connection are the peer's problem.
            let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, page: &impl Fn() -> String) -> Response<Full<Bytes>> {
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, results::exposition::CONTENT_TYPE, page()),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET is served\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "see /metrics\n".to_owned()),
    };
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, kind);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response = response.header(ALLOW, "GET");
    }
    response.body(Full::new(Bytes::from(text))).expect("constant headers are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    /// On a loopback address that no other test uses, so that nobody else takes the port once it is free.
    fn server() -> Server {
        Server::start(SocketAddr::from(([127, 0, 0, 8], 0)), || "a 1\n".to_owned()).unwrap()
    }

    fn exchange(server: &Server, request: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(CONNECTION_TIMEOUT * 6)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        // After a request that the server did not read completely, a reset may follow the response.
        if let Err(error) = stream.read_to_end(&mut response) {
            assert!(error.kind() == io::ErrorKind::ConnectionReset, "{error}");
        }
        String::from_utf8(response).unwrap()
    }

    #[test]
    fn only_the_page_is_served() {
        let server = server();
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK"),
            ("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK"),
            ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405"),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404"),
            ("nonsense\r\n\r\n", "HTTP/1.1 400"),
        ] {
            let response = exchange(&server, request);
            assert!(response.starts_with(expected), "{request}: {response}");
            assert_eq!(response.ends_with("\r\n\r\na 1\n"), expected.ends_with("OK"), "{response}");
        }
        let long = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", "a".repeat(2 * MAX_HEAD_BYTES));
        let refusal = exchange(&server, &long);
        assert!(refusal.starts_with("HTTP/1.1 431"), "{refusal}");
    }

    #[test]
    fn silent_peers_do_not_block_shutdown() {
        let server = server();
        let silent: Vec<_> =
            (0..2 * MAX_CONNECTIONS).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        let address = server.address();
        drop(server);
        drop(silent);
        assert!(TcpStream::connect(address).is_err(), "it is gone");
    }
}
