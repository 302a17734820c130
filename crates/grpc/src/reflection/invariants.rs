//! Invariants of a description, whatever a server responds.

use super::{MAX_FILES, ServerReflectionResponse, missing, take};
use crate::descriptors::pool;
use crate::method::{Method, MethodPath};
use prost::Message as _;
use std::collections::BTreeMap;

/// Fields of a message that may contain itself, of every kind of value in protobuf's JSON.
const MESSAGE: &str =
    r#"{"name": "a", "count": 1, "flag": true, "list": [1.5], "items": [{}], "map": {"k": null}}"#;

/// Reads responses of a server, which are in the fields 1 of one message, and checks what is known of its files and
/// methods. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_reflection(input: &[u8]) {
    let Ok(Responses { responses }) = Responses::decode(input) else { return };
    let mut files = BTreeMap::new();
    for response in responses {
        if take(response.message_response, &mut files).is_err() {
            return;
        }
    }
    assert!(files.len() <= MAX_FILES);
    let missing = missing(&files);
    assert!(missing.iter().all(|name| !files.contains_key(name)));
    assert!(missing.is_sorted());
    let count = files.len();
    let Ok(pool) = pool(files.into_values().collect()) else { return };
    assert!(missing.is_empty() && pool.files().len() == count, "{missing:?}");
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let Ok(path) = MethodPath::parse(&path) else { continue };
        let method = Method::find(&pool, &path).expect("the pool has it");
        let empty = method.encode("").expect("an empty message needs no field");
        assert_eq!(empty, [Vec::<u8>::new()]);
        let _ = (method.streaming(), method.encode(MESSAGE));
    }
}

/// Several responses as one message.
#[derive(Clone, PartialEq, prost::Message)]
struct Responses {
    #[prost(message, repeated, tag = "1")]
    responses: Vec<ServerReflectionResponse>,
}
