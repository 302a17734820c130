//! Encodes requests of both variants.

use super::outbox::Outbox;
use super::wire::{put_bytes, put_message, put_number, put_text};
use experiment::xds::ResourceType;

/// gRPC code for a rejected response, as sent by Envoy.
const INTERNAL: u64 = 13;

/// A `DeltaDiscoveryRequest`.
pub(super) struct DeltaRequest<'a> {
    pub(super) resource_type: ResourceType,
    /// Encoded node; only in the first request of a stream.
    pub(super) node: Option<&'a [u8]>,
    pub(super) subscribe: &'a mut dyn Iterator<Item = &'a str>,
    pub(super) unsubscribe: &'a mut dyn Iterator<Item = &'a str>,
    /// Names and versions that are held; only in the first request for the type on a stream.
    pub(super) held: &'a mut dyn Iterator<Item = (&'a str, &'a str)>,
    pub(super) nonce: &'a str,
    /// Reason for a NACK.
    pub(super) rejection: Option<&'a str>,
}

impl DeltaRequest<'_> {
    pub(super) fn send(self, out: &mut Outbox) {
        out.push(|body| {
            if let Some(node) = self.node {
                put_bytes(body, 1, node);
            }
            put_text(body, 2, self.resource_type.url());
            for name in self.subscribe {
                put_bytes(body, 3, name.as_bytes());
            }
            for name in self.unsubscribe {
                put_bytes(body, 4, name.as_bytes());
            }
            for (name, version) in self.held {
                put_message(body, 5, |entry| {
                    put_bytes(entry, 1, name.as_bytes());
                    put_bytes(entry, 2, version.as_bytes());
                });
            }
            put_text(body, 6, self.nonce);
            if let Some(reason) = self.rejection {
                put_message(body, 7, |status| put_status(status, reason));
            }
        });
    }
}

/// A `DiscoveryRequest`.
pub(super) struct Request<'a> {
    pub(super) resource_type: ResourceType,
    /// Encoded node; only in the first request of a stream.
    pub(super) node: Option<&'a [u8]>,
    /// The last accepted version.
    pub(super) version: &'a str,
    /// All subscribed names.
    pub(super) names: &'a mut dyn Iterator<Item = &'a str>,
    pub(super) nonce: &'a str,
    /// Reason for a NACK.
    pub(super) rejection: Option<&'a str>,
}

impl Request<'_> {
    pub(super) fn send(self, out: &mut Outbox) {
        out.push(|body| {
            put_text(body, 1, self.version);
            if let Some(node) = self.node {
                put_bytes(body, 2, node);
            }
            for name in self.names {
                put_bytes(body, 3, name.as_bytes());
            }
            put_text(body, 4, self.resource_type.url());
            put_text(body, 5, self.nonce);
            if let Some(reason) = self.rejection {
                put_message(body, 6, |status| put_status(status, reason));
            }
        });
    }
}

/// A `google.rpc.Status`.
fn put_status(status: &mut Vec<u8>, message: &str) {
    put_number(status, 1, INTERNAL);
    put_text(status, 2, message);
}
