//! What a running Envoy says of itself, asked over its admin interface: a socket of the file system, or a port on the
//! loopback of its pod.
//!
//! Every question is bounded in time and in the size of its answer, and every error names the proxy. Other components
//! that answer HTTP in a pod are asked in the same way ([`Admin::ask`]); hyper and tokio stay inside.

#[cfg(test)]
mod tests;

use super::answer::LongAnswer;
use crate::life::SIGN_WITHIN;
use crate::namespace::Namespace;
use crate::pod::Pod;
use experiment::schema::ProxyHeap;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;

/// How long an answer may take. A proxy under full load answers in milliseconds: its main thread does little else.
const ANSWER_LIMIT: Duration = SIGN_WITHIN;

/// How long the first piece of a long answer may take: a proxy makes the whole of it first, at some 15 MB a second.
const LONG_ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// How long an answer may be that is taken as a whole, bytes: what a proxy says of itself has some kilobytes.
const ANSWER_BYTES: usize = 16 << 20;

/// How long the counters of a proxy may be, bytes. Those of our configurations are some 5 kB. A user may have a proxy keep all
/// of them: some hundred for each cluster, each of some hundred bytes, of 20 000 clusters.
const COUNTERS_BYTES: u64 = 256 << 20;

/// How long a long answer may be, bytes: the configuration of the largest gateways has some hundreds of megabytes.
const LONG_ANSWER_BYTES: u64 = 4 << 30;

/// A question that a proxy did not answer as it must.
#[derive(Debug, thiserror::Error)]
#[error("ask {proxy} for {path}")]
pub struct AdminError {
    /// The component that was asked.
    pub proxy: String,
    /// What it was asked for, such as `/stats`.
    pub path: String,
    /// What was wrong.
    #[source]
    pub cause: AdminCause,
}

