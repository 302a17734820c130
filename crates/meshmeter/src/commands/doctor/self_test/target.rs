//! A target that follows a known law, and keeps a record of what it did: the truth that a measurement is held against.

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep_until;

/// The runtime's timers are this coarse: only what is later than that is the machine's.
const TIMER_GRAIN: Duration = Duration::from_millis(1);

/// Behaviour of a target.
#[derive(Clone, Copy)]
pub enum Law {
    /// Answers one request at a time, each after this long.
    OneAtATime(Duration),
    /// Answers each request after `usual`, and every `slow_every`-th one after `slow`.
    TwoTimes { usual: Duration, slow: Duration, slow_every: usize },
    /// Answers at once, but nothing for a while: from `after` the first request on, for `hold`.
    Holds { after: Duration, hold: Duration },
    /// Answers at once, every `every`-th request with status 503.
    Fails { every: usize },
}

/// An answer as the target gave it.
#[derive(Clone, Copy)]
pub struct Answer {
    /// Time of the answer.
    pub at: Timestamp,
    /// Time since the request was read.
    pub took: Duration,
    /// Lateness of the target itself, beyond the grain of its timers.
    pub late: Duration,
}

/// A target on a thread of its own, until it is dropped.
pub struct KnownTarget {
    address: SocketAddr,
    record: Arc<Mutex<Vec<Answer>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KnownTarget {
    /// Starts a target on a free port of the loopback. It speaks HTTP/2 (prior knowledge) or HTTP/1.1.
    pub fn start(law: Law, http2: bool) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let record = Arc::<Mutex<Vec<Answer>>>::default();
        let (stop, stopped) = oneshot::channel();
        let kept = Arc::clone(&record);
        let thread = std::thread::Builder::new().name("known target".to_owned()).spawn(move || {
            let target =
                Target { law, first: Mutex::default(), turn: tokio::sync::Mutex::default(), record: kept };
            let target = Rc::new(target);
            LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::from_std(listener).expect("it is in a runtime");
                tokio::select! {
                    () = accept(listener, &target, http2) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, record, stop: Some(stop), thread: Some(thread) })
    }

    /// URL of the target.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Every answer so far, in order.
    pub fn answers(&self) -> Vec<Answer> {
        locked(&self.record).clone()
    }
}

impl Drop for KnownTarget {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}

struct Target {
    law: Law,
    /// Arrival of the first request.
    first: Mutex<Option<Instant>>,
    /// Held while a request is served one at a time; in the order of arrival.
    turn: tokio::sync::Mutex<()>,
    record: Arc<Mutex<Vec<Answer>>>,
}

impl Target {
    async fn respond(&self, ordinal: usize) -> Response<Full<Bytes>> {
        let read = Instant::now();
        let first = *locked(&self.first).get_or_insert(read);
        let mut status = StatusCode::OK;
        let mut due = read;
        let mut turn = None;
        match self.law {
            Law::OneAtATime(each) => {
                turn = Some(self.turn.lock().await);
                due = Instant::now() + each;
            }
            Law::TwoTimes { usual, slow, slow_every } => {
                due += if ordinal.is_multiple_of(slow_every) { slow } else { usual };
            }
            Law::Holds { after, hold } if (after..after + hold).contains(&(read - first)) => {
                due = first + after + hold;
            }
            Law::Holds { .. } => {}
            Law::Fails { every } if ordinal.is_multiple_of(every) => status = StatusCode::SERVICE_UNAVAILABLE,
            Law::Fails { .. } => {}
        }
        if due > read {
            sleep_until(due.into()).await;
        }
        let late = due.elapsed().saturating_sub(TIMER_GRAIN);
        locked(&self.record).push(Answer { at: Timestamp::now(), took: read.elapsed(), late });
        drop(turn);
        let mut response = Response::new(Full::new(Bytes::from_static(b"ok")));
        *response.status_mut() = status;
        response
    }
}

async fn accept(listener: TcpListener, target: &Rc<Target>, http2: bool) {
    let ordinal = Rc::new(std::cell::Cell::new(0));
    while let Ok((stream, _)) = listener.accept().await {
        // Small answers are to leave at once.
        let _ = stream.set_nodelay(true);
        spawn_local(serve(stream, Rc::clone(target), Rc::clone(&ordinal), http2));
    }
}

async fn serve(stream: TcpStream, target: Rc<Target>, ordinal: Rc<std::cell::Cell<usize>>, http2: bool) {
    let service = service_fn(move |_: Request<Incoming>| {
        let target = Rc::clone(&target);
        ordinal.set(ordinal.get() + 1);
        let ordinal = ordinal.get();
        async move { Ok::<_, Infallible>(target.respond(ordinal).await) }
    });
    let stream = TokioIo::new(stream);
    // The generator may disconnect at any time.
    if http2 {
        let _ = http2::Builder::new(OnThisThread).serve_connection(stream, service).await;
    } else {
        let _ = http1::Builder::new().serve_connection(stream, service).await;
    }
}

/// Runs the tasks of HTTP/2 connections on this thread.
#[derive(Clone)]
struct OnThisThread;

impl<F: Future<Output: 'static> + 'static> Executor<F> for OnThisThread {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}
