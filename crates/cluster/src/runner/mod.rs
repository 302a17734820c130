//! A runner, which the Job of a detached run executes (`meshmeter cluster-runner`). It runs the same
//! `meshmeter run`, keeps its output lines and its folder until a client has copied them or a given time has
//! passed, and exits with its exit status.
//!
//! It listens on the loopback of its pod, which clients reach through a port forward ([`protocol`]). A second
//! port tells the kubelet whether the run has ended: the pod is ready from then on.

pub mod protocol;

use self::protocol::{FETCHED_PATH, FOLDER_PATH, INTERRUPT_PATH, PROGRESS_PATH, PROGRESS_WAIT, RunProgress};
use crate::Result;
use crate::endpoint::{Reply, Respond, accept, json, refused};
use experiment::environment::ErrorContext as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// Maximum number of lines kept: one per trial, plus other messages of a run.
const MAX_LINES: usize = 100_000;
/// Exit status of a run that a signal ended.
const BROKEN: u8 = 3;
const LAST_RESPONSE: Duration = Duration::from_millis(200);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

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
    lines: Vec<String>,
    ended: Option<u8>,
}

struct Runner {
    pid: Option<rustix::process::Pid>,
    folder: PathBuf,
    written: Arc<Mutex<Written>>,
    changed: Arc<Notify>,
    fetched: Notify,
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
    });
    follow(child, Arc::clone(&runner.written), Arc::clone(&runner.changed));
    for listener in [&own, &of_kubelet] {
        listener.set_nonblocking(true).context(operation)?;
    }
    LocalSet::new().block_on(&runtime, async {
        let own = tokio::net::TcpListener::from_std(own).context(operation)?;
        let of_kubelet = tokio::net::TcpListener::from_std(of_kubelet).context(operation)?;
        tokio::task::spawn_local(accept(own, Rc::clone(&runner)));
        tokio::task::spawn_local(accept(of_kubelet, Rc::new(Ended(Arc::clone(&runner.written)))));
        let status = runner.end().await;
        // If no client comes, the wait ends after the given time.
        if tokio::time::timeout(options.keep_for, runner.fetched.notified()).await.is_ok() {
            tokio::time::sleep(LAST_RESPONSE).await;
        }
        Ok(status)
    })
}

/// Reads the run's lines on a thread that ends with it. They go to the pod's log too.
fn follow(mut child: Child, written: Arc<Mutex<Written>>, changed: Arc<Notify>) {
    let errors = child.stderr.take();
    thread::spawn(move || {
        for line in errors.into_iter().flat_map(|errors| BufReader::new(errors).lines()).map_while(Result::ok)
        {
            // Nothing may be reading the log.
            let _ = writeln!(std::io::stderr(), "{line}");
            let mut written = lock(&written);
            if written.lines.len() < MAX_LINES {
                written.lines.push(line);
            }
            drop(written);
            changed.notify_waiters();
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

    /// Waits a little if there is nothing new. The query is the number of lines that the client has.
    async fn progress(&self, query: &str) -> Reply {
        let from = query.parse().unwrap_or(0);
        let deadline = tokio::time::Instant::now() + PROGRESS_WAIT;
        loop {
            let progress = {
                let written = lock(&self.written);
                let lines = written.lines.get(from..).unwrap_or_default().to_vec();
                RunProgress { lines, ended: written.ended }
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

    /// Empty if the run ended before it had a folder.
    fn archive(&self) -> Reply {
        if lock(&self.written).ended.is_none() {
            return refused(StatusCode::CONFLICT, "the run has not ended");
        }
        let mut archive = tar::Builder::new(Vec::new());
        let appended = match self.folder.is_dir() {
            true => archive.append_dir_all(".", &self.folder),
            false => Ok(()),
        };
        match appended.and_then(|()| archive.into_inner()) {
            Ok(content) => Response::new(Full::new(content.into())),
            Err(error) => {
                refused(StatusCode::INTERNAL_SERVER_ERROR, &format!("pack the run folder: {error}"))
            }
        }
    }
}

impl Respond for Runner {
    async fn respond(&self, request: Request<Incoming>) -> Reply {
        match (request.method(), request.uri().path()) {
            (&Method::GET, PROGRESS_PATH) => self.progress(request.uri().query().unwrap_or_default()).await,
            (&Method::POST, INTERRUPT_PATH) => self.interrupt(),
            (&Method::GET, FOLDER_PATH) => self.archive(),
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
