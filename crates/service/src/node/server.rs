//! Binding and running: from settings to workers, and a shutdown that loses no request.

use super::admin::{self, Admin};
use super::application::Application;
use super::readiness::{Readiness, fill};
use super::runtime::{on_runtime, watched};
use super::settings::NodeSettings;
use super::stopping::Stopping;
use super::stream::CountedStream;
use super::tally::{NodeTally, WorkerTally};
use super::worker::Worker;
use super::{http1, tcp};
use crate::counters::Counters;
use crate::server::{ServeError, kernel, listen};
use experiment::protocol::Protocol;
use futures_util::future::{Either, select};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

/// Pause before accepting again when there is no room for another connection.
const ACCEPT_REST: Duration = Duration::from_millis(20);
/// How long idle connections stay open after the stop signal, for requests in flight; then they are closed.
const LINGER: Duration = Duration::from_millis(200);
/// How long after that requests in progress may finish.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// A listening node; [`Node::run`] serves.
#[derive(Debug)]
pub struct Node {
    application: Arc<Application>,
    readiness: Arc<Readiness>,
    tally: NodeTally,
    listener: std::net::TcpListener,
    admin_listener: std::net::TcpListener,
    address: SocketAddr,
    admin_address: SocketAddr,
}

impl Node {
    /// Checks everything and listens. Callees need not exist yet: connections to them are opened on demand.
    ///
    /// # Errors
    /// Returns an error if the service or its scripts are invalid, or an address cannot be bound.
    pub fn bind(settings: &NodeSettings) -> Result<Self, ServeError> {
        let application = Application::new(settings)?;
        let bound = |address: SocketAddr| {
            let listener = listen(address).map_err(io::Error::from).map(std::net::TcpListener::from);
            let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
            listener.map_err(|source| ServeError::Listen { address, source })
        };
        let (address, listener) = bound(settings.listen)?;
        let (admin_address, admin_listener) = bound(settings.admin_listen)?;
        Ok(Self {
            tally: NodeTally::new(&application, settings.threads),
            application: Arc::new(application),
            readiness: Arc::default(),
            listener,
            admin_listener,
            address,
            admin_address,
        })
    }

    /// URL prefix of the service.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.application.protocol == Protocol::Tcp { "tcp" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Address of the service.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the admin endpoint: counters, metrics and health.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Serves until `stop` is readable or closed at its other end (a pipe, an eventfd). Then it accepts no
    /// more connections, finishes the requests in progress for at most 5 s, and returns the counters. The
    /// first worker runs on the calling thread.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started or a required kernel call fails.
    pub fn run(self, stop: impl AsFd) -> Result<Counters, ServeError> {
        let Self { application, readiness, tally, listener, admin_listener, .. } = self;
        let parts = Parts { application, readiness, tally };
        let stop = stop.as_fd();
        thread::scope(|scope| {
            let mut inboxes = Vec::new();
            let mut threads = Vec::new();
            for index in 1..parts.tally.workers.len() {
                let (inbox, connections) = mpsc::unbounded_channel();
                inboxes.push(inbox);
                let parts = &parts;
                let serve = move || on_runtime(parts.serve_handed(index, connections));
                let thread = thread::Builder::new().name(format!("node-{index}")).spawn_scoped(scope, serve);
                threads.push(thread.map_err(|error| kernel("start a thread", error))?);
            }
            on_runtime(parts.serve_first(listener, admin_listener, stop, inboxes))?;
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(parts.tally.inbound())
        })
    }
}

/// What all workers share.
struct Parts {
    application: Arc<Application>,
    readiness: Arc<Readiness>,
    tally: NodeTally,
}

