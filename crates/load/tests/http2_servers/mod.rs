//! HTTP/2 servers: a conforming one based on the `h2` crate, and one that is scripted frame by frame.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response, StatusCode};
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// `:status: 200`.
pub const STATUS_200: &[u8] = &[0x88];

/// A running server; stops accepting when dropped.
pub struct Http2Server {
    pub address: SocketAddr,
    /// Requests whose head the server has read.
    pub requests: Arc<AtomicU64>,
    /// Connections that the server has accepted.
    pub connections: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Http2Server {
    /// Starts a server that calls `behave` for each connection.
    pub fn of_frames(behave: impl Fn(&mut Frames) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::start(move |stream, requests| {
            let mut frames = Frames { stream, requests };
            // The result is checked on the client side.
            let _ = behave(&mut frames);
            let _ = frames.stream.shutdown(Shutdown::Write);
            let _ = io::copy(&mut frames.stream, &mut io::sink());
        })
    }

    /// Starts a server based on the `h2` crate, configured by `set_up`; requests of a connection are answered
    /// concurrently.
    pub fn of_h2<F: Future<Output = Answer> + Send + 'static>(
        set_up: impl Fn(&mut Builder) + Send + Sync + 'static,
        answer: impl Fn(Request<RecvStream>, u64) -> F + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::start(move |stream, requests| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            // Connections that end badly are checked on the client side.
            let _ = runtime.block_on(tokio::task::LocalSet::new().run_until(async {
                stream.set_nonblocking(true).expect("a TCP connection");
                let stream = tokio::net::TcpStream::from_std(stream).expect("a TCP connection");
                let mut builder = Builder::new();
                set_up(&mut builder);
                let mut connection = builder.handshake::<_, Bytes>(stream).await?;
                while let Some(request) = connection.accept().await {
                    let (request, respond) = request?;
                    let ordinal = requests.fetch_add(1, Ordering::SeqCst);
                    let answer = Arc::clone(&answer);
                    tokio::task::spawn_local(
                        async move { send(answer(request, ordinal).await, respond).await },
                    );
                }
                Ok::<_, h2::Error>(())
            }));
        })
    }

    fn start(serve: impl Fn(TcpStream, Arc<AtomicU64>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (requests, connections) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let stopping = Arc::new(AtomicBool::new(false));
        let (counted, accepted, stop) =
            (Arc::clone(&requests), Arc::clone(&connections), Arc::clone(&stopping));
        let serve = Arc::new(serve);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                accepted.fetch_add(1, Ordering::SeqCst);
                let (serve, counted) = (Arc::clone(&serve), Arc::clone(&counted));
                std::thread::spawn(move || {
                    stream.set_nodelay(true).expect("a TCP connection");
                    serve(stream, counted);
                });
            }
        });
        Self { address, requests, connections, stopping, accepting: Some(accepting) }
    }

    pub fn url(&self) -> String {
        format!("http://{}/cart", self.address)
    }

    pub fn counted(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// The request count once it reaches `expected`, or after a while. A client that cancels may be done
    /// before the server has read its bytes.
    pub fn await_counted(&self, expected: u64) -> u64 {
        let give_up = Instant::now() + Duration::from_secs(60);
        while self.counted() < expected && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.counted()
    }
}

impl Drop for Http2Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("the listener does not panic");
        }
    }
}

/// How a server of the `h2` crate responds.
pub enum Answer {
    /// A body of this many bytes, optionally followed by trailers.
    Body { status: u16, bytes: usize, trailers: bool },
    /// The stream is reset.
    Reset(Reason),
    /// No response, ever.
    Nothing,
}

async fn send(answer: Answer, mut respond: SendResponse<Bytes>) {
    let (status, bytes, trailers) = match answer {
        Answer::Body { status, bytes, trailers } => (status, bytes, trailers),
        Answer::Reset(reason) => return respond.send_reset(reason),
        Answer::Nothing => return std::future::pending().await,
    };
    let response = Response::builder()
        .status(StatusCode::from_u16(status).expect("a status"))
        .header("x-some", "header of a server")
        .header("date", "Fri, 20 Nov 2026 11:00:00 GMT")
        .body(())
        .expect("a response");
    // A client that disconnects in between is checked on its own side.
    let ends = bytes == 0 && !trailers;
    let Ok(mut stream) = respond.send_response(response, ends) else { return };
    if ends {
        return;
    }
    stream.reserve_capacity(bytes);
    if stream.send_data(Bytes::from(vec![b'x'; bytes]), !trailers).is_ok() && trailers {
        let _ = stream.send_trailers(http::HeaderMap::from_iter([(
            http::HeaderName::from_static("x-sum"),
            http::HeaderValue::from_static("42"),
        )]));
    }
}

/// A connection that is scripted frame by frame.
pub struct Frames {
    pub stream: TcpStream,
    requests: Arc<AtomicU64>,
}

/// A frame of the client.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
}

impl Frames {
    /// Reads the client's preface and sends these settings.
    pub fn greet(&mut self, settings: &[(u16, u32)]) -> io::Result<()> {
        let mut preface = [0; PREFACE.len()];
        self.stream.read_exact(&mut preface)?;
        assert_eq!(preface, PREFACE);
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        self.send(SETTINGS, 0, 0, &payload)
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&frame(kind, flags, stream, payload))
    }

    pub fn next(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        io::copy(&mut Read::take(&mut self.stream, u64::from(length)), &mut io::sink())?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Frame { kind: head[3], stream };
        if frame.kind == HEADERS {
            self.requests.fetch_add(1, Ordering::SeqCst);
        }
        Ok(frame)
    }

    /// Waits for the next request and returns its stream.
    pub fn next_request(&mut self) -> io::Result<u32> {
        loop {
            let frame = self.next()?;
            if frame.kind == HEADERS {
                return Ok(frame.stream);
            }
        }
    }

    /// Responds with status 200 and a short body.
    pub fn answer(&mut self, stream: u32) -> io::Result<()> {
        self.stream.write_all(&answer(stream))
    }
}

/// A frame in wire format.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A response with status 200 and a short body.
pub fn answer(stream: u32) -> Vec<u8> {
    [frame(HEADERS, END_HEADERS, stream, STATUS_200), frame(DATA, END_STREAM, stream, b"ok")].concat()
}

/// Size of such a response, bytes.
pub const ANSWER_BYTES: u64 = 9 + 1 + 9 + 2;
