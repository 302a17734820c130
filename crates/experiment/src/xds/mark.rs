//! Marks: bytes that say that a change has arrived.

use super::resource_type::ResourceType;

/// Content by which the arrival of a change is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mark {
    /// Type of the resources that are searched.
    pub resource_type: ResourceType,
    /// The change brings the content or takes it away.
    pub presence: Presence,
    /// Only resources with this name or with a name that ends so. Absent: any.
    pub resource: Option<String>,
    /// Bytes in the resource. Empty: the resource itself is the content.
    pub needle: Vec<u8>,
}

/// Expected state of the content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// It arrives when a resource with the content does.
    Present,
    /// It arrives when the resource does without the content, or is removed. In the state-of-the-world variant a type of which
    /// every response is whole has the mark also when no resource has the content. Without a name, removed resources are those
    /// that have the content in their names.
    Gone,
}

impl Presence {
    /// The state after the change is undone.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Present => Self::Gone,
            Self::Gone => Self::Present,
        }
    }
}
