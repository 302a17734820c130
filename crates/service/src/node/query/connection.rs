//! One connection to a database: TLS, the greeting, and commands one after the other.

use super::bson::{Document, Value};
use super::error::QueryError;
use super::message::{self, Command, HEADER_BYTES};
use super::response::Response;
use crate::node::application::Place;
use crate::node::tally::WorkerTally;
use rustls::pki_types::ServerName;
use std::env;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Waker};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const NAME: &str = "meshmeter";
/// Initial room for a response; more is taken as it arrives, whatever length it claims.
const RESPONSE_BYTES: usize = 64 * 1024;

/// How to reach a database, and where its connections are counted.
pub(super) struct Target {
    pub place: Place,
    pub server_name: ServerName<'static>,
    pub tls: TlsConnector,
    pub tally: Arc<WorkerTally>,
    /// Index of the database among the worker's calls.
    pub index: usize,
}

pub(super) struct Connection {
    stream: TlsStream<TcpStream>,
    request_id: i32,
    _counted: Counted,
}

/// Counts a connection from the moment that a proxy on its path would, before TLS.
struct Counted(Arc<WorkerTally>, usize);

impl Counted {
    fn new(target: &Target) -> Self {
        let calls = &target.tally.calls[target.index];
        calls.connections.add(1);
        calls.connections_open.fetch_add(1, Relaxed);
        Self(Arc::clone(&target.tally), target.index)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.calls[self.1].connections_open.fetch_sub(1, Relaxed);
    }
}

impl Connection {
    pub(super) async fn open(target: &Target) -> Result<Self, QueryError> {
        let stream = TcpStream::connect((target.place.host.as_str(), target.place.port)).await?;
        let counted = Counted::new(target);
        stream.set_nodelay(true)?;
        let stream = target.tls.connect(target.server_name.clone(), stream).await?;
        let mut connection = Self { stream, request_id: 0, _counted: counted };
        connection.run(&greeting()).await?;
        Ok(connection)
    }

    /// False if the database has closed the connection, or sent what nobody asked for.
    pub(super) fn is_usable(&mut self) -> bool {
        let mut room = [0];
        let mut buffer = ReadBuf::new(&mut room);
        let stream = Pin::new(&mut self.stream);
        stream.poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer).is_pending()
    }

    /// Sends a command and reads its response. After an error of the connection, or if dropped before its end,
    /// the connection is not usable.
    pub(super) async fn run(&mut self, command: &Command) -> Result<Response, QueryError> {
        self.request_id = self.request_id.wrapping_add(1);
        self.stream.write_all(&command.encode(self.request_id)).await?;
        self.stream.flush().await?;
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header).await.map_err(closed)?;
        let length = message::bytes_after(header, self.request_id)?;
        let mut message = Vec::with_capacity(length.min(RESPONSE_BYTES));
        (&mut self.stream).take(length as u64).read_to_end(&mut message).await.map_err(closed)?;
        if message.len() < length {
            return Err(closed(io::ErrorKind::UnexpectedEof.into()).into());
        }
        Response::read(message::document(&message)?)
    }
}

fn closed(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return io::Error::new(error.kind(), "the database closed the connection");
    }
    error
}

/// The first command of a connection, which every server knows: the program's name, for the server's log.
fn greeting() -> Command {
    let name = Document::new().with("name", Value::String(NAME));
    let driver = name.clone().with("version", Value::String(env!("CARGO_PKG_VERSION")));
    let os = Document::new().with("type", Value::String(env::consts::OS));
    let client = Document::new()
        .with("application", Value::Document(name.as_bytes()))
        .with("driver", Value::Document(driver.as_bytes()))
        .with("os", Value::Document(os.as_bytes()));
    Command::new(
        Document::new()
            .with("isMaster", Value::Int32(1))
            .with("helloOk", Value::Boolean(true))
            .with("client", Value::Document(client.as_bytes()))
            .with("$db", Value::String("admin")),
    )
}