impl Parts {
    /// The first worker: it accepts, and passes each connection to the worker with the fewest.
    async fn serve_first(
        &self,
        listener: std::net::TcpListener,
        admin_listener: std::net::TcpListener,
        stop: BorrowedFd<'_>,
        inboxes: Vec<mpsc::UnboundedSender<TcpStreamOnItsWay>>,
    ) -> io::Result<()> {
        let connections = Connections::new(self, 0)?;
        spawn_local(fill(Rc::clone(&connections.worker), Arc::clone(&self.readiness)));
        let admin = Admin::new(self.tally.clone(), &self.application, &self.readiness);
        spawn_local(admin::serve(TcpListener::from_std(admin_listener)?, admin));
        let listener = TcpListener::from_std(listener)?;
        let hand_out = |stream: TcpStream| {
            self.tally.workers[0].inbound.connections_accepted.add(1);
            let open = |worker: &WorkerTally| worker.inbound.connections_open.load(Relaxed);
            let workers = self.tally.workers.iter().enumerate();
            let (index, worker) =
                workers.min_by_key(|(_, worker)| open(worker)).expect("there is one worker at least");
            worker.inbound.connections_open.fetch_add(1, Relaxed);
            match index.checked_sub(1) {
                None => connections.serve(stream),
                // The worker ends only once its inbox is closed.
                Some(other) => drop(stream.into_std().map(|stream| inboxes[other].send(stream))),
            }
        };
        let stop = watched(stop.try_clone_to_owned()?)?;
        let mut stopped = pin!(stop.readable());
        loop {
            match select(pin!(listener.accept()), stopped.as_mut()).await {
                Either::Left((Ok((stream, _)), _)) => hand_out(stream),
                Either::Left((Err(_), _)) => {
                    let _ = select(pin!(sleep(ACCEPT_REST)), stopped.as_mut()).await;
                }
                Either::Right(_) => break,
            }
        }
        // Clients consider connections open once the kernel has accepted them.
        let listener = listener.into_std()?;
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            hand_out(TcpStream::from_std(stream)?);
        }
        drop(listener);
        drop(inboxes);
        connections.finish().await;
        Ok(())
    }

    /// Any other worker.
    async fn serve_handed(
        &self,
        index: usize,
        mut inbox: mpsc::UnboundedReceiver<TcpStreamOnItsWay>,
    ) -> io::Result<()> {
        let connections = Connections::new(self, index)?;
        while let Some(stream) = inbox.recv().await {
            connections.serve(TcpStream::from_std(stream)?);
        }
        connections.finish().await;
        Ok(())
    }
}

/// A connection in transfer between two runtimes.
type TcpStreamOnItsWay = std::net::TcpStream;

/// The accepted connections of one worker.
struct Connections {
    worker: Rc<Worker>,
    is_tcp: bool,
    closing: watch::Sender<bool>,
}

impl Connections {
    fn new(parts: &Parts, index: usize) -> io::Result<Self> {
        let workers = &parts.tally.workers;
        let worker = Rc::new(Worker::new(index, &parts.application, &workers[index], workers.len())?);
        let timer = Rc::clone(&worker);
        spawn_local(async move { timer.timer.run().await });
        let is_tcp = parts.application.protocol == Protocol::Tcp;
        Ok(Self { worker, is_tcp, closing: watch::Sender::new(false) })
    }

    /// Serves a connection that the acceptor has already counted.
    fn serve(&self, stream: TcpStream) {
        let worker = Rc::clone(&self.worker);
        let stream = CountedStream::accepted(stream, Arc::clone(&worker.tally));
        let stopping = Stopping(self.closing.subscribe());
        if self.is_tcp {
            spawn_local(tcp::serve(stream, worker, stopping));
        } else {
            spawn_local(http1::serve(stream, worker, stopping));
        }
    }

    /// Lets every connection finish.
    async fn finish(&self) {
        self.worker.is_stopping.set(true);
        if timeout(LINGER, self.closing.closed()).await.is_err() {
            self.closing.send_replace(true);
            // Those that have not finished by then are cut off, and counted as such.
            let _ = timeout(FINISH_TIMEOUT, self.closing.closed()).await;
        }
    }
}
