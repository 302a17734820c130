//! Which objects istiod has processed, from its own list of them. Only objects of Istio's own kinds are listed. Once an
//! object is, whatever istiod sends to a proxy that connects later agrees with it.

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
/// Without progress. istiod processes objects within milliseconds, and those of another revision of Istio never.
const PROCESSED_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until istiod has processed these objects, as the API returned them. Fails with `check`.
pub fn wait_until_processed(istiod: &Admin, objects: &[Value], check: impl Fn() -> Result<()>) -> Result<()> {
    let mut first = None;
    let waited = wait_with_progress("istiod knows what the experiment asks for", PROCESSED_TIMEOUT, || {
        check()?;
        let processed: Configz = istiod.ask_long_json(PATH).context("look at what istiod knows")?;
        let missing = processed.missing(objects);
        first = missing.first().copied();
        Ok(if missing.is_empty() { Progress::Done(()) } else { Progress::At(missing.len()) })
    });
    waited.map_err(|error| match first.map(ObjectRef::from_object) {
        Some(Ok(object)) => EnvironmentError::new(format!("apply {object}"), error),
        _ => error,
    })
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(transparent)]
struct Configz(HashSet<ProcessedObject>);

/// An object as istiod has it. Its resource version is of no use: it changes with the status that istiod writes itself.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
struct ProcessedObject {
    kind: String,
    metadata: Metadata,
}

#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    /// Differs from those of earlier objects of this name.
    uid: String,
    /// Number of changes of the specification.
    generation: Option<u64>,
}

impl Configz {
    /// Objects, as the API returned them, that istiod has not processed in this generation. Only Istio's own kinds count.
    fn missing<'a>(&self, objects: &'a [Value]) -> Vec<&'a Value> {
        let is_missing = |object: &&Value| {
            let wanted = ProcessedObject::deserialize(*object);
            !wanted.is_ok_and(|wanted| self.0.contains(&wanted))
        };
        objects.iter().filter(|object| is_istio(object)).filter(is_missing).collect()
    }
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
        let configz: Configz = serde_json::from_value(json!([with_status])).unwrap();
        assert!(configz.missing(&[object(7)]).is_empty());
        assert_eq!(configz.missing(&[object(7), object(8)]), [&object(8)]);
        let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert!(configz.missing(&[foreign]).is_empty());
    }
}
