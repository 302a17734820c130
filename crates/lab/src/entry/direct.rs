//! Drivers use the address or the Service of their target, as a workload would.

use crate::deployment::part::Part;

pub(super) struct Direct;

impl Part for Direct {}
