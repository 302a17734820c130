//! A minimal load generator on the `h2` crate and tokio, as a client process.
//!
//! It keeps what a generator cannot do without: status and length of each response are checked, and its time from when it was due
//! is in a histogram. It has neither timeouts nor reconnects, counts no bytes, and keeps no other figure of the engine's.

use crate::contest::process::resident_bytes;
use crate::contest::{BODY_BYTES, Outcome};
use crate::pacer::Pacer;
use crate::task::{Reading, Task};
use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::{Request, StatusCode};
use load::{RequestTemplate, resolve};
use results::LatencyHistogram;
use std::cell::RefCell;
use std::error::Error;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local, yield_now};

/// As the engine announces them.
const STREAM_WINDOW_BYTES: u32 = 16 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
const MAX_HEAD_BYTES: u32 = 256 * 1024;
/// Time from the last connection to the first request.
const LEAD: Duration = Duration::from_millis(5);

/// Responses so far.
#[derive(Default)]
struct Tally {
    times: LatencyHistogram,
    failure: Option<Box<dyn Error>>,
}

type Shared = Rc<RefCell<Tally>>;

/// Runs the load on one thread.
///
/// # Errors
/// Returns an error if a connection cannot be opened, or any request fails.
pub fn run(task: &Task, address: SocketAddr) -> Outcome<Reading> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, load(task, address))
}

async fn load(task: &Task, address: SocketAddr) -> Outcome<Reading> {
    let request = request(&format!("http://{address}/"))?;
    let mut senders = Vec::with_capacity(task.connections);
    for _ in 0..task.connections {
        senders.push(connect(address).await?);
    }
    let tally = Shared::default();
    let start = Instant::now() + LEAD;
    let mut clients = Vec::new();
    match task.rate {
        Some(rate) => open_loop(&mut senders, &request, start, rate, task.duration, &tally).await?,
        None => {
            for sender in &senders {
                for _ in 0..task.streams {
                    let client = closed_loop(
                        sender.clone(),
                        request.clone(),
                        start + task.duration,
                        Rc::clone(&tally),
                    );
                    clients.push(spawn_local(client));
                }
            }
            Pacer::new(1)?.wait_until(start + task.duration).await?;
        }
    }
    let resident_bytes = resident_bytes("self")?;
    for client in clients {
        client.await?;
    }
    // What an open loop still awaits holds the tally.
    while Rc::strong_count(&tally) > 1 {
        yield_now().await;
    }
    let Tally { times, failure } = tally.take();
    match failure {
        Some(error) => Err(error),
        None => Ok(Reading::new(times.count(), resident_bytes)),
    }
}

async fn connect(address: SocketAddr) -> Outcome<SendRequest<Bytes>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = builder().handshake(stream).await?;
    // An error of the connection is one of its requests.
    spawn_local(async move { connection.await.unwrap_or_default() });
    Ok(sender.ready().await?)
}

/// Settings of a connection.
pub fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(MAX_HEAD_BYTES)
        .enable_push(false);
    builder
}

/// The engine's request for a URL.
fn request(url: &str) -> Outcome<Request<()>> {
    let targets = resolve(&[url.to_owned()], &RequestTemplate::default())?;
    converted(&targets.servers[0].requests[0])
}

/// A request of the engine's in the form of the `http` crate.
pub fn converted(request: &load::Request) -> Outcome<Request<()>> {
    let text = |text: &load::Text| text.constant().ok_or("a request with ranges");
    let uri = format!("{}://{}{}", request.scheme, request.authority, text(&request.path)?);
    let mut builder = Request::builder().method(&request.method).uri(uri);
    for header in &request.headers {
        builder = builder.header(header.name(), text(header.value())?);
    }
    Ok(builder.body(())?)
}

/// A client that sends its next request when it has the response to the last.
async fn closed_loop(mut sender: SendRequest<Bytes>, request: Request<()>, end: Instant, tally: Shared) {
    let mut due = Instant::now();
    while due < end {
        let response = poll_fn(|context| sender.poll_ready(context))
            .await
            .and_then(|()| sender.send_request(request.clone(), true));
        match response {
            Ok((response, _)) => answer(response, due, &tally).await,
            Err(error) => tally.borrow_mut().failure = Some(error.into()),
        }
        if tally.borrow().failure.is_some() {
            return;
        }
        due = Instant::now();
    }
}

async fn open_loop(
    senders: &mut [SendRequest<Bytes>],
    request: &Request<()>,
    start: Instant,
    rate: u32,
    duration: Duration,
    tally: &Shared,
) -> Outcome<()> {
    let mut pacer = Pacer::new(rate)?;
    let requests = (f64::from(rate) * duration.as_secs_f64()) as u32;
    let connections = senders.len();
    for slot in 0..requests {
        let due = start + Duration::from_secs_f64(f64::from(slot) / f64::from(rate));
        pacer.wait_until(due).await?;
        let sender = &mut senders[slot as usize % connections];
        poll_fn(|context| sender.poll_ready(context)).await?;
        let (response, _) = sender.send_request(request.clone(), true)?;
        let tally = Rc::clone(tally);
        spawn_local(async move { answer(response, due, &tally).await });
    }
    Ok(())
}

/// Awaits a response to its end, and counts it.
async fn answer(response: ResponseFuture, due: Instant, tally: &Shared) {
    let outcome = receive(response).await;
    let mut tally = tally.borrow_mut();
    match outcome {
        Ok(()) => tally.times.record(due.elapsed()),
        Err(error) => tally.failure = Some(error),
    }
}

async fn receive(response: ResponseFuture) -> Outcome<()> {
    let response = response.await?;
    let status = response.status();
    let mut body = response.into_body();
    let mut length = 0;
    while let Some(content) = body.data().await {
        let content = content?;
        length += content.len();
        body.flow_control().release_capacity(content.len())?;
    }
    if status != StatusCode::OK || length != BODY_BYTES {
        return Err(format!("a response with status {status} and {length} bytes").into());
    }
    Ok(())
}
