//! Liveness of running components. A component that hangs has neither ended nor been stopped, and reports
//! nothing.
//!
//! All components are probed at once, each with a request that costs it next to nothing. Any response is a
//! sign of life, a rejection too. A component that does not respond counts as failed from then on
//! ([`Container::failed`]), so that nothing waits for it again. Components are not probed during a measured
//! window while its requests are being answered. Not covered: components that answer no requests (the SNI
//! proxy), services whose own counters prove the path (they would count the probe), and components that
//! respond to the probe and to nothing else.

use crate::container::Container;
use mesh::admin::RESPONSE_TIMEOUT;
use mesh::admin::liveness::LivenessProbe;

/// Probes all components at once and marks unresponsive ones. `meanwhile` probes other components by other
/// means.
pub(crate) fn probe_all(asked: &[(&Container, LivenessProbe)], meanwhile: impl FnOnce()) {
    std::thread::scope(|scope| {
        for (container, question) in asked {
            scope.spawn(|| {
                if question.is_unresponsive() {
                    mark_unresponsive(container, question.process);
                }
            });
        }
        meanwhile();
    });
}

/// Marks a component as failed because it, or the given process of it, is unresponsive.
pub(crate) fn mark_unresponsive(container: &Container, process: Option<&str>) {
    let of = process.map_or_else(String::new, |process| format!("its {process} gave "));
    let seconds = RESPONSE_TIMEOUT.as_secs();
    container.was_unresponsive(&format!("is running but unresponsive: {of}no answer within {seconds} s"));
}
