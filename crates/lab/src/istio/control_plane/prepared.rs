//! Prepared objects, which a control plane writes to etcd before it starts kube-apiserver.
//!
//! Creating the definitions of Istio's kinds is most of kube-apiserver's startup work: each is validated, its
//! status is updated several times, and the API is rebuilt around it. The first start does this and saves the
//! results in a file of the components directory, together with the roles and API services that
//! kube-apiserver creates for itself. Later starts write them to etcd. A file that is damaged or was made
//! with other programs is ignored and replaced. Only objects of [`KINDS`] are kept, so no Secret, ConfigMap,
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
use std::path::{Path, PathBuf};

/// Name of the directory for these files, within the components directory.
const DIRECTORY: &str = "control-plane";

/// Number of digits of `made_from` in a file name.
const KEY_DIGITS: usize = 16;

/// Version of the file format; part of `made_from`.
const SCHEMA: &str = "meshmeter.prepared-objects/1";

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

#[derive(Debug, Deserialize, Serialize)]
struct Contents {
    made_from: String,
    sha256: String,
    objects: Vec<StoredObject>,
}

#[derive(Debug)]
pub(super) struct PreparedObjects {
    path: PathBuf,
    made_from: String,
}

impl PreparedObjects {
    /// The file for these programs and definitions; absent if there is no directory for it, or if a program's
    /// digest is unknown.
    pub fn new(programs: &IstioPrograms, definitions: &str) -> Option<Self> {
        let directory = components::folder().ok()?.join(DIRECTORY);
        let (etcd, api_server) = (programs.etcd.recorded().sha256?, programs.api_server.recorded().sha256?);
        Some(Self::in_directory(&directory, sha256_of_texts(&[SCHEMA, &etcd, &api_server, definitions])))
    }

    /// Each `made_from` has a file of its own: runs that compare versions alternate between them.
    fn in_directory(directory: &Path, made_from: String) -> Self {
        let key = made_from.get(..KEY_DIGITS).unwrap_or(&made_from);
        Self { path: directory.join(format!("prepared-objects-{key}.json")), made_from }
    }

    /// The objects, or `None` if there is no usable file.
    pub fn load(&self) -> Option<Vec<StoredObject>> {
        let contents: Contents = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let usable = contents.made_from == self.made_from
            && contents.sha256 == digest(&contents.objects)
            && contents.objects.iter().all(StoredObject::may_be_kept);
        usable.then_some(contents.objects)
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
        self.save(objects)?;
        Ok(true)
    }

    fn save(&self, objects: Vec<StoredObject>) -> io::Result<()> {
        let Some(directory) = self.path.parent() else { return Ok(()) };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let contents = Contents { made_from: self.made_from.clone(), sha256: digest(&objects), objects };
        // Readable only by its owner from the moment it exists.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec(&contents)?)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

impl StoredObject {
    fn key(&self) -> Option<String> {
        String::from_utf8(BASE64_STANDARD.decode(&self.key).ok()?).ok()
    }

    fn may_be_kept(&self) -> bool {
        self.key().is_some_and(|key| KINDS.iter().any(|kind| key.starts_with(kind)))
    }

    fn is_established(&self) -> bool {
        if !self.key().is_some_and(|key| key.starts_with(DEFINITIONS)) {
            return false;
        }
        let value = BASE64_STANDARD.decode(&self.value).unwrap_or_default();
        let definition: Value = serde_json::from_slice(&value).unwrap_or_default();
        let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
        conditions
            .into_iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
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

fn digest(objects: &[StoredObject]) -> String {
    let texts: Vec<&str> = objects.iter().flat_map(|object| [&*object.key, &*object.value]).collect();
    sha256_of_texts(&texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn object(key: &str, value: &str) -> StoredObject {
        StoredObject { key: BASE64_STANDARD.encode(key), value: BASE64_STANDARD.encode(value) }
    }

    fn definition(status: &str) -> StoredObject {
        let value = json!({"status": {"conditions": [{"type": "Established", "status": status}]}});
        object(&format!("{DEFINITIONS}gateways.networking.istio.io"), &value.to_string())
    }

    fn prepared(directory: &Path) -> PreparedObjects {
        PreparedObjects::in_directory(&directory.join(DIRECTORY), "these programs".to_owned())
    }

    #[test]
    fn saved_objects_are_loaded_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let prepared = prepared(directory.path());
        assert_eq!(prepared.load(), None);
        prepared.save(vec![definition("True")]).unwrap();
        assert_eq!(prepared.load(), Some(vec![definition("True")]));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&prepared.path), mode(prepared.path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn objects_of_other_programs_are_kept_but_not_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = ["aaaaaaaaaaaaaaaa1", "bbbbbbbbbbbbbbbb1"]
            .map(|made_from| PreparedObjects::in_directory(directory.path(), made_from.to_owned()));
        one.save(vec![definition("True")]).unwrap();
        assert_eq!(other.load(), None);
        other.save(vec![definition("True"), definition("False")]).unwrap();
        assert_eq!([one.load().unwrap().len(), other.load().unwrap().len()], [1, 2]);
        // The file name has only the first digits of the key.
        let alike = PreparedObjects::in_directory(directory.path(), "aaaaaaaaaaaaaaaa2".to_owned());
        assert_eq!(alike.load(), None);
    }

    #[test]
    fn damaged_file_is_ignored_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let prepared = prepared(directory.path());
        let whole = || {
            prepared.save(vec![definition("True")]).unwrap();
            fs::read_to_string(&prepared.path).unwrap()
        };
        let text = whole();
        let damages: [(&str, &dyn Fn() -> io::Result<()>); 4] = [
            ("empty", &|| fs::write(&prepared.path, "")),
            ("cut", &|| fs::write(&prepared.path, &text[..text.len() / 2])),
            ("changed", &|| {
                fs::write(&prepared.path, text.replace(&definition("True").value, &definition("False").value))
            }),
            ("from other programs", &|| {
                fs::write(&prepared.path, text.replace("these programs", "other programs"))
            }),
        ];
        for (what, damage) in damages {
            damage().unwrap();
            assert_eq!(prepared.load(), None, "{what}");
            assert_eq!(whole(), text, "{what}");
            assert!(prepared.load().is_some(), "{what}");
        }
    }

    #[test]
    fn objects_of_other_kinds_are_never_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let prepared = prepared(directory.path());
        for key in ["/registry/secrets/istio-system/istio-ca-secret", "/registry/rolesets/a", ""] {
            prepared.save(vec![definition("True"), object(key, "")]).unwrap();
            assert_eq!(prepared.load(), None, "{key}");
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
