//! Connections from the machine into a lab: a port of the machine's loopback that leads to a port of a pod.
//!
//! There is no route between the two networks. However, a socket stays in the network namespace in which it
//! was created, even if its process moves. So one is bound to 127.0.0.1 before the lab is entered
//! ([`crate::enter_after`]), and its connections are copied to and from connections made within a pod.
//! [`forward`] does this for a process that has itself entered a pod's network.
//!
//! A port that leads into a lab is open to every user of the machine: the server behind it must authenticate
//! clients.

use crate::Result;
use crate::sandbox::namespace::Namespace;
use crate::sandbox::pod::Pod;
use experiment::environment::EnvironmentError;
use futures_util::future::{Either, select};
use rustix::event::{PollFd, PollFlags};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};

/// Limit per port; further connections wait. Each connection takes two files, and a process may open some
/// thousands.
const MAX_CONNECTIONS: usize = 256;

/// A connection within a pod takes microseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after accepting a connection failed because no file descriptors were left.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A port of the machine's loopback that leads to a port of a pod. Dropping it closes the port and its
/// connections.
#[derive(Debug)]
pub struct PortForward {
    address: SocketAddr,
    /// Dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PortForward {
    /// Forwards connections of `listener` to `port` on a pod's loopback.
    pub(crate) fn open(listener: TcpListener, pod: &Pod, port: u16) -> Result<Self> {
        let operation = format!("let a port of this machine lead to port {port} of pod {}", pod.name());
        let failed = |error: io::Error| EnvironmentError::new(operation.clone(), error);
        let address = listener.local_addr().map_err(failed)?;
        let namespace = Arc::clone(pod.namespace());
        let runtime = runtime().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(format!("forward {port}")).spawn(move || {
            let passing = pass_on(listener, || connect_in(Arc::clone(&namespace), port));
            // `stopped` resolves, with an error, when its sender is dropped; `passing` runs as long as its
            // port is open.
            runtime.block_on(async { drop(select(pin!(stopped), pin!(passing)).await) });
            // Connections that are still being made are no longer needed.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(failed)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PortForward {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread panics only if tokio does; nothing can be done about that here.
            let _ = thread.join();
        }
    }
}

/// Listens on the calling thread's loopback. With port 0 the kernel chooses the port.
pub fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let port = if port == 0 { "a port".to_owned() } else { format!("port {port}") };
        EnvironmentError::new(format!("listen on {port} of this machine's loopback"), error)
    })
}

/// Forwards connections from `listener` to `port` on the loopback of the calling thread's current network,
/// until one of the files becomes readable. Returns that file's index.
pub fn forward(listener: TcpListener, port: u16, until: Vec<OwnedFd>) -> Result<usize> {
    let operation = format!("pass connections on to port {port}");
    let failed = |error: io::Error| EnvironmentError::new(operation.clone(), error);
    let connect = || tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let runtime = runtime().map_err(failed)?;
    let ended = runtime.block_on(async {
        let ends = tokio::task::spawn_blocking(move || first_readable(&until));
        match select(ends, pin!(pass_on(listener, connect))).await {
            Either::Left((first, _)) => first.map_err(io::Error::other)?,
            Either::Right((ended, _)) => ended.map(|never| match never {}),
        }
    });
    // If forwarding itself has failed, no file becomes readable.
    runtime.shutdown_background();
    ended.map_err(failed)
}

fn first_readable(files: &[OwnedFd]) -> io::Result<usize> {
    let mut polled: Vec<PollFd<'_>> = files.iter().map(|file| PollFd::new(file, PollFlags::IN)).collect();
    loop {
        match rustix::event::poll(&mut polled, None) {
            Err(rustix::io::Errno::INTR) => {}
            result => drop(result?),
        }
        if let Some(first) = polled.iter().position(|file| !file.revents().is_empty()) {
            return Ok(first);
        }
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Connects within a pod. tokio's own connect would happen in our namespace.
async fn connect_in(namespace: Arc<Namespace>, port: u16) -> io::Result<tokio::net::TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let work = move || namespace.run(move || TcpStream::connect_timeout(&address, CONNECT_TIMEOUT));
    let connected = tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?;
    let stream = connected.map_err(io::Error::other)??;
    stream.set_nonblocking(true)?;
    tokio::net::TcpStream::from_std(stream)
}

/// Connects each accepted connection to one from `connect`. Ends only with the listener.
async fn pass_on<C, F>(listener: TcpListener, connect: C) -> io::Result<Infallible>
where
    C: Fn() -> F,
    F: Future<Output = io::Result<tokio::net::TcpStream>> + Send + 'static,
{
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
        let Ok((mut outside, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            continue;
        };
        let connected = connect();
        tokio::spawn(async move {
            let _place = place;
            // If nothing listens inside, the connection is closed: like a refused connection, a moment later.
            if let Ok(mut inside) = connected.await {
                // Small messages go back and forth and must not wait for each other.
                let _ = outside.set_nodelay(true);
                let _ = inside.set_nodelay(true);
                // Either side may break off; the other then sees its connection closed.
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    fn connections_are_forwarded_both_ways_until_stopped() {
        let service = listen(0).expect("there are ports");
        let port = service.local_addr().expect("it is bound").port();
        let listener = listen(0).expect("there are ports");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        let (_silent, never) = UnixStream::pair().expect("a pair of sockets");
        let forwarding =
            std::thread::spawn(move || forward(listener, port, vec![never.into(), stopped.into()]));

        let mut client = TcpStream::connect(address).expect("it listens");
        client.write_all(b"there").expect("it is open");
        client.shutdown(std::net::Shutdown::Write).expect("it is open");
        let (mut served, _) = service.accept().expect("it was passed on");
        let mut heard = String::new();
        served.read_to_string(&mut heard).expect("it ends");
        assert_eq!(heard, "there");
        served.write_all(b"and back").expect("only the other half was closed");
        drop(served);
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it ends");
        assert_eq!(answer, "and back");

        // Without a listener, the connection is closed rather than left hanging.
        drop(service);
        let mut client = TcpStream::connect(address).expect("it listens still");
        let mut answer = Vec::new();
        // Closed or reset: both inform the client.
        let _ = client.read_to_end(&mut answer);
        assert!(answer.is_empty());

        drop(stop);
        let ended = forwarding.join().expect("it does not panic").expect("it was stopped");
        assert_eq!(ended, 1, "the second file told it to end");
        assert!(TcpStream::connect(address).is_err(), "the port is closed");
    }

    #[test]
    fn port_in_use_is_named_in_error() {
        let taken = listen(0).expect("there are ports");
        let port = taken.local_addr().expect("it is bound").port();
        let error = listen(port).expect_err("it is taken");
        assert_eq!(error.to_string(), format!("listen on port {port} of this machine's loopback"));
    }
}
