//! Whether components that run still answer: one that hangs has not ended, nobody has stopped it, and it says nothing.
//!
//! Each is asked something that costs it next to nothing, all at once; any answer is a sign of life, a refusal too. One
//! that gives none counts as failed from then on ([`Container::failed`]), so that nobody waits for it again. Nobody asks
//! in a measured window in which requests are answered.
//! Leaves out components that answer no questions (the SNI proxy), a service whose own count proves the path (it would
//! count the question), and those that go on answering ours alone.

use crate::container::Container;
use mesh::admin::RESPONSE_TIMEOUT;
use mesh::admin::liveness::LivenessProbe;

/// Probes all components at once and marks unresponsive ones. `meanwhile` probes others in another way.
pub(crate) fn ask_all(asked: &[(&Container, LivenessProbe)], meanwhile: impl FnOnce()) {
    std::thread::scope(|scope| {
        for (container, question) in asked {
            scope.spawn(|| {
                if question.is_unresponsive() {
                    mark_silent(container, question.process);
                }
            });
        }
        meanwhile();
    });
}

/// Marks a component as failed since it, or this process of it, is unresponsive.
pub(crate) fn mark_silent(container: &Container, process: Option<&str>) {
    let of = process.map_or_else(String::new, |process| format!("its {process} gave "));
    let seconds = RESPONSE_TIMEOUT.as_secs();
    container.was_found_silent(&format!("is alive and silent: {of}no answer within {seconds} s"));
}
