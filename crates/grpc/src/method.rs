//! Methods: their path, and their descriptor.

use crate::error::DescribeError;
use crate::health;
use crate::message::{self, MessageError};
use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};
use std::fmt;

/// Path of a gRPC request: `/package.Service/Method`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MethodPath {
    path: String,
    service_end: usize,
}

impl MethodPath {
    /// Parses the path of a URL. An empty path means the health check, `/grpc.health.v1.Health/Check`.
    ///
    /// # Errors
    /// Returns an error if it is not of the form service/method.
    pub fn parse(path: &str) -> Result<Self, DescribeError> {
        if matches!(path, "" | "/") {
            return Self::parse(&format!("/{}/Check", health::SERVICE));
        }
        let parts = path.strip_prefix('/').and_then(|names| names.split_once('/'));
        match parts {
            Some((service, method)) if is_full_name(service) && is_name(method) => {
                Ok(Self { path: path.to_owned(), service_end: 1 + service.len() })
            }
            _ => Err(DescribeError::NotAMethod(path.to_owned())),
        }
    }

    /// The whole path, as in requests.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// Service with its package, such as `package.Service`.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.path[1..self.service_end]
    }

    /// Name of the method only.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.path[self.service_end + 1..]
    }
}

impl fmt::Display for MethodPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path[1..])
    }
}

fn is_full_name(text: &str) -> bool {
    text.split('.').all(is_name)
}

fn is_name(text: &str) -> bool {
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Sides of a call that send a stream of messages instead of a single one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Streaming {
    /// True for client streaming.
    pub client: bool,
    /// True for server streaming.
    pub server: bool,
}

/// Method with its descriptor.
#[derive(Clone, Debug)]
pub struct Method(MethodDescriptor);

impl Method {
    pub(crate) fn find(pool: &DescriptorPool, path: &MethodPath) -> Result<Self, DescribeError> {
        let service = pool.get_service_by_name(path.service()).ok_or_else(|| {
            let names = pool.services().map(|service| service.full_name().to_owned());
            DescribeError::unknown_service(path.service(), names)
        })?;
        let method = service.methods().find(|method| method.name() == path.method());
        method.map(Self).ok_or_else(|| unknown_method(&service, path))
    }

    /// Streaming sides of the method.
    #[must_use]
    pub fn streaming(&self) -> Streaming {
        Streaming { client: self.0.is_client_streaming(), server: self.0.is_server_streaming() }
    }

    /// Encodes messages from JSON, without gRPC framing. An object is one message; an array, or a sequence of
    /// objects, is one message each. An empty text is one empty message.
    ///
    /// # Errors
    /// Returns an error if the text is not JSON or does not fit the method's message type. The error contains
    /// the path of the field.
    pub fn encode(&self, json: &str) -> Result<Vec<Vec<u8>>, MessageError> {
        message::encode(&self.0.input(), json)
    }
}

fn unknown_method(service: &ServiceDescriptor, path: &MethodPath) -> DescribeError {
    DescribeError::UnknownMethod {
        service: path.service().to_owned(),
        method: path.method().to_owned(),
        known: service.methods().map(|method| method.name().to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_service_and_a_method() {
        let path = MethodPath::parse("/shop.v1.Cart/Add").unwrap();
        assert_eq!(
            (path.service(), path.method(), path.as_str()),
            ("shop.v1.Cart", "Add", "/shop.v1.Cart/Add")
        );
        assert_eq!(path.to_string(), "shop.v1.Cart/Add");
        for empty in ["", "/"] {
            assert_eq!(MethodPath::parse(empty).unwrap().as_str(), "/grpc.health.v1.Health/Check");
        }
        for wrong in ["/Cart", "/shop.Cart/", "//Add", "/shop..Cart/Add", "/a/b/c", "/a/b?c=d", "/1a/b"] {
            let error = MethodPath::parse(wrong).unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
    }

    #[test]
    fn health_service_is_built_in() {
        let find = |path: &str| Method::find(&health::pool(), &MethodPath::parse(path).unwrap());
        let check = find("/").unwrap();
        assert_eq!(check.streaming(), Streaming::default());
        assert_eq!(check.encode(r#"{"service": "a"}"#).unwrap(), [b"\x0a\x01a"]);
        let watch = find("/grpc.health.v1.Health/Watch").unwrap();
        assert_eq!(watch.streaming(), Streaming { client: false, server: true });
        let error = find("/grpc.health.v1.Health/List").unwrap_err();
        assert_eq!(error.hint().as_deref(), Some("it has: Check, Watch"));
    }
}
