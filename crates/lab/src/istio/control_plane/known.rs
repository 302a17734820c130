//! Which of the API's objects istiod has taken up, from its own list of them (`/debug/configz`).
//!
//! Only objects of Istio's own kinds are in that list. Once an object is there, whatever istiod sends to a proxy that connects
//! later agrees with it.

use super::ControlPlane;
use experiment::environment::EnvironmentError;
use serde::Deserialize;
use serde_json::Value;

/// Where istiod lists the objects that it has.
const LIST: &str = "/debug/configz";

/// What the groups of Istio's own kinds end with.
const OWN_GROUPS: &str = ".istio.io";

/// An object as istiod has it. Its version in the API says nothing here: that changes with the status that istiod itself writes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
struct Known {
    kind: String,
    metadata: Metadata,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    /// Tells it from others that had its name before.
    uid: String,
    /// Counts the changes of what it asks for.
    generation: Option<u64>,
}

impl ControlPlane {
    /// The first of these objects, given as the API answered for them, that istiod has not taken up yet. Those of other
    /// kinds than Istio's own are not looked for.
    pub(in crate::istio) fn first_unknown<'a>(
        &self,
        objects: &'a [Value],
    ) -> Result<Option<&'a Value>, EnvironmentError> {
        let known: Vec<Known> = self
            .istiod()
            .ask_long_json(LIST)
            .map_err(|error| EnvironmentError::new("look at what istiod knows", error))?;
        Ok(first_unknown(objects, &known))
    }
}

/// The first of these objects, as the API answered for them, that istiod does not have as they are.
fn first_unknown<'a>(objects: &'a [Value], known: &[Known]) -> Option<&'a Value> {
    objects.iter().filter(|object| is_istios_own(object)).find(|object| {
        let wanted = Known::deserialize(*object);
        !wanted.is_ok_and(|wanted| known.contains(&wanted))
    })
}

fn is_istios_own(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|version| version.split('/').next());
    group.is_some_and(|group| group.ends_with(OWN_GROUPS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_known_as_it_is_now() {
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
        let known: Vec<Known> = serde_json::from_value(json!([with_status])).unwrap();
        assert_eq!(first_unknown(&[object(7)], &known), None);
        assert_eq!(first_unknown(&[object(7), object(8)], &known), Some(&object(8)));
        let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert_eq!(first_unknown(&[foreign], &known), None);
    }
}
