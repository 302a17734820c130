//! Drivers use the address or the Service of their target, as a workload would.

use crate::Result;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;

pub(super) struct Direct;

impl Part for Direct {
    fn start(&mut self, _rollout: &mut Rollout<'_>) -> Result<()> {
        Ok(())
    }
}
