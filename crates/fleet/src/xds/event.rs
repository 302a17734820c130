//! Reports of a session.

use super::marks::MarkId;
use experiment::xds::ResourceType;
use std::time::Instant;

/// A time on the monotonic clock.
pub type Moment = Instant;

/// Something that a session saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A response arrived as a whole.
    Response(Response),
    /// The content of an expected mark arrived and was accepted. The session expects it no longer.
    Arrived {
        /// The mark.
        mark: MarkId,
        /// Arrival of the bytes that completed it; for content that must be gone, the end of the resource or response.
        at: Moment,
    },
    /// The first complete configuration of this connection: every type answered, and all that clusters and listeners name.
    Complete {
        /// Arrival of its last response.
        at: Moment,
    },
    /// The control plane violated the protocol.
    Violation {
        /// Kind of violation.
        kind: Violation,
        /// In which type, where it is known.
        resource_type: Option<ResourceType>,
    },
}

/// A response of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// Its type; absent where the type is unknown.
    pub resource_type: Option<ResourceType>,
    /// Length of its body.
    pub bytes: u64,
    /// Resources in it.
    pub resources: u32,
    /// Resources that it names as removed.
    pub removed: u32,
    /// Acknowledged, not rejected (NACK).
    pub accepted: bool,
    /// Arrival of its last bytes.
    pub at: Moment,
}

/// A violation of the protocol that a client can see.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum Violation {
    /// A response without a nonce.
    EmptyNonce,
    /// A response with the nonce of the one before it.
    RepeatedNonce,
    /// A response of a type that no proxy knows.
    UnknownType,
    /// A response of a type that was not asked for.
    UnrequestedType,
    /// A resource whose type is not that of its response.
    MixedTypes,
    /// A body that is not the message of the method. The stream ends.
    UndecodableMessage,
    /// A resource that cannot be decoded. The response is rejected.
    UndecodableResource,
    /// A resource without a name. The response is rejected.
    MissingName,
    /// A resource twice in one response. The response is rejected.
    DuplicateResource,
    /// A resource that was never subscribed to.
    UnsubscribedResource,
    /// A message above the limit. The stream ends.
    MessageTooLarge,
    /// A body that is shorter or longer than was announced. The stream ends.
    WrongLength,
}

impl Violation {
    /// Every kind.
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

    /// Name in results.
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

/// The stream cannot go on: the transport resets it and connects again, as a real proxy does. The reason was reported as
/// [`Event::Violation`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamBroken;
