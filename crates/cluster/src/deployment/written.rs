//! Objects of a deployment, from writing them until their pods are gone.

use crate::Result;
use crate::lists::list_objects;
use crate::retry::{API_TIMEOUT, retry};
use experiment::environment::EnvironmentError;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use serde_json::Value;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time without another pod of a removed deployment being gone.
const GONE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Objects of a deployment, without its namespaces. Dropping it removes them.
#[derive(Debug)]
pub(super) struct Written {
    pub api: Arc<ApiClient>,
    pub selector: String,
    pub namespaces: Vec<String>,
    pub objects: Vec<ObjectRef>,
}

impl Written {
    /// Pods of the run in the namespaces of this deployment.
    pub fn pods(&self) -> Result<Vec<Value>> {
        let mut pods = Vec::new();
        for namespace in &self.namespaces {
            pods.extend(list_objects(&self.api, ("v1", "Pod"), Some(namespace), &self.selector)?);
        }
        Ok(pods)
    }

    /// Removes the objects and waits until their pods are gone, since the next deployment uses the same
    /// names.
    pub fn remove(&mut self) -> Result<()> {
        if self.objects.is_empty() {
            return Ok(());
        }
        self.objects.reverse();
        retry(API_TIMEOUT, || self.api.delete(&self.objects, &|_| ()))?;
        self.objects.clear();
        let (mut fewest, mut changed_at) = (usize::MAX, Instant::now());
        loop {
            let left = retry(API_TIMEOUT, || self.pods())?;
            let Some(first) = left.first() else { return Ok(()) };
            if left.len() < fewest {
                (fewest, changed_at) = (left.len(), Instant::now());
            }
            if changed_at.elapsed() > GONE_TIMEOUT {
                let name = first["metadata"]["name"].as_str().unwrap_or_default();
                let reason = format!("{} pods are still there, such as {name}", left.len());
                return Err(EnvironmentError::new("remove a deployment", reason));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // `cluster clean` finds objects that cannot be removed.
        let _ = self.remove();
    }
}
