//! No mesh: pods opt out explicitly, since an existing namespace may be in one.

use super::{Labels, MeshPlug, Need, PlugContext, annotated_outside_of_meshes, outside_of_meshes};
use experiment::topology::WorkloadId;

#[derive(Clone, Copy, Debug)]
pub(super) struct NoMesh;

impl MeshPlug for NoMesh {
    fn pod_labels(&self) -> Labels {
        outside_of_meshes()
    }

    fn pod_annotations(&self, _context: &PlugContext<'_>, _workload: WorkloadId) -> Labels {
        annotated_outside_of_meshes()
    }

    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }
}
