//! Requests to one registry about one image: redirects, retries, credentials, timeouts and interruptions.

mod authentication;
mod client;
mod response;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::{Response, Url};
use tokio::runtime::Runtime;

pub use self::authentication::check_challenge;
use self::client::http_client;
use crate::error::{one_line, root_cause};
use crate::{Access, ImageError, ImageReference, Limits, Watch};

/// Interval at which the caller is checked for an interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_REDIRECTS: usize = 5;
/// Maximum number of retries of a request that the registry could not answer.
const MAX_RETRIES: u32 = 3;

pub(crate) struct Session<'a> {
    pub(crate) image: &'a ImageReference,
    access: &'a Access,
    /// `None` only once dropped.
    runtime: Option<Runtime>,
    http: reqwest::Client,
    base: RefCell<Url>,
    authorization: RefCell<Option<HeaderValue>>,
    /// Why there are no credentials, if getting them failed.
    without_credentials: RefCell<Option<String>>,
    watch: RefCell<&'a mut dyn Watch>,
    looked_at: Cell<Option<Instant>>,
    received_bytes: Cell<u64>,
    expected_bytes: Cell<u64>,
    /// The error that ended the reading of a layer. It passes through readers that only know I/O errors.
    failure: RefCell<Option<ImageError>>,
}

/// Outcome of a request: a response, or a broken connection.
enum Sent {
    Response(Response),
    Broken { reason: String, is_worth_repeating: bool },
}

