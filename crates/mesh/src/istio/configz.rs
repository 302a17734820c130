//! Which objects istiod has processed, from its own list of them.
//!
//! Only objects of Istio's own kinds are listed. Once an object is, whatever istiod sends to a proxy that connects later
//! agrees with it.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

/// Path of the list at istiod.
pub const PATH: &str = "/debug/configz";

/// Last part of the groups of Istio's own kinds.
const ISTIO_GROUPS: &str = ".istio.io";

/// Objects that istiod has processed.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(transparent)]
pub struct Configz(HashSet<ProcessedObject>);

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
    /// The first of these objects, as the API returned them, that istiod has not processed in this generation. Kinds that
    /// are not Istio's own are skipped.
    #[must_use]
    pub fn first_missing<'a>(&self, objects: &'a [Value]) -> Option<&'a Value> {
        objects.iter().filter(|object| is_istio(object)).find(|object| {
            let wanted = ProcessedObject::deserialize(*object);
            !wanted.is_ok_and(|wanted| self.0.contains(&wanted))
        })
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
    fn first_missing_compares_generations() {
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
        assert_eq!(configz.first_missing(&[object(7)]), None);
        assert_eq!(configz.first_missing(&[object(7), object(8)]), Some(&object(8)));
        let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert_eq!(configz.first_missing(&[foreign]), None);
    }
}
