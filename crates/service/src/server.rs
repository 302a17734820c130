//! Binding and running a server: from settings to workers.

use crate::counters::{Counters, Tally};
use crate::http3::quic::{self, Quic};
use crate::settings::{Listener, MAX_THREADS, Protocol, STATUSES, Settings};
use crate::shared::Shared;
use crate::worker::{Acceptor, Inbox, Reception, Worker};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, getrlimit};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Listen backlog: connections that the kernel completes before they are accepted; `somaxconn` may lower it.
const BACKLOG: i32 = 4096;
/// Maximum number of listeners: anything greater is taken for a typo.
const MAX_LISTENERS: usize = 16;
/// Open files other than connections: standard streams, listeners, and per worker an epoll set, a timer and
/// an eventfd.
const OTHER_FILES: usize = 32;
/// Maximum number of connections unless the settings or the limit on open files say less.
const DEFAULT_MAX_CONNECTIONS: usize = 65_536;

/// A listening server; [`Server::run`] serves.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<Listener>,
    workers: Vec<Worker>,
    inboxes: Arc<[Inbox]>,
    tallies: Arc<[Arc<Tally>]>,
}

/// Errors that prevent a server from starting or running.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings are invalid.
    #[error("{0}")]
    Settings(String),
    /// The address cannot be bound.
    #[error("listen on {address}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// Another kernel call that a server needs failed.
    #[error("{operation}")]
    Kernel {
        /// The operation that failed.
        operation: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
}

impl ServeError {
    /// What to do about it, if there is a remedy.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        let Self::Listen { source, .. } = self else { return None };
        match source.kind() {
            std::io::ErrorKind::AddrInUse => {
                Some("something listens there already: choose another port, or port 0 for any free one")
            }
            std::io::ErrorKind::PermissionDenied => {
                Some("low ports need root or CAP_NET_BIND_SERVICE: choose a port from 1024 up")
            }
            std::io::ErrorKind::AddrNotAvailable => {
                Some("this machine has no such address: `ip address` lists them, 0.0.0.0 stands for all")
            }
            _ => None,
        }
    }
}

impl Server {
    /// Listens, and acquires everything needed to serve. From here on the kernel accepts connections, which
    /// are answered once the server runs; stalls count from here.
    ///
    /// # Errors
    /// Returns an error if the settings are invalid, the address cannot be bound, or a required kernel call
    /// fails.
    pub fn bind(settings: &Settings) -> Result<Self, ServeError> {
        check(settings)?;
        let receptions = receptions(settings)?;
        let mut listeners = settings.listeners.clone();
        let mut sockets = Vec::new();
        for listener in &mut listeners {
            let failed =
                |source: Errno| ServeError::Listen { address: listener.address, source: source.into() };
            let socket = listen(listener.address).map_err(failed)?;
            let address = rustix::net::getsockname(&socket).and_then(SocketAddr::try_from);
            listener.address = address.map_err(failed)?;
            sockets.push(socket);
        }
        let mut quic = bind_datagrams(settings, &listeners)?.into_iter();
        let tallies: Arc<[Arc<Tally>]> = (0..settings.threads).map(|_| Arc::default()).collect();
        let inboxes: io::Result<Vec<Inbox>> = (0..settings.threads).map(|_| Inbox::new()).collect();
        let inboxes: Arc<[Inbox]> =
            inboxes.map_err(|error| kernel("create event descriptors", error.into()))?.into();
        let max_connections = max_connections(settings);
        let mut acceptor = Some(Acceptor {
            listeners: sockets,
            max_connections,
            inboxes: Arc::clone(&inboxes),
            tallies: Arc::clone(&tallies),
        });
        let started = Instant::now();
        let workers: io::Result<Vec<Worker>> = (0..settings.threads)
            .map(|index| {
                let shared = Shared::new(settings, index, &tallies, started, quic.next());
                let reception = (&receptions, max_connections);
                Worker::new(index, settings, &inboxes, acceptor.take(), reception, shared)
            })
            .collect();
        let workers =
            workers.map_err(|error| kernel("set up epoll as Linux has it from 5.11 on", error.into()))?;
        Ok(Self { listeners, workers, inboxes, tallies })
    }

