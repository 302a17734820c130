//! Methods described in files.

use grpc::{DescribeError, Description, Method, MethodPath, Streaming, describe};
use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Directory with a service whose messages are in another file, in a subdirectory.
fn shop() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("types")).unwrap();
    let types = r#"syntax = "proto3"; package shop.types; message Item { string name = 1; }"#;
    fs::write(folder.path().join("types/item.proto"), types).unwrap();
    let service = r#"syntax = "proto3"; package shop; import "types/item.proto"; import "google/protobuf/empty.proto";
        service Cart { rpc Add(stream types.Item) returns (google.protobuf.Empty); rpc Clear(types.Item) returns (types.Item); }"#;
    fs::write(folder.path().join("cart.proto"), service).unwrap();
    folder
}

fn add(description: &Description) -> Result<Method, DescribeError> {
    describe(description, &MethodPath::parse("/shop.Cart/Add").unwrap())
}

fn check(method: &Method) {
    assert_eq!(method.streaming(), Streaming { client: true, server: false });
    assert_eq!(method.encode(r#"{"name": "a"}"#).unwrap(), [b"\x0a\x01a"]);
}

fn proto(file: impl Into<PathBuf>, folders: &[&Path]) -> Description {
    let folders = folders.iter().map(|folder| folder.to_path_buf()).collect();
    Description::Proto { files: vec![file.into()], folders }
}

#[test]
fn proto_files_are_compiled_with_imports() {
    let folder = shop();
    check(&add(&proto(folder.path().join("cart.proto"), &[])).unwrap());
    check(&add(&proto(folder.path().join("cart.proto"), &[folder.path()])).unwrap());
}

#[test]
fn descriptor_set_is_read() {
    let folder = shop();
    let set = protox::compile([folder.path().join("cart.proto")], [folder.path()]).unwrap();
    let file = folder.path().join("set.binpb");
    fs::write(&file, prost::Message::encode_to_vec(&set)).unwrap();
    check(&add(&Description::Protoset(vec![file.clone()])).unwrap());

    // Without the imports the set is unusable; the error names the missing one.
    let alone = prost_reflect::prost_types::FileDescriptorSet {
        file: set.file.into_iter().filter(|file| file.name() == "cart.proto").collect(),
    };
    fs::write(&file, prost::Message::encode_to_vec(&alone)).unwrap();
    let error = add(&Description::Protoset(vec![file])).unwrap_err();
    assert!(error.source().unwrap().to_string().contains("types/item.proto"), "{error:?}");
    assert!(error.hint().unwrap().contains("--include_imports"));
}

#[test]
fn errors_report_file_and_line() {
    let folder = shop();
    let types = folder.path().join("types");
    add(&proto(folder.path().join("cart.proto"), &[folder.path(), &types])).unwrap();
    fs::remove_file(types.join("item.proto")).unwrap();
    let error = add(&proto(folder.path().join("cart.proto"), &[])).unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("cart.proto:1:") && cause.contains("'types/item.proto' not found"), "{cause}");
    assert!(error.hint().unwrap().contains("--proto-path"));

    fs::write(folder.path().join("bad.proto"), "syntax = \"proto3\";\nmessage {\n").unwrap();
    let error = add(&proto(folder.path().join("bad.proto"), &[])).unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("bad.proto:2:"), "{cause}");

    let error = add(&proto(folder.path().join("absent.proto"), &[])).unwrap_err();
    assert!(error.to_string().contains("absent.proto"), "{error}");
    fs::write(folder.path().join("junk"), [255; 40]).unwrap();
    let error = add(&Description::Protoset(vec![folder.path().join("junk")])).unwrap_err();
    assert!(error.to_string().contains("as a set of descriptors"), "{error}");
}

#[test]
fn unknown_syntax_of_a_set_is_reported() {
    let folder = shop();
    let mut set = protox::compile([folder.path().join("cart.proto")], [folder.path()]).unwrap();
    set.file[0].syntax = Some("editions".to_owned());
    let file = folder.path().join("set.binpb");
    fs::write(&file, prost::Message::encode_to_vec(&set)).unwrap();
    let cause = add(&Description::Protoset(vec![file])).unwrap_err().source().unwrap().to_string();
    assert!(cause.ends_with("has the syntax `editions`; proto2 and proto3 can be read"), "{cause}");
}

#[test]
fn unknown_service_or_method_error_lists_existing_ones() {
    let folder = shop();
    let description = proto(folder.path().join("cart.proto"), &[]);
    let find = |path: &str| describe(&description, &MethodPath::parse(path).unwrap()).unwrap_err();
    let error = find("/shop.Card/Add");
    assert_eq!(error.to_string(), "there is no service `shop.Card`");
    assert_eq!(error.hint().unwrap(), "there are: shop.Cart");
    let error = find("/shop.Cart/Remove");
    assert_eq!(error.to_string(), "the service `shop.Cart` has no method `Remove`");
    assert_eq!(error.hint().unwrap(), "it has: Add, Clear");
}
