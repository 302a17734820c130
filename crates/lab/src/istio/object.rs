//! What names an object of the API.

use experiment::environment::EnvironmentError;
use serde_json::Value;
use std::fmt;

/// Names one object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// Such as `v1` or `networking.istio.io/v1`.
    pub api_version: String,
    /// Such as `Service`.
    pub kind: String,
    /// Its namespace; absent for what belongs to the whole cluster.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// Names an object.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
        }
    }

    /// Whether both name the same object, be it in another version.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        let names = |reference: &Self| {
            let Self { api_version, kind, namespace, name } = reference.clone();
            // A version without a group is the core's.
            let group = api_version.rsplit_once('/').map(|(group, _)| group.to_owned());
            (group, kind, namespace, name)
        };
        names(self) == names(other)
    }

    /// What an object says of itself.
    ///
    /// # Errors
    /// Where it lacks `apiVersion`, `kind` or `metadata.name`.
    pub fn of(object: &Value) -> Result<Self, EnvironmentError> {
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let missing = |field: &str| {
            let start: String = object.to_string().chars().take(120).collect();
            EnvironmentError::new("read an object of the mesh", format!("it has no {field}: {start}"))
        };
        Ok(Self {
            api_version: text(&object["apiVersion"]).ok_or_else(|| missing("apiVersion"))?,
            kind: text(&object["kind"]).ok_or_else(|| missing("kind"))?,
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]).ok_or_else(|| missing("metadata.name"))?,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_the_same_in_all_its_versions() {
        let policy = Reference::new("security.istio.io/v1", "PeerAuthentication", Some("mesh-1"), "default");
        let older = Reference { api_version: "security.istio.io/v1beta1".to_owned(), ..policy.clone() };
        assert!(policy.is_same_as(&older));
        for other in [
            Reference { api_version: "other.example/v1".to_owned(), ..policy.clone() },
            Reference { kind: "RequestAuthentication".to_owned(), ..policy.clone() },
            Reference { namespace: None, ..policy.clone() },
            Reference { name: "server".to_owned(), ..policy.clone() },
        ] {
            assert!(!policy.is_same_as(&other), "{other}");
        }
        let core = Reference::new("v1", "Service", None, "a");
        assert!(core.is_same_as(&Reference::new("v2", "Service", None, "a")));
    }

    #[test]
    fn an_object_names_itself_or_what_it_lacks() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server", "namespace": "mesh-1"}});
        assert_eq!(Reference::of(&service).unwrap().to_string(), "Service mesh-1/server");
        let nameless = json!({"apiVersion": "v1", "kind": "Service"});
        let error = Reference::of(&nameless).unwrap_err();
        assert!(error.source.unwrap().to_string().starts_with("it has no metadata.name"));
    }
}
