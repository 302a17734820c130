//! Answers the requests of browsers on this machine: `GET` and `HEAD`, with the token in the path, for this host. The token keeps
//! other users of the machine out, the check of the host other sites of the browser (DNS rebinding).
//!
//! ```text
//! /TOKEN/            the list            /TOKEN/run/-PATH/             a run
//! /TOKEN/events      its changes         /TOKEN/run/-PATH/events       its changes
//! /TOKEN/view.js     the script          /TOKEN/run/-PATH/report.html  its report
//! /TOKEN/history/-PATH
//! ```
//! `PATH` is percent-encoded and below the directory that is viewed. Reports may contain anything: they are sandboxed.

use super::events::{Events, FollowedRun, SentParts};
use super::folder::Folder;
use super::found::{self, HistoryStates};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use report::history_file::HistoryFile;
use report::html::view;
use report::watched::{Position, REPORTS, WatchedRun};
use results::percent_decoded;
use statistics::history::course;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// The port that browsers leave out of `Host`.
const HTTP_PORT: u16 = 80;
/// Maximum concurrent connections, one per open page. One that has sent nothing makes room for the next; if there is none, the
/// next waits.
const MAX_CONNECTIONS: usize = 64;
/// Maximum size of a request head, and the time for it.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, for example when out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Intervals of looking for what is new.
const RUN_INTERVAL: Duration = Duration::from_secs(1);
const LIST_INTERVAL: Duration = Duration::from_secs(3);
/// Maximum size of a report.
const MAX_REPORT_BYTES: u64 = 256 << 20;

/// For all pages of the view.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const REPORT_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                             form-action 'none'; frame-ancestors 'none'";
type Reply = Response<Either<Full<Bytes>, Events>>;

/// The directory that is served, and the secret and hosts of requests that are answered.
pub(super) struct Viewer {
    root: PathBuf,
    token: String,
    /// Values of `Host` that name this server.
    hosts: [String; 3],
    histories: Arc<HistoryStates>,
}

/// Serves in a thread of its own until the process ends.
pub(super) fn start(listener: TcpListener, viewer: Viewer) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = move || runtime.block_on(accept(listener, Arc::new(viewer)));
    thread::Builder::new().name("view".to_owned()).spawn(serve).map(drop)
}

