//! Reads messages of protobuf by a definition in its own language, without generated types.

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage as _, Value};

/// Message `name` of a definition in one file.
pub fn descriptor(definition: &str, name: &str) -> MessageDescriptor {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("definition.proto"), definition).unwrap();
    let files = protox::compile(["definition.proto"], [folder.path()]).unwrap();
    DescriptorPool::from_file_descriptor_set(files).unwrap().get_message_by_name(name).unwrap()
}

/// Fails if the message itself has fields that its definition does not have.
pub fn check_known(message: &DynamicMessage) {
    let unknown: Vec<_> = message.unknown_fields().collect();
    assert!(unknown.is_empty(), "{}: {unknown:?}", message.descriptor().full_name());
}

pub fn list(message: &DynamicMessage, name: &str) -> Vec<Value> {
    message.get_field_by_name(name).unwrap().as_list().unwrap().to_vec()
}

/// The messages of a list, each without unknown fields.
pub fn messages(message: &DynamicMessage, name: &str) -> Vec<DynamicMessage> {
    let of_value = |value: Value| {
        let message = value.as_message().unwrap().clone();
        check_known(&message);
        message
    };
    list(message, name).into_iter().map(of_value).collect()
}

/// A message within this one, without unknown fields. `None` if it is absent.
pub fn inner(message: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    message.has_field_by_name(name).then(|| {
        let value = message.get_field_by_name(name).unwrap();
        let inner = value.as_message().unwrap().clone();
        check_known(&inner);
        inner
    })
}

pub fn text(message: &DynamicMessage, name: &str) -> String {
    message.get_field_by_name(name).unwrap().as_str().unwrap().to_owned()
}

pub fn float(message: &DynamicMessage, name: &str) -> f64 {
    message.get_field_by_name(name).unwrap().as_f64().unwrap()
}

pub fn integer(message: &DynamicMessage, name: &str) -> i64 {
    message.get_field_by_name(name).unwrap().as_i64().unwrap()
}

pub fn number(message: &DynamicMessage, name: &str) -> u64 {
    let value = message.get_field_by_name(name).unwrap();
    value.as_u64().or_else(|| value.as_u32().map(u64::from)).unwrap()
}
