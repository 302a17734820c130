//! Marks: content that identifies a change on arrival.

use super::resource_type::ResourceType;

/// Content that shows that a change has arrived.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mark {
    /// Resource type to search.
    pub resource_type: ResourceType,
    /// Whether the change adds or removes the content.
    pub presence: Presence,
    /// Only resources with this name or name suffix; absent: any.
    pub resource: Option<String>,
    /// Bytes to find in the resource. Empty: the presence of the resource itself.
    pub needle: Vec<u8>,
}

/// Expected state of the content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// Arrives with a resource that has the content.
    Present,
    /// Arrives with the resource without the content, or with its removal. In the state-of-the-world variant,
    /// for types whose responses are always complete, also arrives if no resource has the content. Without a
    /// resource name, removed resources match if their names contain the content.
    Gone,
}

impl Presence {
    /// Expected state after the change is undone.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Present => Self::Gone,
            Self::Gone => Self::Present,
        }
    }
}
