//! Changes of a population: the writes that make them, and the marks by which their arrival at proxies is known.
//! Pure up to [`Change::perform`]. [`Changes`] has the sequence, `marks.rs` what each kind of proxy gets, `schedule.rs` the
//! moments of churn.

mod kinds;
mod marks;
mod schedule;

pub use kinds::Changes;
pub use marks::Expected;
pub use schedule::ChurnSchedule;

use crate::Result;
use experiment::settings::fleet::ChangeKind;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::workloads::Replica;
use mesh::kubernetes::writes::{Performed, Write};

/// A change of the mesh.
#[derive(Clone, Debug)]
pub struct Change {
    pub kind: ChangeKind,
    /// In their order.
    pub writes: Vec<Write>,
    /// Marks per kind of proxy. Proxies of other kinds and namespaces receive nothing.
    pub expected: Vec<Expected>,
    /// Pods that are gone, each with the one in its place.
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
    /// Makes the writes, one after the other.
    pub fn perform(&self, api: &ApiClient) -> Result<Performed> {
        api.perform(&self.writes)
    }

    /// True if the change alters the size of the mesh, which [`Changes::undo`] restores.
    pub fn changes_size(&self) -> bool {
        self.undo.is_some()
    }
}

#[cfg(test)]
mod tests;
