//! Responses other than the requested one: whether to retry, and the error that they represent.

use super::{MAX_RETRIES, Session, shown};
use crate::ImageError;
use crate::error::one_line;
use http::{HeaderMap, StatusCode, header};
use reqwest::Response;
use std::time::{Duration, Instant};

/// Maximum size of an error's text that is read.
const MAX_ERROR_BYTES: u64 = 64 << 10;
const MAX_SHOWN_CHARS: usize = 200;

impl Session<'_> {
    /// If a retry can help, waits for the time that the server requests; returns `false` if it cannot.
    pub(super) fn waited_to_repeat(&self, response: &Response, retries: u32) -> Result<bool, ImageError> {
        let status = response.status();
        let is_temporary = status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT
            || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED);
        if !is_temporary || retries == MAX_RETRIES {
            return Ok(false);
        }
        let pause = retry_after(response.headers()).unwrap_or_else(|| self.backoff(retries));
        if pause > self.limits().max_retry_after {
            return Ok(false);
        }
        self.pause(pause)?;
        Ok(true)
    }

    /// The error that a response represents.
    pub(super) fn describe_failure(&self, response: Response) -> ImageError {
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let text = match self.read_body(response, MAX_ERROR_BYTES, "error") {
            Err(interrupted @ ImageError::Interrupted { .. }) => return interrupted,
            Ok(Ok(body)) => message_of(&body),
            _ => String::new(),
        };
        let reason = if text.is_empty() { status.to_string() } else { format!("{status}: {text}") };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.refused(reason),
            StatusCode::NOT_FOUND => {
                ImageError::NotFound { image: self.image.to_string(), registry: self.registry(), reason }
            }
            StatusCode::TOO_MANY_REQUESTS => ImageError::RateLimited {
                image: self.image.to_string(),
                registry: self.registry(),
                reason: match retry_after {
                    Some(pause) => format!("{reason} (again in {} s)", pause.as_secs()),
                    None => reason,
                },
            },
            status if status.is_server_error() => self.unreachable(format!("it responds {reason}")),
            _ => self.invalid(reason),
        }
    }

    /// Reads a small body. The inner error is that of a broken connection.
    pub(super) fn read_body(
        &self,
        mut response: Response,
        max_bytes: u64,
        what: &str,
    ) -> Result<Result<Vec<u8>, String>, ImageError> {
        let started = Instant::now();
        let mut body = Vec::new();
        loop {
            match self.next_chunk(&mut response)? {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Ok(body)),
                Err(reason) => return Ok(Err(reason)),
            }
            if body.len() as u64 > max_bytes {
                return Err(self.invalid(format!("its {what} is larger than {} KiB", max_bytes >> 10)));
            }
            let timeout = self.limits().document_timeout;
            if started.elapsed() > timeout {
                return Err(self.unreachable(format!("its {what} did not come within {}", shown(timeout))));
            }
        }
    }
}

/// The server's error message, if it is in OCI's format or a short text.
pub(super) fn message_of(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Envelope {
        errors: Vec<Item>,
    }
    #[derive(serde::Deserialize)]
    struct Item {
        #[serde(default)]
        code: String,
        #[serde(default)]
        message: String,
    }
    if let Ok(envelope) = serde_json::from_slice::<Envelope>(body) {
        let item = envelope.errors.into_iter().next();
        let message = item.map(|item| if item.message.is_empty() { item.code } else { item.message });
        return one_line(&message.unwrap_or_default(), MAX_SHOWN_CHARS);
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_ERROR_BYTES as usize)]);
    if text.contains('<') { String::new() } else { one_line(&text, MAX_SHOWN_CHARS) }
}

/// The pause in seconds, which is the format that registries use.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
