//! A connection: TLS if the stub uses it, HTTP/2, streams.

use crate::behaviour::Behaviour;
use crate::flood;
use crate::state::State;
use crate::stream;
use crate::watched::Watched;
use h2::Reason;
use h2::server::{self, Connection};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(24 * 3600);
/// Receive window of a stream and of a connection.
const WINDOW_BYTES: u32 = 1 << 20;

/// Serves a connection until the client or the stub closes it.
pub(crate) async fn serve(
    state: Arc<State>,
    behaviour: Behaviour,
    tls: Option<TlsAcceptor>,
    mut socket: TcpStream,
) -> io::Result<()> {
    let mut disconnects = state.disconnects();
    let served = async {
        match behaviour {
            Behaviour::CloseAtOnce => return Ok(()),
            Behaviour::SilentConnection => return std::future::pending().await,
            Behaviour::Http1 => {
                return socket.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
            }
            Behaviour::Flood(flood) => return flood::serve(flood, socket).await,
            _ => {}
        }
        socket.set_nodelay(true)?;
        match tls {
            Some(tls) => serve_http2(state, behaviour, tls.accept(socket).await?).await,
            None => serve_http2(state, behaviour, socket).await,
        }
    };
    tokio::select! {
        result = served => result,
        _ = disconnects.changed() => Ok(()),
    }
}

async fn serve_http2<T>(state: Arc<State>, behaviour: Behaviour, transport: T) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let node = Arc::new(OnceLock::new());
    let (max_bytes, lifetime) = match behaviour {
        Behaviour::CloseAfterBytes(bytes) => (bytes, FOREVER),
        Behaviour::GoAway(age) => (usize::MAX, age),
        _ => (usize::MAX, FOREVER),
    };
    let end = Instant::now() + lifetime;
    let transport = Watched::new(transport, state.log.clone(), Arc::clone(&node), max_bytes);
    let mut builder = server::Builder::new();
    builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
    let mut connection = builder.handshake(transport).await.map_err(io::Error::other)?;
    loop {
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    let (state, node) = (Arc::clone(&state), Arc::clone(&node));
                    tokio::spawn(stream::serve(state, behaviour.clone(), node, request, respond));
                }
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(()),
            },
            () = tokio::time::sleep_until(end) => return shut_down(connection).await,
        }
    }
}

/// Closes the connection with GOAWAY.
async fn shut_down<T>(mut connection: Connection<T, bytes::Bytes>) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    connection.abrupt_shutdown(Reason::NO_ERROR);
    std::future::poll_fn(|context| connection.poll_closed(context)).await.map_err(io::Error::other)
}
