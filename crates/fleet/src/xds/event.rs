//! Events reported by a session.

use super::marks::MarkId;
use experiment::xds::ResourceType;
use std::time::Instant;

/// A time on the monotonic clock.
pub type Moment = Instant;

/// An observation of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A complete response arrived.
    Response(Response),
    /// The content of an expected mark arrived and was accepted. The session no longer expects it.
    Arrived {
        /// The mark.
        mark: MarkId,
        /// Arrival of the bytes that completed it; for content that must be gone, the end of the resource or
        /// response.
        at: Moment,
    },
    /// The first complete configuration of this connection: every type was answered, and everything named by
    /// clusters and listeners is held.
    Complete {
        /// Arrival of its last response.
        at: Moment,
    },
    /// The control plane violated the protocol.
    Violation {
        /// Kind of violation.
        kind: Violation,
        /// Type of the response, if it is known.
        resource_type: Option<ResourceType>,
    },
}

/// A response for one resource type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// Resource type; absent if it is unknown.
    pub resource_type: Option<ResourceType>,
    /// Length of the body in bytes.
    pub bytes: u64,
    /// Number of resources.
    pub resources: u32,
    /// Number of routes in them, of route configurations.
    pub routes: u32,
    /// Number of resources that it lists as removed.
    pub removed: u32,
    /// True if it was acknowledged, false if it was rejected (NACK).
    pub accepted: bool,
    /// Arrival of its last bytes.
    pub at: Moment,
}

/// A protocol violation that a client can detect.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum Violation {
    /// A response without a nonce.
    EmptyNonce,
    /// A response with the same nonce as the previous one.
    RepeatedNonce,
    /// A response of a type that no proxy knows.
    UnknownType,
    /// A response of a type that was not requested.
    UnrequestedType,
    /// A resource whose type differs from that of its response.
    MixedTypes,
    /// A body that is not the response message of the method. The stream ends.
    UndecodableMessage,
    /// A resource that cannot be decoded. The response is rejected.
    UndecodableResource,
    /// A resource without a name. The response is rejected.
    MissingName,
    /// A resource twice in one response. The response is rejected.
    DuplicateResource,
    /// A resource that was never subscribed to.
    UnsubscribedResource,
    /// A message above the size limit. The stream ends.
    MessageTooLarge,
    /// A body that is shorter or longer than announced. The stream ends.
    WrongLength,
}

impl Violation {
    /// All kinds of violations.
    pub const ALL: [Self; 12] = [
        Self::EmptyNonce,
        Self::RepeatedNonce,
        Self::UnknownType,
        Self::UnrequestedType,
        Self::MixedTypes,
        Self::UndecodableMessage,
        Self::UndecodableResource,
        Self::MissingName,
        Self::DuplicateResource,
        Self::UnsubscribedResource,
        Self::MessageTooLarge,
        Self::WrongLength,
    ];

    /// Name of the kind in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EmptyNonce => "empty-nonce",
            Self::RepeatedNonce => "repeated-nonce",
            Self::UnknownType => "unknown-type",
            Self::UnrequestedType => "unrequested-type",
            Self::MixedTypes => "mixed-types",
            Self::UndecodableMessage => "undecodable-message",
            Self::UndecodableResource => "undecodable-resource",
            Self::MissingName => "missing-name",
            Self::DuplicateResource => "duplicate-resource",
            Self::UnsubscribedResource => "unsubscribed-resource",
            Self::MessageTooLarge => "message-too-large",
            Self::WrongLength => "wrong-length",
        }
    }
}

/// The stream cannot continue: the transport resets it and reconnects, as a real proxy does. The reason was
/// reported as [`Event::Violation`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamBroken;
