//! Sequential writes, with the times at which they were sent and acknowledged.

use crate::Result;
use kube::core::params::{Patch, PatchParams};
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::request::ApiRequest;
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
}

/// Performs writes, each once the previous one is acknowledged. Stops at the first that fails.
pub fn perform(api: &ApiClient, writes: &[Write]) -> Result<Performed> {
    let requests = writes.iter().map(|write| request(api, write)).collect::<Result<_>>()?;
    let responses = api.send_in_order(ACKNOWLEDGED_TIMEOUT, requests)?;
    let now = Instant::now();
    Ok(Performed {
        first_sent: responses.first().map_or(now, |first| first.sent),
        acknowledged: responses.last().map_or(now, |last| last.received),
    })
}

fn request(api: &ApiClient, write: &Write) -> Result<ApiRequest> {
    match write {
        Write::Create(object) => api.create_request(object),
        Write::Merge(object) => {
            let reference = ObjectRef::from_object(object)?;
            api.request("change", &reference, |resource| {
                resource.patch(&reference.name, &PatchParams::default(), &Patch::Merge(object))
            })
        }
        Write::Status(object) => api.status_request(object),
        Write::Delete(reference) => api.delete_request(reference),
    }
}
