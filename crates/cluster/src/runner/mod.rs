//! The runner answers "How do I get the results of a detached run, while it lasts and afterwards?"
//!
//! The Job of a detached run executes it (`meshmeter cluster-runner`). It runs the same
//! `meshmeter run`, keeps its output lines and its folder until a client has copied them or a given time has
//! passed, and exits with its exit status.
//!
//! It listens on the loopback of its pod, which clients reach through a port forward ([`protocol`]). A second
//! port tells the kubelet whether the run has ended: the pod is ready from then on.

mod archive;
pub mod protocol;

pub(crate) use self::archive::StreamedBody;

use self::archive::Transfer;
use self::protocol::{FETCHED_PATH, FOLDER_PATH, INTERRUPT_PATH, PROGRESS_PATH, PROGRESS_WAIT, RunProgress};
use crate::Result;
use crate::endpoint::{Endpoint, Reply, Respond, json, refused};
use crate::lines::Lines;
use experiment::environment::ErrorContext as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use mesh::lines::each_line;
use std::cell::Cell;
use std::ffi::OsString;
use std::io::{BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// Exit status of a run that a signal ended.
const BROKEN: u8 = 3;
/// Time without a request after which no other client is attached: each asks again as soon as it has an answer.
const QUIET_TIME: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the last responses, of which the buffers may still hold some.
const LAST_RESPONSES: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct RunnerOptions {
    pub program: PathBuf,
    /// Arguments of `meshmeter run`, in order.
    pub arguments: Vec<OsString>,
    /// The run's folder.
    pub folder: PathBuf,
    /// How long an ended run waits for a client to copy its folder.
    pub keep_for: Duration,
}

#[derive(Default)]
struct Written {
    lines: Lines,
    ended: Option<u8>,
}

struct Runner {
    pid: Option<rustix::process::Pid>,
    folder: PathBuf,
    written: Arc<Mutex<Written>>,
    changed: Arc<Notify>,
    fetched: Notify,
    requested_at: Cell<Instant>,
    /// Number of archives being sent.
    transfers: Rc<Cell<usize>>,
}

/// Reports whether the run has ended, and nothing else.
struct Ended(Arc<Mutex<Written>>);

/// Executes the run, keeps its results, and returns its exit status.
pub fn run(port: u16, ended_port: u16, options: &RunnerOptions) -> Result<u8> {
    let listen = |address: IpAddr, port: u16| {
        let listener = TcpListener::bind(SocketAddr::from((address, port)));
        listener.context(format!("listen on port {port}"))
    };
    let (own, of_kubelet) =
        (listen(Ipv4Addr::LOCALHOST.into(), port)?, listen(Ipv4Addr::UNSPECIFIED.into(), ended_port)?);
    serve(own, of_kubelet, options)
}

fn serve(own: TcpListener, of_kubelet: TcpListener, options: &RunnerOptions) -> Result<u8> {
    let operation = "start a run";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(operation)?;
    let mut command = Command::new(&options.program);
    command.args(&options.arguments).stdin(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().context(operation)?;
    let runner = Rc::new(Runner {
        pid: rustix::process::Pid::from_raw(child.id().cast_signed()),
        folder: options.folder.clone(),
        written: Arc::default(),
        changed: Arc::default(),
        fetched: Notify::new(),
        requested_at: Cell::new(Instant::now()),
        transfers: Rc::default(),
    });
    follow(child, Arc::clone(&runner.written), Arc::clone(&runner.changed));
    for listener in [&own, &of_kubelet] {
        listener.set_nonblocking(true).context(operation)?;
    }
    LocalSet::new().block_on(&runtime, async {
        let own = tokio::net::TcpListener::from_std(own).context(operation)?;
        let of_kubelet = tokio::net::TcpListener::from_std(of_kubelet).context(operation)?;
        let mut endpoint = Endpoint::default();
        endpoint.serve(own, Rc::clone(&runner));
        endpoint.serve(of_kubelet, Rc::new(Ended(Arc::clone(&runner.written))));
        let status = runner.end().await;
        // If no client comes, the wait ends after the given time.
        let _ = tokio::time::timeout(options.keep_for, runner.released()).await;
        endpoint.finish(LAST_RESPONSES).await;
        Ok(status)
    })
}

/// Reads the run's lines on a thread that ends with it. They go to the pod's log too.
fn follow(mut child: Child, written: Arc<Mutex<Written>>, changed: Arc<Notify>) {
    let errors = child.stderr.take();
    thread::spawn(move || {
        if let Some(errors) = errors {
            each_line(BufReader::new(errors), |line| {
                // Nothing may be reading the log.
                let _ = writeln!(std::io::stderr(), "{line}");
                lock(&written).lines.push(line, true);
                changed.notify_waiters();
            });
        }
        let code = child.wait().ok().and_then(|status| status.code());
        lock(&written).ended = Some(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(BROKEN));
        changed.notify_waiters();
    });
}

impl Runner {
    async fn end(&self) -> u8 {
        loop {
            if let Some(status) = lock(&self.written).ended {
                return status;
            }
            // If the run ends between the check and the wait, the next check finds it.
            let _ = tokio::time::timeout(POLL_INTERVAL, self.changed.notified()).await;
        }
    }

    /// Waits until a client has copied the folder, and no other one is attached that may still do so.
    async fn released(&self) {
        self.fetched.notified().await;
        while self.transfers.get() > 0 || self.requested_at.get().elapsed() < QUIET_TIME {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits a little if there is nothing new. The query is the number of lines that the client has.
    async fn progress(&self, query: &str) -> Reply {
        let from = query.parse().unwrap_or(0);
        let deadline = tokio::time::Instant::now() + PROGRESS_WAIT;
        loop {
            let progress = {
                let written = lock(&self.written);
                let batch = written.lines.batch(from);
                let ended = written.ended.filter(|_| batch.is_last);
                RunProgress { lines: batch.lines, next: batch.next, ended }
            };
            let is_new = !progress.lines.is_empty() || progress.ended.is_some();
            if is_new || tokio::time::Instant::now() >= deadline {
                return json(&progress);
            }
            let _ = tokio::time::timeout(POLL_INTERVAL, self.changed.notified()).await;
        }
    }

    fn interrupt(&self) -> Reply {
        // An ended run was reaped: its PID may belong to another process.
        let is_running = lock(&self.written).ended.is_none();
        if let Some(pid) = self.pid.filter(|_| is_running) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
        json(&())
    }

    /// Empty if the run ended before it had a folder. The query is the number of bytes that the client has.
    fn archive(&self, query: &str) -> Reply {
        if lock(&self.written).ended.is_none() {
            return refused(StatusCode::CONFLICT, "the run has not ended");
        }
        let from = query.parse().unwrap_or(0);
        let transfer = Transfer::begin(&self.transfers);
        Response::new(Either::Right(StreamedBody::of_folder(&self.folder, from, transfer)))
    }
}

impl Respond for Runner {
    async fn respond(&self, request: Request<Incoming>) -> Reply {
        self.requested_at.set(Instant::now());
        let query = request.uri().query().unwrap_or_default();
        match (request.method(), request.uri().path()) {
            (&Method::GET, PROGRESS_PATH) => self.progress(query).await,
            (&Method::POST, INTERRUPT_PATH) => self.interrupt(),
            (&Method::GET, FOLDER_PATH) => self.archive(query),
            (&Method::POST, FETCHED_PATH) => {
                self.fetched.notify_one();
                json(&())
            }
            _ => refused(StatusCode::NOT_FOUND, "a runner has no such path"),
        }
    }
}

impl Respond for Ended {
    async fn respond(&self, _request: Request<Incoming>) -> Reply {
        match lock(&self.0).ended {
            Some(status) => json(&status),
            None => refused(StatusCode::SERVICE_UNAVAILABLE, "the run goes on"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
