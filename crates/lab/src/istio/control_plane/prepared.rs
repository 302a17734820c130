//! Prepared objects, which a control plane writes to etcd before it starts kube-apiserver.
//!
//! Creating the definitions of Istio's kinds is most of kube-apiserver's startup work: each is validated, its
//! status is updated several times, and the API is rebuilt around it. The first start does this and saves the
//! results in a file of the components directory, together with the roles and API services that
//! kube-apiserver creates for itself. Later starts write them to etcd. A damaged file is ignored and
//! replaced; other programs have another file. Only objects of [`KINDS`] are kept, so no Secret, ConfigMap,
//! token or object of a run can be among them.

use crate::istio::programs::IstioPrograms;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use components::sha256_of_texts;
use mesh::admin::Admin;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

/// Name of the directory for these files, within the components directory.
const DIRECTORY: &str = "control-plane";

/// Version of the file format; part of the digest in a file's name.
const SCHEMA: &str = "meshmeter.prepared-objects/2";

/// Prefixes of the etcd keys of objects that are kept.
const KINDS: [&str; 6] = [
    DEFINITIONS,
    "/registry/apiregistration.k8s.io/apiservices/",
    "/registry/clusterrolebindings/",
    "/registry/clusterroles/",
    "/registry/rolebindings/",
    "/registry/roles/",
];

const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// Limits of a transaction: etcd accepts 128 operations of 1.5 MiB in total. Base64 makes them a third
/// larger.
const MAX_OPERATIONS: usize = 100;
const MAX_TRANSACTION_BYTES: usize = 1_000_000;

/// An object as stored in etcd, with key and value in base64.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct StoredObject {
    key: String,
    value: String,
}

/// The file of the objects that some programs and definitions make.
#[derive(Debug)]
pub(super) struct PreparedObjects(PathBuf);

impl PreparedObjects {
    /// The file for these programs and definitions; absent if there is no directory for it, or if a program's
    /// digest is unknown. Each choice of programs has a file of its own: runs that compare versions alternate
    /// between them.
    pub fn new(programs: &IstioPrograms, definitions: &str) -> Option<Self> {
        let directory = components::folder().ok()?.join(DIRECTORY);
        let (etcd, api_server) = (programs.etcd.recorded().sha256?, programs.api_server.recorded().sha256?);
        let made_from = sha256_of_texts(&[SCHEMA, &etcd, &api_server, definitions]);
        Some(Self(directory.join(format!("prepared-objects-{made_from}.json"))))
    }

