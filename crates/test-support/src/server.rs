//! A small HTTP/1.1 server that can misbehave. It handles one request per connection, with a thread for each.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

const MAX_HEAD_BYTES: usize = 64 << 10;
/// Timeout for a client that sends nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
const ENDLESS_CHUNK_BYTES: usize = 64 << 10;

/// A request, limited to what tests check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query; the whole URL if sent to a proxy.
    pub target: String,
    /// Headers with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    pub body: Vec<u8>,
}

impl Request {
    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// The response to a request.
#[derive(Debug, Clone)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Headers without the length, which follows from the body.
    pub headers: Vec<(String, String)>,
    /// Body, and how it ends.
    pub body: Body,
}

/// Body of a response, and how it ends.
#[derive(Debug, Clone)]
pub enum Body {
    /// The whole body, with its length.
    Whole(Vec<u8>),
    /// Only the length (for `HEAD`).
    LengthOnly(usize),
    /// The first bytes of a body of `length`, then the connection is closed.
    Broken {
        /// Announced length in bytes.
        length: usize,
        /// Bytes that are sent.
        sent: Vec<u8>,
    },
    /// The first bytes of a body of `length`, then nothing until the server is dropped.
    Stalled {
        /// Announced length in bytes.
        length: usize,
        /// Bytes that are sent.
        sent: Vec<u8>,
    },
    /// An endless stream of spaces.
    Endless,
    /// Nothing at all, not even a status, until the server is dropped.
    Silence,
}

impl Response {
    /// A response with a whole body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(body.into()) }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// A server on a loopback port. It runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    handler: Box<Handler>,
    requests: Mutex<Vec<Request>>,
    tls: Option<Arc<ServerConfig>>,
    is_ending: AtomicBool,
    /// Wakes the stalled connections.
    end: (Mutex<bool>, Condvar),
}

impl Server {
    /// Serves the responses of `handler`, over TLS if there is a configuration.
    pub fn start(
        tls: Option<Arc<ServerConfig>>,
        handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            requests: Mutex::default(),
            tls,
            is_ending: AtomicBool::new(false),
            end: (Mutex::new(false), Condvar::new()),
        });
        let of_thread = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.is_ending.load(Ordering::Acquire) {
                    break;
                }
                let shared = Arc::clone(&of_thread);
                if let Ok(stream) = stream {
                    // Errors of clients that disconnect do not matter.
                    std::thread::spawn(move || shared.serve(stream));
                }
            }
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("no thread panics").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        *self.shared.end.0.lock().expect("no thread panics") = true;
        self.shared.end.1.notify_all();
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => self.answer(stream),
            Some(tls) => {
                let connection = ServerConnection::new(Arc::clone(tls)).map_err(io::Error::other)?;
                self.answer(StreamOwned::new(connection, stream))
            }
        }
    }

    fn answer(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let Some(request) = read_request(&mut stream)? else {
            return stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        let response = (self.handler)(&request);
        self.requests.lock().expect("no thread panics").push(request);
        if matches!(response.body, Body::Silence) {
            self.wait_for_end();
            return Ok(());
        }
        let mut head = format!("HTTP/1.1 {} Status\r\nConnection: close\r\n", response.status);
        for (name, value) in &response.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = match &response.body {
            Body::Whole(bytes) => Some(bytes.len()),
            Body::LengthOnly(length) | Body::Broken { length, .. } | Body::Stalled { length, .. } => {
                Some(*length)
            }
            Body::Endless | Body::Silence => None,
        };
        if let Some(length) = length {
            head.push_str(&format!("Content-Length: {length}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        match response.body {
            Body::Whole(bytes) | Body::Broken { sent: bytes, .. } => stream.write_all(&bytes)?,
            Body::Stalled { sent, .. } => {
                stream.write_all(&sent)?;
                stream.flush()?;
                self.wait_for_end();
            }
            Body::Endless => {
                while !self.is_ending.load(Ordering::Acquire) {
                    stream.write_all(&[b' '; ENDLESS_CHUNK_BYTES])?;
                }
            }
            Body::LengthOnly(_) | Body::Silence => {}
        }
        stream.flush()
    }

    fn wait_for_end(&self) {
        let guard = self.end.0.lock().expect("no thread panics");
        drop(self.end.1.wait_while(guard, |is_over| !*is_over));
    }
}

/// `None` if it is not HTTP.
fn read_request(stream: &mut impl Read) -> io::Result<Option<Request>> {
    let mut received = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(&received) {
            Err(_) => return Ok(None),
            Ok(httparse::Status::Complete(head_bytes)) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let mut request = Request {
                    method: parsed.method.unwrap_or_default().to_owned(),
                    target: parsed.path.unwrap_or_default().to_owned(),
                    headers: parsed
                        .headers
                        .iter()
                        .map(|h| (h.name.to_ascii_lowercase(), text(h.value)))
                        .collect(),
                    body: received[head_bytes..].to_vec(),
                };
                let length =
                    request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
                while request.body.len() < length {
                    if read_more(stream, &mut request.body)? == 0 {
                        return Ok(None);
                    }
                }
                return Ok(Some(request));
            }
            Ok(httparse::Status::Partial) if received.len() > MAX_HEAD_BYTES => return Ok(None),
            Ok(httparse::Status::Partial) => {
                if read_more(stream, &mut received)? == 0 {
                    return Ok(None);
                }
            }
        }
    }
}

fn read_more(stream: &mut impl Read, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer)?;
    into.extend_from_slice(&buffer[..count]);
    Ok(count)
}