    /// The listeners, with the ports that were selected, in the order of the settings.
    #[must_use]
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Serves until `stop` is readable or closed at its other end (a pipe, an eventfd), then closes every
    /// connection and returns the counters. The first worker runs on the calling thread.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started or the kernel cannot wait for events.
    pub fn run(self, stop: impl AsFd) -> Result<Counters, ServeError> {
        let Self { workers, inboxes, tallies, .. } = self;
        let (stop, inboxes) = (stop.as_fd(), &*inboxes);
        let end_all = || inboxes.iter().for_each(Inbox::end);
        let serve = |worker: Worker| {
            let ended = worker.run(stop);
            if ended.is_err() {
                end_all();
            }
            ended.map_err(|error| kernel("wait for events", error.into()))
        };
        std::thread::scope(|scope| {
            let mut workers = workers.into_iter();
            let first = workers.next();
            let mut threads = Vec::new();
            for (index, worker) in workers.enumerate() {
                let name = format!("serve-{}", index + 1);
                let thread =
                    std::thread::Builder::new().name(name).spawn_scoped(scope, move || serve(worker));
                threads.push(thread.map_err(|error| {
                    end_all();
                    kernel("start a thread", error)
                })?);
            }
            first.map_or(Ok(()), serve)?;
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(Counters::sum(&tallies))
        })
    }
}

pub(crate) fn kernel(operation: &'static str, source: std::io::Error) -> ServeError {
    ServeError::Kernel { operation, source }
}

fn check(settings: &Settings) -> Result<(), ServeError> {
    let problem = if !(1..=MAX_LISTENERS).contains(&settings.listeners.len()) {
        format!("expected 1 to {MAX_LISTENERS} listeners, not {}", settings.listeners.len())
    } else if !(1..=MAX_THREADS).contains(&settings.threads) {
        format!("expected 1 to {MAX_THREADS} threads, not {}", settings.threads)
    } else if !STATUSES.contains(&settings.answer.status) {
        format!(
            "expected a status from {} to {}, not {}",
            STATUSES.start(),
            STATUSES.end(),
            settings.answer.status
        )
    } else if !(0.0..=1.0).contains(&settings.answer.error_fraction) {
        format!("expected an error rate from 0 to 1, not {}", settings.answer.error_fraction)
    } else if settings.max_connections == Some(0) {
        "expected at least one connection".to_owned()
    } else if settings.idle_timeout.is_zero() {
        "expected an idle timeout above zero".to_owned()
    } else {
        return Ok(());
    };
    Err(ServeError::Settings(problem))
}

/// How the connections of each listener are handled.
fn receptions(settings: &Settings) -> Result<Arc<[Reception]>, ServeError> {
    let of = |listener: &Listener| {
        let tls = match (&settings.tls, listener.protocol) {
            _ if !listener.tls => None,
            (None, _) => {
                return Err(ServeError::Settings(format!("expected a certificate and a key for {listener}")));
            }
            (Some(tls), Protocol::Http) => Some(tls.listener(&[b"h2", b"http/1.1"])),
            (Some(tls), Protocol::Tcp) => Some(tls.listener(&[])),
        };
        Ok(Reception { protocol: listener.protocol, tls })
    };
    settings.listeners.iter().map(of).collect()
}

/// An endpoint of HTTP/3 for each worker; none if there is no HTTP/3.
fn bind_datagrams(settings: &Settings, listeners: &[Listener]) -> Result<Vec<Quic>, ServeError> {
    if !settings.http3 {
        return Ok(Vec::new());
    }
    let mut of_https = listeners.iter().filter(|one| one.protocol == Protocol::Http && one.tls);
    let (Some(listener), None, Some(tls)) = (of_https.next(), of_https.next(), &settings.tls) else {
        return Err(ServeError::Settings("expected one listener for HTTP with TLS beside HTTP/3".to_owned()));
    };
    let config = quic::config(tls.listener(&[::http3::ALPN]))
        .ok_or_else(|| ServeError::Settings("HTTP/3 needs TLS 1.3".to_owned()))?;
    let failed = |source: Errno| ServeError::Listen { address: listener.address, source: source.into() };
    let bind = |_| {
        let socket = quic::listen(listener.address, settings.threads > 1).map_err(failed)?;
        Ok(Quic::new(socket, Arc::clone(&config)))
    };
    (0..settings.threads).map(bind).collect()
}

pub(crate) fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Connections of an earlier server in TIME_WAIT do not block the address; a listening server does.
    sockopt::set_socket_reuseaddr(&listener, true)?;
    // Accepted sockets inherit it. A response must not wait for the acknowledgement of the previous one.
    sockopt::set_tcp_nodelay(&listener, true)?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// As many as requested, but never more than the limit on open files allows.
fn max_connections(settings: &Settings) -> usize {
    let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
    let others = OTHER_FILES + 3 * settings.threads;
    let possible = files.map_or(DEFAULT_MAX_CONNECTIONS, |files| files.saturating_sub(others).max(1));
    settings.max_connections.unwrap_or(DEFAULT_MAX_CONNECTIONS).min(possible)
}