    /// The objects, or `None` if there is no usable file.
    pub fn load(&self) -> Option<Vec<StoredObject>> {
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    /// Saves the objects of a control plane that has just started. Returns false if some of its `definitions`
    /// are not established yet.
    pub fn save_from(&self, etcd: &Admin, definitions: usize) -> io::Result<bool> {
        let mut objects = Vec::new();
        for kind in KINDS {
            // The first key after all keys with this prefix.
            let end = format!("{}0", kind.trim_end_matches('/'));
            let range =
                json!({"key": BASE64_STANDARD.encode(kind), "range_end": BASE64_STANDARD.encode(end)});
            let found: Range = etcd.post_json("/v3/kv/range", &range).map_err(io::Error::other)?;
            objects.extend(found.kvs);
        }
        if objects.iter().filter(|object| object.is_established()).count() != definitions {
            return Ok(false);
        }
        self.save(&objects)?;
        Ok(true)
    }

    fn save(&self, objects: &[StoredObject]) -> io::Result<()> {
        let Some(directory) = self.0.parent() else { return Ok(()) };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // Readable only by its owner from the moment it exists, and whole as soon as it has its name.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec(objects)?)?;
        file.persist(&self.0)?;
        Ok(())
    }
}

impl StoredObject {
    fn is_established(&self) -> bool {
        let key = BASE64_STANDARD.decode(&self.key).unwrap_or_default();
        if !key.starts_with(DEFINITIONS.as_bytes()) {
            return false;
        }
        let value = BASE64_STANDARD.decode(&self.value).unwrap_or_default();
        let definition: Value = serde_json::from_slice(&value).unwrap_or_default();
        let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    }
}

/// Writes objects to an etcd. It may be repeated.
pub(super) fn write_to(etcd: &Admin, objects: &[StoredObject]) -> bool {
    transactions(objects).into_iter().all(|transaction| {
        let puts: Vec<Value> = transaction.iter().map(|object| json!({"requestPut": object})).collect();
        etcd.post_json("/v3/kv/txn", &json!({"success": puts}))
            .is_ok_and(|done: Value| done["succeeded"] == true)
    })
}

/// Splits the objects into consecutive groups within etcd's limits.
fn transactions(objects: &[StoredObject]) -> Vec<&[StoredObject]> {
    let (mut transactions, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (index, object) in objects.iter().enumerate() {
        let length = object.key.len() + object.value.len();
        if index > begin && (bytes + length > MAX_TRANSACTION_BYTES || index - begin == MAX_OPERATIONS) {
            transactions.push(&objects[begin..index]);
            (begin, bytes) = (index, 0);
        }
        bytes += length;
    }
    transactions.extend((begin < objects.len()).then(|| &objects[begin..]));
    transactions
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<StoredObject>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    fn object(key: &str, value: &str) -> StoredObject {
        StoredObject { key: BASE64_STANDARD.encode(key), value: BASE64_STANDARD.encode(value) }
    }

    fn definition(status: &str) -> StoredObject {
        let value = json!({"status": {"conditions": [{"type": "Established", "status": status}]}});
        object(&format!("{DEFINITIONS}gateways.networking.istio.io"), &value.to_string())
    }

    #[test]
    fn saved_objects_are_loaded_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let prepared = PreparedObjects(directory.path().join(DIRECTORY).join("prepared"));
        assert_eq!(prepared.load(), None);
        prepared.save(&[definition("True")]).unwrap();
        assert_eq!(prepared.load(), Some(vec![definition("True")]));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&prepared.0), mode(prepared.0.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn damaged_file_is_ignored_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let prepared = PreparedObjects(directory.path().join("prepared"));
        prepared.save(&[definition("True")]).unwrap();
        let whole = fs::read_to_string(&prepared.0).unwrap();
        for damaged in ["", &whole[..whole.len() / 2]] {
            fs::write(&prepared.0, damaged).unwrap();
            assert_eq!(prepared.load(), None, "{damaged}");
            prepared.save(&[definition("True")]).unwrap();
            assert_eq!(fs::read_to_string(&prepared.0).unwrap(), whole);
        }
    }

    #[test]
    fn only_established_definitions_count() {
        assert!(definition("True").is_established());
        assert!(!definition("False").is_established());
        assert!(!object(DEFINITIONS, "no JSON").is_established());
        let role = object(
            "/registry/roles/a",
            r#"{"status":{"conditions":[{"type":"Established","status":"True"}]}}"#,
        );
        assert!(!role.is_established());
    }

    #[test]
    fn transactions_stay_within_limits_and_are_complete() {
        let large = "x".repeat(MAX_TRANSACTION_BYTES / 2);
        let objects: Vec<StoredObject> = (0..250)
            .map(|index| object(&index.to_string(), if index % 100 == 7 { &large } else { "" }))
            .collect();
        let transactions = transactions(&objects);
        assert_eq!(transactions.concat(), objects);
        for transaction in transactions {
            let bytes: usize = transaction.iter().map(|object| object.key.len() + object.value.len()).sum();
            assert!(
                !transaction.is_empty()
                    && transaction.len() <= MAX_OPERATIONS
                    && bytes <= MAX_TRANSACTION_BYTES
            );
        }
        assert!(super::transactions(&[]).is_empty());
    }
}
