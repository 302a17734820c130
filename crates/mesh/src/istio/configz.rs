//! Objects that istiod has processed, from its own list (configz), which has only objects of Istio's own
//! kinds. Once an object is listed, everything that istiod sends to a proxy that connects later reflects it.

use crate::Result;
use crate::admin::Admin;
use crate::kubernetes::object_ref::ObjectRef;
use crate::wait::{Progress, wait_with_progress};
use experiment::environment::{EnvironmentError, ErrorContext};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

const PATH: &str = "/debug/configz";
const ISTIO_GROUPS: &str = ".istio.io";
/// Timeout without progress. istiod processes objects within milliseconds, and never those of another Istio revision.
const PROCESSED_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until istiod has processed these objects, given as the API returned them. Returns an error as soon
/// as `check` does.
pub fn wait_until_processed(istiod: &Admin, objects: &[Value], check: impl Fn() -> Result<()>) -> Result<()> {
    let mut first = None;
    let waited =
        wait_with_progress("istiod has read the objects of the experiment", PROCESSED_TIMEOUT, || {
            check()?;
            let processed: HashSet<ProcessedObject> =
                istiod.ask_long_json(PATH).context("query the objects that istiod has read")?;
            let missing = missing(&processed, objects);
            first = missing.first().copied();
            Ok(if missing.is_empty() { Progress::Done(()) } else { Progress::At(missing.len()) })
        });
    waited.map_err(|error| match first.map(ObjectRef::from_object) {
        Some(Ok(object)) => EnvironmentError::new(format!("apply {object}"), error),
        _ => error,
    })
}

/// An object in istiod's list. Its resource version is not compared: it changes with the status that istiod
/// itself writes.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
pub(crate) struct ProcessedObject {
    kind: String,
    metadata: Metadata,
}

#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    /// Differs from the UIDs of earlier objects of the same name.
    uid: String,
    /// Incremented on every change of the spec.
    generation: Option<u64>,
}

/// Objects, as the API returned them, whose current generation istiod has not processed. Skips kinds that
/// are not Istio's own.
pub(crate) fn missing<'a>(processed: &HashSet<ProcessedObject>, objects: &'a [Value]) -> Vec<&'a Value> {
    let is_missing = |object: &&Value| {
        let wanted = ProcessedObject::deserialize(*object);
        !wanted.is_ok_and(|wanted| processed.contains(&wanted))
    };
    objects.iter().filter(|object| is_istio(object)).filter(is_missing).collect()
}

fn is_istio(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|version| version.split('/').next());
    group.is_some_and(|group| group.ends_with(ISTIO_GROUPS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_compares_generations() {
        let object = |generation: u64| {
            json!({
                "apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "spec": {},
                "metadata": {
                    "name": "default", "namespace": "mesh-1", "uid": "u", "generation": generation,
                    "resourceVersion": "5",
                },
            })
        };
        let mut with_status = object(7);
        with_status["metadata"]["resourceVersion"] = json!("6");
        let processed = serde_json::from_value(json!([with_status])).unwrap();
        assert!(missing(&processed, &[object(7)]).is_empty());
        assert_eq!(missing(&processed, &[object(7), object(8)]), [&object(8)]);
        let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert!(missing(&processed, &[foreign]).is_empty());
    }
}