async fn accept(listener: TcpListener, viewer: Arc<Viewer>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropping one closes its connection if that is still silent.
    let mut silent: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        silent.retain(|connection| !connection.is_closed());
        if places.available_permits() == 0 {
            drop(silent.pop_front());
        }
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (kept, given_up) = oneshot::channel();
        silent.push_back(kept);
        let viewer = Arc::clone(&viewer);
        tokio::spawn(async move {
            tokio::select! {
                _ = tokio::time::timeout(HEAD_TIMEOUT, stream.readable()) => {}
                _ = given_up => return,
            }
            let service = service_fn(move |request: Request<Incoming>| {
                let viewer = Arc::clone(&viewer);
                async move {
                    let (request, _) = request.into_parts();
                    // Reading files would block other pages.
                    let reply = tokio::task::spawn_blocking(move || viewer.reply(&request)).await;
                    Ok::<_, Infallible>(reply.unwrap_or_else(|_| refused(StatusCode::INTERNAL_SERVER_ERROR)))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .keep_alive(false)
                .max_buf_size(MAX_HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // Browsers close connections at any time.
            let _ = connection.await;
            drop(place);
        });
    }
}

impl Viewer {
    pub(super) fn new(root: PathBuf, token: String, port: u16) -> Self {
        let own = |host: &str| if port == HTTP_PORT { host.to_owned() } else { format!("{host}:{port}") };
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(own);
        Self { root, token, hosts, histories: Arc::default() }
    }

    fn reply(&self, request: &Parts) -> Reply {
        let mut reply = self.answer(request).unwrap_or_else(refused);
        let headers = reply.headers_mut();
        for (name, value) in [
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(PAGE_POLICY));
        reply
    }

    /// The error is the status of the refusal.
    fn answer(&self, Parts { method, uri, headers, .. }: &Parts) -> Result<Reply, StatusCode> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().filter(|_| hosts.next().is_none()).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))) {
            return Err(StatusCode::MISDIRECTED_REQUEST);
        }
        let path = uri.path().trim_start_matches('/');
        let (token, page) = path.split_once('/').map_or((path, None), |(token, page)| (token, Some(page)));
        if !is_same(token, &self.token) {
            return Err(StatusCode::FORBIDDEN);
        }
        if ![Method::GET, Method::HEAD].contains(method) {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        let not_found = |_| StatusCode::NOT_FOUND;
        let Some(page) = page else { return Ok(moved(uri.path())) };
        match page.split('/').collect::<Vec<_>>().as_slice() {
            [""] => self.list().map_err(not_found),
            ["events"] => self.list_events().map_err(not_found),
            ["view.js"] => Ok(complete("text/javascript; charset=utf-8", view::SCRIPT)),
            ["history", name] => self.history(&decoded(name)?),
            ["run", _] => Ok(moved(uri.path())),
            ["run", name, file] => {
                self.of_run(&decoded(name)?, file, uri.query(), headers).map_err(not_found)
            }
            _ => Err(StatusCode::NOT_FOUND),
        }
    }

    fn list(&self) -> io::Result<Reply> {
        let title = format!("Runs in {}", self.root.display());
        Ok(page(view::list(&title, found::list(&Folder::open(&self.root)?, &self.histories))))
    }

    fn list_events(&self) -> io::Result<Reply> {
        let (root, mut sent) = (self.root.clone(), SentParts::default());
        let histories = Arc::clone(&self.histories);
        // Nothing is listed while the folder is gone.
        let next = move || {
            Some(
                Folder::open(&root)
                    .map_or_else(|_| String::new(), |root| sent.changes([found::list(&root, &histories)])),
            )
        };
        Ok(events(Events::start(LIST_INTERVAL, next)?))
    }

    fn history(&self, path: &str) -> Result<Reply, StatusCode> {
        let file = || Folder::open(&self.root).and_then(|root| root.file(path));
        let not_found = |_| StatusCode::NOT_FOUND;
        let (history, end) = HistoryFile::readable(file().map_err(not_found)?, Path::new(path));
        // Nothing of other files is shown.
        if history.runs.is_empty() && !found::is_history(file().map_err(not_found)?) {
            return Err(StatusCode::NOT_FOUND);
        }
        let course = course(path, &history.runs, &history.skipped_lines());
        let (state, _) = report::history::state(&history, &end);
        Ok(page(view::history(path, state, &course)))
    }

    fn of_run(&self, path: &str, file: &str, query: Option<&str>, headers: &HeaderMap) -> io::Result<Reply> {
        let folder = Folder::open(&self.root)?.folder(path)?;
        if !folder.is_run() {
            return Err(io::ErrorKind::NotFound.into());
        }
        if file == "events" {
            let root = self.root.clone();
            let path = path.to_owned();
            let mut run = FollowedRun::after(seen(query, headers));
            let next = move || run.next(&Folder::open(&root).and_then(|root| root.folder(&path)));
            return Ok(events(Events::start(RUN_INTERVAL, next)?));
        }
        if file.is_empty() {
            let mut run = WatchedRun::default();
            run.refresh(&|name| folder.file(name));
            let own = self.root.display().to_string();
            let title = if path.is_empty() { own.as_str() } else { path };
            return Ok(page(view::run(title, &run, Timestamp::now())));
        }
        let name = REPORTS.into_iter().find(|name| *name == file).ok_or(io::ErrorKind::NotFound)?;
        let mut report = Vec::new();
        folder.file(name)?.take(MAX_REPORT_BYTES).read_to_end(&mut report)?;
        let mut reply = page(report);
        let policy = HeaderValue::from_static(REPORT_POLICY);
        reply.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        Ok(reply)
    }
}

/// The time that this takes does not depend on where they differ.
fn is_same(given: &str, own: &str) -> bool {
    let differences = given.bytes().zip(own.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    given.len() == own.len() && std::hint::black_box(differences) == 0
}

/// The path in a part of an address, `-a%2Fb`.
fn decoded(part: &str) -> Result<String, StatusCode> {
    let path = part.strip_prefix('-').map(percent_decoded);
    path.and_then(|path| String::from_utf8(path).ok()).ok_or(StatusCode::NOT_FOUND)
}

/// Place behind the last trial that a page has: of the event that it received last, or at first in its address.
fn seen(query: Option<&str>, headers: &HeaderMap) -> Position {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let first = query.and_then(|query| query.strip_prefix("after="));
    last.or(first).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn page(html: impl Into<Bytes>) -> Reply {
    complete("text/html; charset=utf-8", html)
}

fn complete(kind: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Either::Left(Full::new(body.into())));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

fn events(events: Events) -> Reply {
    let mut reply = Response::new(Either::Right(events));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    reply
}

/// To a page by its address without the last `/`.
fn moved(path: &str) -> Reply {
    let Ok(location) = HeaderValue::try_from(format!("/{}/", path.trim_start_matches('/'))) else {
        return refused(StatusCode::NOT_FOUND);
    };
    let mut reply = refused(StatusCode::PERMANENT_REDIRECT);
    reply.headers_mut().insert(header::LOCATION, location);
    reply
}

fn refused(status: StatusCode) -> Reply {
    let mut reply = complete("text/plain; charset=utf-8", format!("{status}\n"));
    *reply.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_with_the_port_unless_it_is_that_of_http() {
        let hosts = |port| Viewer::new(PathBuf::new(), String::new(), port).hosts;
        assert_eq!(hosts(8090), ["127.0.0.1:8090", "localhost:8090", "[::1]:8090"]);
        assert_eq!(hosts(80), ["127.0.0.1", "localhost", "[::1]"]);
    }
}
