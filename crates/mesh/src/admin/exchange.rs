//! One request over one connection, with its response read as a stream. All exchanges of a thread share one
//! runtime. The task that drives a connection ends with its exchange, which closes the connection: none stays
//! open between requests.

use super::dial::Connection;
use super::error::AdminCause;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::rt::{Read as AsyncRead, Write as AsyncWrite};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::cell::OnceCell;
use std::io::{self, Read};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// Timeout of a complete response: the longest ones take a minute.
const WHOLE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);
type Result<T, E = AdminCause> = std::result::Result<T, E>;

thread_local! {
    static RUNTIME: OnceCell<Rc<Runtime>> = const { OnceCell::new() };
}

fn runtime() -> io::Result<Rc<Runtime>> {
    RUNTIME.with(|cell| {
        if let Some(runtime) = cell.get() {
            return Ok(Rc::clone(runtime));
        }
        let runtime = Rc::new(tokio::runtime::Builder::new_current_thread().enable_all().build()?);
        Ok(Rc::clone(cell.get_or_init(|| runtime)))
    })
}

#[derive(Debug)]
pub(super) struct Exchange {
    runtime: Rc<Runtime>,
    tasks: LocalSet,
}

impl Exchange {
    pub fn new() -> Result<Self> {
        Ok(Self { runtime: runtime().map_err(AdminCause::Connect)?, tasks: LocalSet::new() })
    }

    /// Sends a request, as a POST if it has a message. Returns the response body, which must begin within `timeout`.
    pub fn begin(
        &self,
        connection: Connection,
        path: &str,
        message: Option<Bytes>,
        timeout: Duration,
    ) -> Result<Incoming> {
        let bounded = async { tokio::time::timeout(timeout, request(connection, path, message)).await };
        let begun = self.tasks.block_on(&self.runtime, bounded);
        Ok(begun.map_err(|_| AdminCause::TimedOut(timeout))??.into_body())
    }
}

async fn request(connection: Connection, path: &str, message: Option<Bytes>) -> Result<Response<Incoming>> {
    match connection {
        Connection::Tcp(stream) => {
            stream.set_nonblocking(true).map_err(AdminCause::Connect)?;
            let stream = tokio::net::TcpStream::from_std(stream).map_err(AdminCause::Connect)?;
            request_over(TokioIo::new(stream), path, message).await
        }
        Connection::Unix(stream) => {
            stream.set_nonblocking(true).map_err(AdminCause::Connect)?;
            let stream = tokio::net::UnixStream::from_std(stream).map_err(AdminCause::Connect)?;
            request_over(TokioIo::new(stream), path, message).await
        }
    }
}

async fn request_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    path: &str,
    message: Option<Bytes>,
) -> Result<Response<Incoming>> {
    let broken = |error: hyper::Error| AdminCause::Exchange(Box::new(error));
    let (mut sender, connection) = http1::handshake(stream).await.map_err(broken)?;
    tokio::task::spawn_local(connection);
    let request = if message.is_some() { Request::post(path) } else { Request::get(path) };
    let request = request
        .header("host", "admin")
        .body(Full::new(message.unwrap_or_default()))
        .map_err(|error| AdminCause::Exchange(Box::new(error)))?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(AdminCause::Status(status.as_u16()));
    }
    Ok(response)
}

/// Body of a response. Reading fails if the next chunk does not arrive in time.
#[derive(Debug)]
pub(super) struct ResponseBody<'a> {
    exchange: &'a Exchange,
    body: Incoming,
    piece: Bytes,
    piece_timeout: Duration,
    deadline: Instant,
    max_bytes: u64,
    read_bytes: u64,
}

impl<'a> ResponseBody<'a> {
    pub fn new(exchange: &'a Exchange, body: Incoming, piece_timeout: Duration, max_bytes: u64) -> Self {
        let deadline = Instant::now() + WHOLE_RESPONSE_TIMEOUT;
        Self { exchange, body, piece: Bytes::new(), piece_timeout, deadline, max_bytes, read_bytes: 0 }
    }

    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let timeout = self.piece_timeout.min(self.deadline.saturating_duration_since(Instant::now()));
            let Exchange { runtime, tasks } = self.exchange;
            let body = &mut self.body;
            let frame = tasks
                .block_on(runtime, async { tokio::time::timeout(timeout, body.frame()).await })
                .map_err(|_| {
                    io::Error::new(io::ErrorKind::TimedOut, "the next piece did not come in time")
                })?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(io::Error::other(error)),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    _ => {}
                },
            }
        }
    }
}

impl Read for ResponseBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let Some(piece) = self.next_piece()? else { return Ok(0) };
            self.read_bytes += piece.len() as u64;
            if self.read_bytes > self.max_bytes {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("it is longer than {} bytes", self.max_bytes),
                ));
            }
            self.piece = piece;
        }
        let length = self.piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
