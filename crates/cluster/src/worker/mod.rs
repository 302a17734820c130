//! A worker, which the pod of a Job runs (`meshmeter cluster-worker`). It starts generators for the run and
//! keeps their output and results until the run has copied them. It ends when the run tells it to, or after a
//! long time without requests, so that a run that was killed leaves no load behind.
//!
//! It listens on the loopback of its pod, which the run reaches through a port forward ([`protocol`]).

pub(crate) mod generator;
pub mod protocol;
pub(crate) mod usage;

use self::generator::Generator;
use self::protocol::{
    FINISH_PATH, INPUT_PATH, Input, PROGRESS_PATH, PROGRESS_WAIT, RESULT_PATH, SIGNAL_PATH, START_PATH,
    STATUS_PATH, Signal, Start, Status, unix_ns,
};
use crate::Result;
use crate::endpoint::{Endpoint, Reply, Respond, complete, json, refused, whole};
use experiment::environment::ErrorContext as _;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// Time between two checks whether requests still arrive.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time for the last response to be sent.
const LAST_RESPONSE: Duration = Duration::from_secs(10);
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The program that runs as a generator.
    pub program: PathBuf,
    /// Directory that it may write to.
    pub directory: PathBuf,
    pub abandoned_after: Duration,
}

/// How a worker ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WorkerEnd {
    /// The run no longer needs it.
    Finished,
    /// It received no requests for a long time.
    Abandoned,
}

/// Ends the proxy next to a worker, which would keep the pod of a Job alive, with a POST to this URL on the
/// loopback. Not needed if there is no proxy or it is a native sidecar.
pub fn end_proxy(url: &str) -> std::io::Result<()> {
    use std::io::{Read as _, Write as _};
    let (authority, path) = url.trim_start_matches("http://").split_once('/').unwrap_or((url, ""));
    let mut stream = std::net::TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {authority}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}

struct Worker {
    options: WorkerOptions,
    generator: RefCell<Option<Generator>>,
    asked_at: Cell<Instant>,
    finished: Notify,
}

/// Serves on this loopback port until the worker ends.
pub fn run(port: u16, options: WorkerOptions) -> Result<WorkerEnd> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    serve(listener.context(format!("listen on port {port} of the loopback"))?, options)
}

fn serve(listener: TcpListener, options: WorkerOptions) -> Result<WorkerEnd> {
    let operation = "start a worker";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(operation)?;
    let worker = Rc::new(Worker {
        options,
        generator: RefCell::default(),
        asked_at: Cell::new(Instant::now()),
        finished: Notify::new(),
    });
    listener.set_nonblocking(true).context(operation)?;
    LocalSet::new().block_on(&runtime, async {
        let listener = tokio::net::TcpListener::from_std(listener).context(operation)?;
        let mut endpoint = Endpoint::default();
        endpoint.serve(listener, Rc::clone(&worker));
        tokio::select! {
            () = worker.finished.notified() => {
                endpoint.finish(LAST_RESPONSE).await;
                Ok(WorkerEnd::Finished)
            }
            () = worker.abandoned() => Ok(WorkerEnd::Abandoned),
        }
    })
}

impl Worker {
    async fn abandoned(&self) {
        while self.asked_at.get().elapsed() < self.options.abandoned_after {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Respond for Worker {
    async fn respond(&self, request: Request<Incoming>) -> Reply {
        self.asked_at.set(Instant::now());
        let (parts, body) = request.into_parts();
        let body = match whole(body).await {
            Ok(body) => body,
            Err(reply) => return reply,
        };
        match (&parts.method, parts.uri.path()) {
            (&Method::GET, STATUS_PATH) => json(&Status {
                usage: usage::read(Path::new(CGROUP_ROOT)),
                now_ns: unix_ns(Timestamp::now()),
            }),
            (&Method::GET, PROGRESS_PATH) => self.progress(parts.uri.query().unwrap_or_default()).await,
            (&Method::GET, RESULT_PATH) => self.result(),
            (&Method::POST, START_PATH) => with(&body, |start: Start| self.start(&start)),
            (&Method::POST, INPUT_PATH) => with(&body, |input: Input| self.input(&input)),
            (&Method::POST, SIGNAL_PATH) => with(&body, |signal: Signal| {
                if let Some(generator) = &*self.generator.borrow() {
                    generator.signal(signal);
                }
                json(&())
            }),
            (&Method::POST, FINISH_PATH) => {
                self.generator.borrow_mut().take();
                self.finished.notify_one();
                json(&())
            }
            _ => refused(StatusCode::NOT_FOUND, "a worker has no such path"),
        }
    }
}

impl Worker {
    fn start(&self, start: &Start) -> Reply {
        // This ends the earlier generator.
        self.generator.borrow_mut().take();
        match Generator::start(&self.options.program, &self.options.directory, start) {
            Ok(generator) => {
                *self.generator.borrow_mut() = Some(generator);
                json(&())
            }
            Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, &format!("start a generator: {error}")),
        }
    }

    fn input(&self, input: &Input) -> Reply {
        match self.generator.borrow_mut().as_mut().map(|generator| generator.input(&input.line)) {
            Some(Ok(())) => json(&()),
            Some(Err(error)) => refused(StatusCode::CONFLICT, &error.to_string()),
            None => refused(StatusCode::CONFLICT, "there is no generator"),
        }
    }

    /// Waits a little if there is nothing new. The query is the number of lines that the run has.
    async fn progress(&self, query: &str) -> Reply {
        let from = query.parse().unwrap_or(0);
        let deadline = tokio::time::Instant::now() + PROGRESS_WAIT;
        loop {
            let Some((changed, progress)) = self
                .generator
                .borrow()
                .as_ref()
                .map(|generator| (std::sync::Arc::clone(&generator.changed), generator.progress(from)))
            else {
                return refused(StatusCode::CONFLICT, "there is no generator");
            };
            let is_new = !progress.lines.is_empty() || progress.ended.is_some();
            if is_new || tokio::time::Instant::now() >= deadline {
                return json(&progress);
            }
            // A line written between the check and the wait is found by the next request at the latest.
            let _ = tokio::time::timeout(POLL_INTERVAL / 10, changed.notified()).await;
        }
    }

    fn result(&self) -> Reply {
        match self.generator.borrow().as_ref().map(Generator::result) {
            Some(Ok(content)) => complete(content.into()),
            Some(Err(error)) => refused(StatusCode::NOT_FOUND, &format!("read the result: {error}")),
            None => refused(StatusCode::CONFLICT, "there is no generator"),
        }
    }
}

fn with<T: DeserializeOwned>(body: &[u8], act: impl FnOnce(T) -> Reply) -> Reply {
    match serde_json::from_slice(body) {
        Ok(message) => act(message),
        Err(error) => refused(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

#[cfg(test)]
mod tests;
