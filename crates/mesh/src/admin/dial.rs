//! Connections to an admin port. The caller supplies them: only it knows the port and how to reach it.

use super::error::AdminCause;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

pub trait Dial: fmt::Debug + Send + Sync {
    fn dial(&self, timeout: Duration) -> Result<Connection, AdminCause>;

    /// `curl` arguments for `path`, to be run from a place that can reach the port.
    fn curl_arguments(&self, path: &str) -> Vec<String>;
}

#[derive(Debug)]
pub enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A port reachable by host name or address.
#[derive(Clone, Debug)]
pub struct TcpPort {
    /// `host:port`.
    pub authority: String,
}

impl Dial for TcpPort {
    fn dial(&self, timeout: Duration) -> Result<Connection, AdminCause> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in self.authority.to_socket_addrs().map_err(AdminCause::Connect)? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => return Ok(Connection::Tcp(stream)),
                Err(error) => last = error,
            }
        }
        Err(AdminCause::Connect(last))
    }

    fn curl_arguments(&self, path: &str) -> Vec<String> {
        vec![format!("http://{}{path}", self.authority)]
    }
}

#[derive(Clone, Debug)]
pub struct UnixSocket(pub PathBuf);

impl Dial for UnixSocket {
    /// Does not wait for room in the listener's accept queue.
    fn dial(&self, _timeout: Duration) -> Result<Connection, AdminCause> {
        let connected = || -> io::Result<UnixStream> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            connect(&socket, &SocketAddrUnix::new(&self.0)?)?;
            Ok(socket.into())
        };
        connected().map(Connection::Unix).map_err(AdminCause::Connect)
    }

    fn curl_arguments(&self, path: &str) -> Vec<String> {
        let socket = self.0.to_string_lossy().into_owned();
        vec!["--unix-socket".to_owned(), socket, format!("http://localhost{path}")]
    }
}
