//! The stub: threads that accept and serve connections.

use crate::behaviour::Behaviour;
use crate::configuration::Configuration;
use crate::connection;
use crate::counts::Totals;
use crate::resources;
use crate::state::{Change, State};
use crate::watched::{MarkWrite, WriteLog, mark};
use rustls::ServerConfig;
use socket2::SockRef;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Listen backlog: fleets connect all at once.
const BACKLOG: i32 = 4096;

/// Settings of a stub.
pub struct StubSpec {
    /// Configuration that it serves.
    pub configuration: Configuration,
    /// Behaviors of connections, used in turn.
    pub behaviours: Vec<Behaviour>,
    /// TLS settings; absent: plaintext.
    pub tls: Option<Arc<ServerConfig>>,
    /// Token that clients must send, if any.
    pub token: Option<String>,
    /// Number of serving threads.
    pub threads: usize,
    /// True if writes that contain marks are logged.
    pub log_writes: bool,
}

impl StubSpec {
    /// Settings of a correct stub in plaintext, on one thread.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        Self {
            configuration,
            behaviours: vec![Behaviour::Correct],
            tls: None,
            token: None,
            threads: 1,
            log_writes: false,
        }
    }

    /// Replaces the behaviors.
    #[must_use]
    pub fn with_behaviours(self, behaviours: Vec<Behaviour>) -> Self {
        Self { behaviours, ..self }
    }
}

/// A control plane that listens on loopback until it is dropped.
pub struct Stub {
    address: SocketAddr,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Stub {
    /// Starts to listen, and to serve on its own threads.
    ///
    /// # Errors
    /// Returns an error if it cannot get a port or a thread.
    pub fn start(spec: StubSpec) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        SockRef::from(&listener).listen(BACKLOG)?;
        let log = spec.log_writes.then(|| Arc::new(WriteLog::default()));
        let mut stub = Self {
            address: listener.local_addr()?,
            state: Arc::new(State::new(spec.configuration, spec.token, log)),
            stop: watch::Sender::new(false),
            threads: Vec::new(),
        };
        for number in 0..spec.threads {
            let acceptor = Acceptor {
                state: Arc::clone(&stub.state),
                behaviours: spec.behaviours.clone(),
                tls: spec.tls.clone().map(TlsAcceptor::from),
                listener: listener.try_clone()?,
                stop: stub.stop.subscribe(),
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let thread = std::thread::Builder::new().name(format!("stub-{number}"));
            stub.threads.push(thread.spawn(move || runtime.block_on(acceptor.run()))?);
        }
        Ok(stub)
    }

    /// Address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Current counters.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.state.counts.totals()
    }

    /// Changes the configuration, and sends the change on every stream that subscribes to the resource.
    ///
    /// # Errors
    /// Returns an error if the configuration has no resources of the type.
    pub fn change(&self, change: Change) -> Result<(), String> {
        self.state.change(change)
    }

    /// Changes the endpoints of the service with this number: adds an endpoint whose workload is the mark.
    ///
    /// # Errors
    /// Returns an error if the configuration has no endpoints.
    pub fn mark_endpoints(&self, service: usize, number: u32) -> Result<(), String> {
        let resource = resources::endpoints(resources::service(service), &[("10.250.0.1", &mark(number))]);
        self.change(Change::Put { type_url: resources::ENDPOINTS, resource })
    }

    /// Writes that contained marks since the last call.
    #[must_use]
    pub fn take_writes(&self) -> Vec<MarkWrite> {
        self.state.log.as_ref().map(|log| log.take()).unwrap_or_default()
    }

    /// Closes all connections without a message.
    pub fn disconnect(&self) {
        self.state.disconnect();
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

/// Accepts connections on one thread.
struct Acceptor {
    state: Arc<State>,
    behaviours: Vec<Behaviour>,
    tls: Option<TlsAcceptor>,
    listener: TcpListener,
    stop: watch::Receiver<bool>,
}

impl Acceptor {
    /// Returns when the stub is stopped; dropping its runtime ends the connections that it serves.
    async fn run(mut self) {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return self.state.counts.complain(&format!("listen: {error}")),
        };
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((socket, _)) => {
                        let number = self.state.counts.connections.next() as usize;
                        let behaviour = self.behaviours[number % self.behaviours.len()].clone();
                        let served =
                            connection::serve(Arc::clone(&self.state), behaviour, self.tls.clone(), socket);
                        tokio::spawn(served);
                    }
                    Err(error) => self.state.counts.complain(&format!("accept: {error}")),
                },
                _ = self.stop.changed() => return,
            }
        }
    }
}
