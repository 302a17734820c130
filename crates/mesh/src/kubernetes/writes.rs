//! Sequential writes, with the times at which they were sent and acknowledged.

use super::client::ApiClient;
use super::object_ref::ObjectRef;
use super::request::{ApiRequest, send};
use crate::Result;
use experiment::environment::EnvironmentError;
use futures_util::stream::{self, StreamExt as _};
use kube::core::Request;
use kube::core::params::{Patch, PatchParams};
use serde_json::Value;
use std::time::{Duration, Instant};

const ACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Creates a new object.
    Create(Value),
    /// Sets the given fields of an existing object; lists are replaced as a whole.
    Merge(Value),
    /// Sets the `status` of an existing object.
    Status(Value),
    /// Deletes an object, if it still exists.
    Delete(ObjectRef),
}

/// Times of writes that the API has acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Performed {
    pub first_sent: Instant,
    /// When the last write was acknowledged.
    pub acknowledged: Instant,
    pub objects: usize,
}

impl ApiClient {
    /// Performs writes, each once the previous one is acknowledged. Stops at the first that fails.
    pub fn perform(&self, writes: &[Write]) -> Result<Performed> {
        let requests: Vec<ApiRequest> =
            writes.iter().map(|write| self.write_request(write)).collect::<Result<_>>()?;
        let operation = requests.first().map_or_else(String::new, |request| request.operation.clone());
        let client = self.client().clone();
        let work = stream::iter(requests).then(move |request| {
            let client = client.clone();
            async move {
                let sent = Instant::now();
                send(&client, request).await.map(|_| (sent, Instant::now()))
            }
        });
        let mut failed = None;
        let mut times: Vec<(Instant, Instant)> = Vec::with_capacity(writes.len());
        let waited = self.wait(ACKNOWLEDGED_TIMEOUT, work, |acknowledged| {
            acknowledged.map(|acknowledged| times.push(acknowledged)).map_err(|error| {
                let reason = error.reason.clone();
                failed = Some(self.explain(error));
                reason
            })
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        waited.map_err(|reason| EnvironmentError::new(operation, reason))?;
        let now = Instant::now();
        Ok(Performed {
            first_sent: times.first().map_or(now, |(sent, _)| *sent),
            acknowledged: times.last().map_or(now, |(_, acknowledged)| *acknowledged),
            objects: times.len(),
        })
    }

    fn write_request(&self, write: &Write) -> Result<ApiRequest> {
        let params = PatchParams::default();
        match write {
            Write::Create(object) => self.create_request(object),
            Write::Merge(object) => {
                let reference = ObjectRef::from_object(object)?;
                let resource = Request::new(self.collection(&reference));
                let request = resource.patch(&reference.name, &params, &Patch::Merge(object));
                ApiRequest::new(format!("change {reference}"), request)
            }
            Write::Status(object) => self.status_request(object),
            Write::Delete(reference) => self.delete_request(reference),
        }
    }
}