/// A manifest or another document that is read whole.
pub(crate) struct Document {
    pub(crate) body: Vec<u8>,
    pub(crate) headers: HeaderMap,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        image: &'a ImageReference,
        access: &'a Access,
        watch: &'a mut dyn Watch,
    ) -> Result<Self, ImageError> {
        let invalid = |reason: String| ImageError::InvalidRequest { image: image.to_string(), reason };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| invalid(format!("no thread or event queue for it: {error}")))?;
        let http = http_client(image, access).map_err(invalid)?;
        let scheme = if access.plain_http { "http" } else { "https" };
        let base = format!("{scheme}://{}/v2/", image.host()).parse();
        let base = base.map_err(|_| invalid("its registry is not a host".to_owned()))?;
        Ok(Self {
            image,
            access,
            runtime: Some(runtime),
            http,
            base: RefCell::new(base),
            authorization: RefCell::new(None),
            without_credentials: RefCell::new(None),
            watch: RefCell::new(watch),
            looked_at: Cell::new(None),
            received_bytes: Cell::new(0),
            expected_bytes: Cell::new(0),
            failure: RefCell::new(None),
        })
    }

    pub(crate) fn limits(&self) -> &'a Limits {
        &self.access.limits
    }

    /// Sends a request about this image's repository, and retries it if that can help. The response is a
    /// success, or 416 if a range was requested.
    pub(crate) fn request(
        &self,
        method: &Method,
        path: &str,
        accept: &str,
        from: u64,
    ) -> Result<Response, ImageError> {
        let mut retries = 0;
        let mut is_authenticated = false;
        loop {
            match self.follow(method, path, accept, from)? {
                Sent::Broken { reason, is_worth_repeating } => {
                    if !is_worth_repeating || retries == MAX_RETRIES {
                        return Err(self.unreachable(reason));
                    }
                    self.pause(self.backoff(retries))?;
                }
                Sent::Response(response) => {
                    let status = response.status();
                    let is_unsatisfiable = status == StatusCode::RANGE_NOT_SATISFIABLE && from > 0;
                    if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) || is_unsatisfiable {
                        return Ok(response);
                    }
                    if status == StatusCode::UNAUTHORIZED && !is_authenticated && self.is_own(response.url())
                    {
                        is_authenticated = true;
                        self.authenticate(response.headers())?;
                        continue;
                    }
                    if !self.waited_to_repeat(&response, retries)? {
                        return Err(self.describe_failure(response));
                    }
                }
            }
            retries += 1;
        }
    }

    /// Reads a whole document of the repository.
    pub(crate) fn document(&self, path: &str, accept: &str, what: &str) -> Result<Document, ImageError> {
        let mut retries = 0;
        loop {
            let response = self.request(&Method::GET, path, accept, 0)?;
            let headers = response.headers().clone();
            match self.read_body(response, self.limits().manifest_bytes, what)? {
                Ok(body) => return Ok(Document { body, headers }),
                Err(reason) if retries == MAX_RETRIES => return Err(self.unreachable(reason)),
                Err(_) => self.pause(self.backoff(retries))?,
            }
            retries += 1;
        }
    }

    /// The next piece of a body. The inner result is an error if the connection broke.
    pub(crate) fn next_chunk(
        &self,
        response: &mut Response,
    ) -> Result<Result<Option<Bytes>, String>, ImageError> {
        let timeout = self.limits().idle_timeout;
        Ok(match self.wait(timeout, response.chunk())? {
            None => Err(format!("no byte for {}", shown(timeout))),
            Some(Err(error)) => Err(root_cause(&error)),
            Some(Ok(chunk)) => Ok(chunk),
        })
    }

    pub(crate) fn pause(&self, time: Duration) -> Result<(), ImageError> {
        self.wait(time, std::future::pending::<()>()).map(|_| ())
    }

    pub(crate) fn backoff(&self, retries: u32) -> Duration {
        self.limits().retry_pause * 2_u32.pow(retries.min(6))
    }

    /// Returns an error once the caller has interrupted. Cheap enough for every read.
    pub(crate) fn look(&self) -> Result<(), ImageError> {
        if self.looked_at.get().is_some_and(|at| at.elapsed() < POLL_INTERVAL) {
            return Ok(());
        }
        self.looked_at.set(Some(Instant::now()));
        if self.watch.borrow_mut().interrupted() {
            return Err(ImageError::Interrupted { image: self.image.to_string() });
        }
        Ok(())
    }

    /// Adds the size of a layer that is needed.
    pub(crate) fn expect(&self, bytes: u64) {
        self.expected_bytes.set(self.expected_bytes.get().saturating_add(bytes));
        self.received(0);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.received_bytes.set(self.received_bytes.get() + bytes);
        self.watch.borrow_mut().progress(self.received_bytes.get(), self.expected_bytes.get());
    }

    /// Stores the error until the code that reads through other readers takes it.
    pub(crate) fn fail(&self, error: ImageError) -> std::io::Error {
        *self.failure.borrow_mut() = Some(error);
        std::io::Error::other("see the session's failure")
    }

    pub(crate) fn take_failure(&self) -> Option<ImageError> {
        self.failure.borrow_mut().take()
    }

    pub(crate) fn unreachable(&self, reason: String) -> ImageError {
        ImageError::Unreachable { image: self.image.to_string(), registry: self.registry(), reason }
    }

    pub(crate) fn invalid(&self, reason: String) -> ImageError {
        ImageError::InvalidResponse { image: self.image.to_string(), registry: self.registry(), reason }
    }

    pub(crate) fn wrong_digest(&self, reason: String) -> ImageError {
        ImageError::WrongDigest { image: self.image.to_string(), reason }
    }

    pub(crate) fn hostile(&self, reason: String) -> ImageError {
        ImageError::HostileLayer { image: self.image.to_string(), reason }
    }

    fn refused(&self, reason: String) -> ImageError {
        let reason = match &*self.without_credentials.borrow() {
            Some(failure) => format!("{reason} ({failure})"),
            None => reason,
        };
        ImageError::Refused { image: self.image.to_string(), registry: self.registry(), reason }
    }

    fn registry(&self) -> String {
        self.image.registry().to_owned()
    }

    /// Runs `future` while checking for interruptions; `None` after `timeout`.
    fn wait<T>(&self, timeout: Duration, future: impl Future<Output = T>) -> Result<Option<T>, ImageError> {
        let runtime = self.runtime.as_ref().expect("the session is not dropped");
        runtime.block_on(async {
            let mut future = std::pin::pin!(future);
            let deadline = Instant::now() + timeout;
            loop {
                self.look()?;
                let now = Instant::now();
                if now >= deadline {
                    return Ok(None);
                }
                let slice = POLL_INTERVAL.min(deadline - now);
                if let Ok(value) = tokio::time::timeout(slice, &mut future).await {
                    return Ok(Some(value));
                }
            }
        })
    }

    /// Sends a request and follows redirects. Only the registry itself receives credentials.
    fn follow(&self, method: &Method, path: &str, accept: &str, from: u64) -> Result<Sent, ImageError> {
        let base = self.base.borrow().clone();
        let mut url =
            base.join(path).map_err(|_| self.invalid("it has a path that is not valid".to_owned()))?;
        for _ in 0..=MAX_REDIRECTS {
            let response = match self.send(method, &url, accept, from)? {
                Sent::Response(response) => response,
                Sent::Broken { .. } if url.scheme() != self.base.borrow().scheme() => {
                    // The registry does not speak TLS.
                    return self.follow(method, path, accept, from);
                }
                broken @ Sent::Broken { .. } => return Ok(broken),
            };
            if !response.status().is_redirection() {
                return Ok(Sent::Response(response));
            }
            let location =
                response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
            let target = location.and_then(|location| url.join(location).ok());
            let Some(target) = target else { return Err(self.invalid("it redirects to nowhere".to_owned())) };
            if !self.may_request(&target) {
                let target = format!("{}://{}", target.scheme(), target.host_str().unwrap_or_default());
                return Err(self
                    .invalid(format!("it redirects to {}, which is not encrypted", one_line(&target, 100))));
            }
            url = target;
        }
        Err(self.invalid(format!("it redirects more than {MAX_REDIRECTS} times")))
    }

    fn send(&self, method: &Method, url: &Url, accept: &str, from: u64) -> Result<Sent, ImageError> {
        let mut request = self.http.request(method.clone(), url.clone()).header(header::ACCEPT, accept);
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        if self.is_own(url)
            && let Some(authorization) = &*self.authorization.borrow()
        {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        self.send_request(request, url)
    }

    fn send_request(&self, request: reqwest::RequestBuilder, url: &Url) -> Result<Sent, ImageError> {
        let timeout = self.limits().idle_timeout;
        Ok(match self.wait(timeout, request.send())? {
            Some(Ok(response)) => Sent::Response(response),
            Some(Err(error)) => {
                if self.is_own(url) && self.speaks_no_tls(url, &error) {
                    // Only the scheme changes.
                    let _ = self.base.borrow_mut().set_scheme("http");
                }
                let reason = match url.host_str() {
                    Some(host) if !self.is_own(url) => format!("{host}: {}", root_cause(&error)),
                    _ => root_cause(&error),
                };
                Sent::Broken { reason, is_worth_repeating: !error.is_connect() }
            }
            None => Sent::Broken {
                reason: format!("no response within {}", shown(timeout)),
                is_worth_repeating: false,
            },
        })
    }

    /// True if a registry on this machine was addressed with TLS and does not speak it.
    fn speaks_no_tls(&self, url: &Url, error: &reqwest::Error) -> bool {
        url.scheme() == "https" && self.image.is_loopback() && error.is_connect() && is_no_tls(error)
    }

    /// True if the URL addresses the registry's own server with its own scheme.
    fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.borrow().origin()
    }

    /// True if a URL from the registry may be requested: with TLS, unless the registry itself uses none.
    fn may_request(&self, url: &Url) -> bool {
        match url.scheme() {
            "https" => true,
            "http" => self.base.borrow().scheme() == "http",
            _ => false,
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Dropping it would wait for a DNS lookup in progress.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// True if a handshake failed because the server does not speak TLS, rather than because of a certificate.
fn is_no_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return matches!(tls, rustls::Error::InvalidMessage(_));
    }
    let io = error.downcast_ref::<std::io::Error>();
    if io.is_some_and(|io| matches!(io.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)) {
        return true;
    }
    // The inner error of an I/O error is not its source.
    let inner = io.and_then(std::io::Error::get_ref).map(|inner| inner as &(dyn std::error::Error + 'static));
    inner.or_else(|| error.source()).is_some_and(is_no_tls)
}

fn shown(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
