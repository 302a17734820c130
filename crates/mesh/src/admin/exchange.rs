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

/// Bounds of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Timeout of the beginning of its body.
    pub begin: Duration,
    /// Timeout of each further piece.
    pub piece: Duration,
    /// Timeout of the whole body; absent: it may take any time as long as pieces arrive.
    pub whole: Option<Duration>,
    pub bytes: u64,
}

/// Body of a response. Reading fails if the next piece does not arrive in time.
#[derive(Debug)]
pub struct ResponseBody {
    body: Incoming,
    runtime: Rc<Runtime>,
    /// The task that drives the connection.
    tasks: LocalSet,
    piece: Bytes,
    deadline: Option<Instant>,
    limits: Limits,
    read_bytes: u64,
}

impl ResponseBody {
    /// Sends a request, as a POST if it has a message.
    pub(super) fn request(
        connection: Connection,
        path: &str,
        message: Option<Bytes>,
        limits: Limits,
    ) -> Result<Self> {
        let (runtime, tasks) = (runtime().map_err(AdminCause::Connect)?, LocalSet::new());
        let bounded = async { tokio::time::timeout(limits.begin, request(connection, path, message)).await };
        let begun = tasks.block_on(&runtime, bounded);
        let body = begun.map_err(|_| AdminCause::TimedOut(limits.begin))??.into_body();
        let deadline = limits.whole.map(|timeout| Instant::now() + timeout);
        Ok(Self { body, runtime, tasks, piece: Bytes::new(), deadline, limits, read_bytes: 0 })
    }

    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = left.map_or(self.limits.piece, |left| left.min(self.limits.piece));
            let body = &mut self.body;
            let next = async { tokio::time::timeout(timeout, body.frame()).await };
            let frame = self.tasks.block_on(&self.runtime, next).map_err(|_| {
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

impl Read for ResponseBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let Some(piece) = self.next_piece()? else { return Ok(0) };
            self.read_bytes += piece.len() as u64;
            if self.read_bytes > self.limits.bytes {
                let reason = format!("it is longer than {} bytes", self.limits.bytes);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
            }
            self.piece = piece;
        }
        let length = self.piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