/// What was wrong with an answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminCause {
    /// The socket could not be opened, or the runtime not be made.
    #[error("open its admin socket")]
    Connect(#[source] io::Error),
    /// Its pod is gone.
    #[error("enter its pod")]
    Pod(#[source] experiment::environment::EnvironmentError),
    /// The exchange broke off, or was no HTTP.
    #[error("no whole answer")]
    Exchange(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It had not answered before.
    #[error("not asked again: {0}")]
    NotAsked(String),
    /// Nothing came in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// It is longer than anything that is asked for.
    #[error("its answer is longer than {0} bytes")]
    TooLong(usize),
    /// Another status than 200.
    #[error("it answered with status {0}")]
    Status(u16),
    /// The log that it counts in could not be read.
    #[error("read its log")]
    Log(#[source] io::Error),
    /// The answer is not of the expected shape.
    #[error("an answer that cannot be read")]
    Shape(#[source] serde_json::Error),
}

/// Asks one proxy.
#[derive(Clone, Debug)]
pub struct Admin {
    proxy: String,
    place: Place,
    limit: Duration,
}

/// What an answer is bounded by that is read as it comes.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    begins_within: Duration,
    at_most_bytes: u64,
}

/// Where it answers.
#[derive(Clone, Debug)]
enum Place {
    /// At a socket of the file system.
    Socket(PathBuf),
    /// At a port on the loopback of a pod.
    Loopback(Arc<Namespace>, u16),
}

/// An open connection to it.
type Connected = Box<dyn Stream>;

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What a proxy runs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct ServerInfo {
    /// Commit, version, cleanliness, build type and TLS library, separated by slashes.
    pub version: String,
    /// `LIVE` once it serves.
    pub state: String,
}

impl Admin {
    /// Asks the component `proxy` at this socket.
    #[must_use]
    pub fn new(proxy: impl Into<String>, socket: &Path) -> Self {
        Self { proxy: proxy.into(), place: Place::Socket(socket.to_path_buf()), limit: ANSWER_LIMIT }
    }

    /// Asks the component `proxy` at this port on the loopback of its pod.
    #[must_use]
    pub fn in_pod(proxy: impl Into<String>, pod: &Pod, port: u16) -> Self {
        let place = Place::Loopback(Arc::clone(pod.namespace()), port);
        Self { proxy: proxy.into(), place, limit: ANSWER_LIMIT }
    }

    /// The arguments of `curl` that ask it for `path` from within its pod.
    #[must_use]
    pub fn curl_arguments(&self, path: &str) -> Vec<String> {
        match &self.place {
            Place::Socket(socket) => {
                let socket = socket.to_string_lossy().into_owned();
                vec!["--unix-socket".to_owned(), socket, format!("http://localhost{path}")]
            }
            Place::Loopback(_, port) => vec![format!("http://localhost:{port}{path}")],
        }
    }

    /// Whether it serves: `Ok(false)` while it starts.
    ///
    /// # Errors
    /// Where it answers neither yes nor "not yet".
    pub fn ready(&self) -> Result<bool, AdminError> {
        match self.ask("/ready") {
            Ok(_) => Ok(true),
            Err(AdminError { cause: AdminCause::Status(503) | AdminCause::Connect(_), .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether it gives no answer of any kind in time, be it a refusal.
    pub(crate) fn is_silent(&self, path: &str) -> bool {
        match self.ask(path).map_err(|error| error.cause) {
            Err(AdminCause::TimedOut(_)) => true,
            Err(AdminCause::Connect(error)) => error.kind() == io::ErrorKind::TimedOut,
            _ => false,
        }
    }

    /// All counters by name.
    ///
    /// # Errors
    /// Where there is no answer in time, or not of that shape.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        self.counters_at("/stats?format=json&type=Counters")
    }

    /// The counters that a question about statistics gives.
    pub(super) fn counters_at(&self, path: &str) -> Result<BTreeMap<String, u64>, AdminError> {
        let of_counters = Bounds { begins_within: self.limit, at_most_bytes: COUNTERS_BYTES };
        let answer: Statistics =
            self.read_bounded(path, of_counters, |answer| serde_json::from_reader(BufReader::new(answer)))?;
        Ok(answer.stats.into_iter().map(|counter| (counter.name, counter.value)).collect())
    }

    /// Version and state.
    ///
    /// # Errors
    /// Where there is no answer in time, or not of that shape.
    pub fn server_info(&self) -> Result<ServerInfo, AdminError> {
        self.ask_json("/server_info")
    }

    /// Its heap.
    ///
    /// # Errors
    /// Where there is no answer in time, or not of that shape.
    pub fn heap(&self) -> Result<ProxyHeap, AdminError> {
        let answer: Memory = self.ask_json("/memory")?;
        Ok(ProxyHeap { allocated_bytes: answer.allocated.0, heap_bytes: answer.heap_size.0 })
    }

    /// An answer in JSON.
    ///
    /// # Errors
    /// Where there is no answer in time, or not of that shape.
    pub fn ask_json<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<T, AdminError> {
        let body = self.ask(path)?;
        serde_json::from_slice(&body).map_err(|error| self.error(path, AdminCause::Shape(error)))
    }

    /// An answer in JSON that grows with the mesh, read as it comes.
    ///
    /// # Errors
    /// Where it does not begin within a minute, or is not of that shape.
    pub(crate) fn ask_long_json<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<T, AdminError> {
        self.read(path, |answer| serde_json::from_reader(BufReader::new(answer)))
    }

    /// An answer that grows with the mesh, as a whole.
    ///
    /// # Errors
    /// Where it does not begin within a minute, or breaks off.
    pub(crate) fn ask_long(&self, path: &str) -> Result<Vec<u8>, AdminError> {
        self.read(path, |answer| {
            let mut whole = Vec::new();
            answer.read_to_end(&mut whole).map_err(serde_json::Error::io)?;
            Ok(whole)
        })
    }

    /// The body of the answer, as it comes.
    ///
    /// # Errors
    /// Where there is no answer with status 200 in time.
    pub fn ask(&self, path: &str) -> Result<Bytes, AdminError> {
        let runtime = self.runtime(path)?;
        let connected = self.connect(&runtime, path)?;
        let answer = runtime.block_on(async {
            tokio::time::timeout(self.limit, get(connected, path))
                .await
                .unwrap_or(Err(AdminCause::TimedOut(self.limit)))
        });
        answer.map_err(|cause| self.error(path, cause))
    }

    /// What `read` makes of an answer that may be long, as it comes.
    pub(crate) fn read<T>(
        &self,
        path: &str,
        read: impl FnOnce(&mut dyn Read) -> Result<T, serde_json::Error>,
    ) -> Result<T, AdminError> {
        let long = Bounds { begins_within: LONG_ANSWER_LIMIT, at_most_bytes: LONG_ANSWER_BYTES };
        self.read_bounded(path, long, read)
    }

    fn read_bounded<T>(
        &self,
        path: &str,
        bounds: Bounds,
        read: impl FnOnce(&mut dyn Read) -> Result<T, serde_json::Error>,
    ) -> Result<T, AdminError> {
        let runtime = self.runtime(path)?;
        let connected = self.connect(&runtime, path)?;
        let Bounds { begins_within, at_most_bytes } = bounds;
        let response = runtime.block_on(async {
            tokio::time::timeout(begins_within, request(connected, path))
                .await
                .unwrap_or(Err(AdminCause::TimedOut(begins_within)))
        });
        let body = response.map_err(|cause| self.error(path, cause))?.into_body();
        read(&mut LongAnswer::new(&runtime, body, self.limit, at_most_bytes)).map_err(|error| {
            let cause = if error.is_io() {
                AdminCause::Exchange(io::Error::from(error).into())
            } else {
                AdminCause::Shape(error)
            };
            self.error(path, cause)
        })
    }

    fn runtime(&self, path: &str) -> Result<Runtime, AdminError> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| self.error(path, AdminCause::Connect(error)))
    }

    fn connect(&self, runtime: &Runtime, path: &str) -> Result<Connected, AdminError> {
        let connected = match &self.place {
            Place::Socket(socket) => runtime.block_on(async {
                tokio::time::timeout(self.limit, tokio::net::UnixStream::connect(socket))
                    .await
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                    .map(|stream| Box::new(stream) as Connected)
                    .map_err(AdminCause::Connect)
            }),
            Place::Loopback(namespace, port) => connect_in(namespace, *port, self.limit).and_then(|stream| {
                let _runtime = runtime.enter();
                let stream = tokio::net::TcpStream::from_std(stream).map_err(AdminCause::Connect)?;
                Ok(Box::new(stream) as Connected)
            }),
        };
        connected.map_err(|cause| self.error(path, cause))
    }

    pub(crate) fn error(&self, path: &str, cause: AdminCause) -> AdminError {
        let path = path.split('?').next().unwrap_or(path).to_owned();
        AdminError { proxy: self.proxy.clone(), path, cause }
    }
}

/// Connects within a pod. Tokio's own connecting would happen in our namespace.
fn connect_in(namespace: &Namespace, port: u16, limit: Duration) -> Result<TcpStream, AdminCause> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let connected = namespace.run(move || TcpStream::connect_timeout(&address, limit));
    let stream = connected.map_err(AdminCause::Pod)?.map_err(AdminCause::Connect)?;
    stream.set_nonblocking(true).map_err(AdminCause::Connect)?;
    Ok(stream)
}

async fn get(connected: Connected, path: &str) -> Result<Bytes, AdminCause> {
    let body = request(connected, path).await?.into_body();
    let body = Limited::new(body, ANSWER_BYTES).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            AdminCause::TooLong(ANSWER_BYTES)
        } else {
            AdminCause::Exchange(error)
        }
    })?;
    Ok(body.to_bytes())
}

/// An answer with status 200, its body still to come.
async fn request(connected: Connected, path: &str) -> Result<Response<Incoming>, AdminCause> {
    let exchange = |error: hyper::Error| AdminCause::Exchange(Box::new(error));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(connected)).await.map_err(exchange)?;
    // It ends with the sender and the body, at the latest when the runtime is dropped at the end of the question.
    tokio::spawn(connection);
    let request = Request::get(path)
        .header("host", "admin")
        .body(Empty::<Bytes>::new())
        .map_err(|error| AdminCause::Exchange(Box::new(error)))?;
    let response = sender.send_request(request).await.map_err(exchange)?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(AdminCause::Status(status.as_u16()));
    }
    Ok(response)
}

/// `/stats?format=json&type=Counters`.
#[derive(Deserialize)]
struct Statistics {
    stats: Vec<Counter>,
}

#[derive(Deserialize)]
struct Counter {
    name: String,
    value: u64,
}

/// `/memory`: protobuf's JSON, which writes 64-bit numbers as strings.
#[derive(Deserialize)]
struct Memory {
    allocated: Quoted,
    heap_size: Quoted,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Quoted(u64);

impl TryFrom<String> for Quoted {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}
