//! References to objects of the API.

use crate::Result;
use experiment::environment::EnvironmentError;
use serde_json::Value;
use std::fmt;

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ObjectRef {
    /// Such as `v1` or `networking.istio.io/v1`.
    pub api_version: String,
    pub kind: String,
    /// Absent for cluster-scoped objects.
    pub namespace: Option<String>,
    pub name: String,
}

/// API version and kind, such as `("v1", "Service")`.
pub type Kind = (&'static str, &'static str);

/// Group, kind, namespace and name: identifies an object regardless of the API version.
pub type ObjectKey = (String, String, Option<String>, String);

impl ObjectRef {
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
        }
    }

    pub fn from_object(object: &Value) -> Result<Self> {
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

    pub fn api_kind(&self) -> (&str, &str) {
        (&self.api_version, &self.kind)
    }

    pub fn key(&self) -> ObjectKey {
        let group = group_version(&self.api_version).0.to_owned();
        (group, self.kind.clone(), self.namespace.clone(), self.name.clone())
    }
}

/// API group and version of an API version; the core group is empty.
pub fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

impl fmt::Display for ObjectRef {
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
    fn key_is_equal_in_all_api_versions() {
        let policy = ObjectRef::new("security.istio.io/v1", "PeerAuthentication", Some("mesh-1"), "default");
        let older = ObjectRef { api_version: "security.istio.io/v1beta1".to_owned(), ..policy.clone() };
        assert_eq!(policy.key(), older.key());
        for other in [
            ObjectRef { api_version: "other.example/v1".to_owned(), ..policy.clone() },
            ObjectRef { kind: "RequestAuthentication".to_owned(), ..policy.clone() },
            ObjectRef { namespace: None, ..policy.clone() },
            ObjectRef { name: "server".to_owned(), ..policy.clone() },
        ] {
            assert_ne!(policy.key(), other.key(), "{other}");
        }
        let core = ObjectRef::new("v1", "Service", None, "a");
        assert_eq!(core.key(), ObjectRef::new("v2", "Service", None, "a").key());
    }

    #[test]
    fn from_object_names_the_object_or_the_missing_field() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server", "namespace": "mesh-1"}});
        assert_eq!(ObjectRef::from_object(&service).unwrap().to_string(), "Service mesh-1/server");
        let nameless = json!({"apiVersion": "v1", "kind": "Service"});
        let error = ObjectRef::from_object(&nameless).unwrap_err();
        assert!(error.source.unwrap().to_string().starts_with("it has no metadata.name"));
    }
}
