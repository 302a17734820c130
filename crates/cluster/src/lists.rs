//! Lists of the objects of a kind (API version and name), in one or all namespaces, that match a label selector
//! (empty: all).

use crate::Result;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::lists::{Listed, Shown};
use serde_json::Value;

pub(crate) fn list_objects(
    api: &ApiClient,
    kind: (&str, &str),
    namespace: Option<&str>,
    selector: &str,
) -> Result<Vec<Value>> {
    let objects = list_unless(api, &[], kind, namespace, selector)?;
    Ok(objects.unwrap_or_default())
}

/// Absent if this user may not list the objects.
pub(crate) fn list_allowed(
    api: &ApiClient,
    kind: (&str, &str),
    namespace: Option<&str>,
    selector: &str,
) -> Result<Option<Vec<Value>>> {
    list_unless(api, &[403], kind, namespace, selector)
}

fn list_unless(
    api: &ApiClient,
    absent_on: &'static [u16],
    kind: (&str, &str),
    namespace: Option<&str>,
    selector: &str,
) -> Result<Option<Vec<Value>>> {
    let place = namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
    let listed = Listed { kind, namespace, selector, fields: "", shown: Shown::Whole };
    api.list(&format!("list {} objects{place}", kind.1), &listed, absent_on)
}

/// Warnings of a namespace. A large deployment has thousands of other events.
pub(crate) fn list_warnings(api: &ApiClient, namespace: &str) -> Result<Vec<Value>> {
    let (kind, namespace) = (("v1", "Event"), Some(namespace));
    let listed = Listed { kind, namespace, selector: "", fields: "type=Warning", shown: Shown::Whole };
    Ok(api.list("list warnings", &listed, &[])?.unwrap_or_default())
}
