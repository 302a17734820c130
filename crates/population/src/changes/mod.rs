//! Changes of a population: the writes that make them, and the marks that show their arrival at proxies. Pure
//! up to [`Change::perform`].
//! [`Changes`] is the sequence, `marks.rs` has the resources that each kind of proxy receives, and
//! `schedule.rs` the times of churn.

mod kinds;
mod marks;
mod schedule;
mod writes;

pub use kinds::Changes;
pub use marks::Expected;
pub use schedule::ChurnSchedule;
pub use writes::{Performed, Write, perform};

use crate::Result;
use experiment::settings::fleet::ChangeKind;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::workloads::Replica;

/// A change of the mesh.
#[derive(Clone, Debug)]
pub struct Change {
    pub kind: ChangeKind,
    /// Writes, in order.
    pub writes: Vec<Write>,
    /// Marks per kind of proxy. Proxies of other kinds and namespaces receive nothing.
    pub expected: Vec<Expected>,
    /// Deleted pods, each with its replacement.
    pub replaced: Vec<Replaced>,
    undo: Option<Undo>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replaced {
    pub namespace: String,
    pub gone: Replica,
    pub new: Replica,
}

/// Writes that restore the size of the mesh.
#[derive(Clone, Debug)]
enum Undo {
    Delete(Vec<ObjectRef>),
    RemoveEndpoint { service: usize, replica: Replica },
    AddEndpoint { service: usize, replica: Replica },
}

impl Change {
    /// Performs the writes, one after the other.
    pub fn perform(&self, api: &ApiClient) -> Result<Performed> {
        perform(api, &self.writes)
    }

    /// True if the change alters the size of the mesh, which [`Changes::undo`] restores.
    pub fn changes_size(&self) -> bool {
        self.undo.is_some()
    }
}

#[cfg(test)]
mod tests;
