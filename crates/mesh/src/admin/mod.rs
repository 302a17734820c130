//! HTTP to the admin port of a running component, over connections that the caller supplies ([`dial`]).
//! Every request has a timeout and a maximum response size, and every error names the component. Requests
//! block. Those of one thread share one runtime; [`crate::concurrent`] sends requests to many components in
//! parallel. [`liveness`] is the cheapest request to a component.

pub mod dial;
pub mod error;
mod exchange;
pub mod liveness;
#[cfg(test)]
mod tests;

use self::dial::Dial;
pub use self::error::{AdminCause, AdminError};
use self::exchange::Limits;
pub use self::exchange::ResponseBody;
use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a response, including those to liveness probes. A proxy under full load responds in milliseconds.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the first chunk of a long response: a proxy generates the whole body first, at some 15 MB per second.
pub const LONG_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a complete response: the longest ones take a minute.
const WHOLE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum size of a buffered response: a proxy's own state takes a few kilobytes.
const MAX_RESPONSE_BYTES: u64 = 16 << 20;
/// Maximum size of a proxy's counters: about 5 kB by default. If a user has a proxy keep all of them, there
/// are some hundred per cluster, some hundred bytes each, for 20 000 clusters.
const MAX_COUNTERS_BYTES: u64 = 256 << 20;
/// Maximum size of a long response: the configuration of the largest gateways takes some hundreds of megabytes.
const MAX_LONG_RESPONSE_BYTES: u64 = 4 << 30;

#[derive(Clone, Debug)]
pub struct Admin {
    component: String,
    dial: Arc<dyn Dial>,
    timeout: Duration,
}

impl Admin {
    pub fn new(component: impl Into<String>, dial: impl Dial + 'static) -> Self {
        Self { component: component.into(), dial: Arc::new(dial), timeout: RESPONSE_TIMEOUT }
    }

    /// A copy of this client with another response timeout.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    pub fn curl_arguments(&self, path: &str) -> Vec<String> {
        self.dial.curl_arguments(path)
    }

    pub(crate) fn counters_at(&self, path: &str) -> Result<BTreeMap<String, u64>, AdminError> {
        Ok(self.exchange(path, None, self.limits_of_counters(), json::<Statistics>)?.into_counters())
    }

    /// Counters in a format of the proxy's own.
    pub(crate) fn ask_counters(&self, path: &str) -> Result<Vec<u8>, AdminError> {
        self.exchange(path, None, self.limits_of_counters(), whole)
    }

    pub fn get_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, AdminError> {
        self.exchange(path, None, self.limits(), json)
    }

    pub fn ask_long_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, AdminError> {
        self.read(path, json)
    }

    pub fn get_long(&self, path: &str) -> Result<Vec<u8>, AdminError> {
        self.read(path, whole)
    }

    pub fn ask(&self, path: &str) -> Result<Vec<u8>, AdminError> {
        self.exchange(path, None, self.limits(), whole)
    }

    pub fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        message: &impl Serialize,
    ) -> Result<T, AdminError> {
        let message = serde_json::to_vec(message).map_err(|error| self.error(path, error.into()))?;
        self.exchange(path, Some(message.into()), self.limits(), json)
    }

    /// Streams a possibly long response to `read`, which parses it.
    pub fn read<T>(
        &self,
        path: &str,
        read: impl FnOnce(&mut dyn Read) -> Result<T, serde_json::Error>,
    ) -> Result<T, AdminError> {
        let (begin, bytes) = (LONG_RESPONSE_TIMEOUT, MAX_LONG_RESPONSE_BYTES);
        self.exchange(path, None, Limits { begin, bytes, ..self.limits() }, read)
    }

    /// Opens a response of any size, which may take any time as long as its pieces arrive.
    pub fn stream(&self, path: &str) -> Result<ResponseBody, AdminError> {
        let (begin, piece) = (LONG_RESPONSE_TIMEOUT, LONG_RESPONSE_TIMEOUT);
        self.open(path, None, Limits { begin, piece, whole: None, bytes: u64::MAX })
            .map_err(|cause| self.error(path, cause))
    }

    fn limits(&self) -> Limits {
        let (timeout, whole) = (self.timeout, Some(WHOLE_RESPONSE_TIMEOUT));
        Limits { begin: timeout, piece: timeout, whole, bytes: MAX_RESPONSE_BYTES }
    }

    fn limits_of_counters(&self) -> Limits {
        Limits { bytes: MAX_COUNTERS_BYTES, ..self.limits() }
    }

    fn open(&self, path: &str, message: Option<Bytes>, limits: Limits) -> Result<ResponseBody, AdminCause> {
        ResponseBody::request(self.dial.dial(self.timeout)?, path, message, limits)
    }

    /// Sends a request and has `read` parse the response.
    fn exchange<T>(
        &self,
        path: &str,
        message: Option<Bytes>,
        limits: Limits,
        read: impl FnOnce(&mut dyn Read) -> Result<T, serde_json::Error>,
    ) -> Result<T, AdminError> {
        let read = || Ok(read(&mut self.open(path, message, limits)?)?);
        read().map_err(|cause| self.error(path, cause))
    }

    pub(crate) fn error(&self, path: &str, cause: AdminCause) -> AdminError {
        let path = path.split('?').next().unwrap_or(path).to_owned();
        AdminError { proxy: self.component.clone(), path, cause }
    }
}

fn json<T: DeserializeOwned>(response: &mut dyn Read) -> Result<T, serde_json::Error> {
    // Twice as fast as from a reader, and the length of a response has a limit.
    serde_json::from_slice(&whole(response)?)
}

fn whole(response: &mut dyn Read) -> Result<Vec<u8>, serde_json::Error> {
    let mut whole = Vec::new();
    response.read_to_end(&mut whole).map_err(serde_json::Error::io)?;
    Ok(whole)
}

/// `/stats?format=json&type=Counters`.
#[derive(Deserialize)]
pub(crate) struct Statistics {
    stats: Vec<Counter>,
}

impl Statistics {
    pub(crate) fn into_counters(self) -> BTreeMap<String, u64> {
        self.stats.into_iter().map(|counter| (counter.name, counter.value)).collect()
    }
}

#[derive(Deserialize)]
struct Counter {
    name: String,
    value: u64,
}
