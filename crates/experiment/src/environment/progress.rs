//! Progress of long operations, for people.

use std::fmt;
use std::rc::Rc;

type Receiver = dyn Fn(&str);

/// Sink for short progress messages, such as `wrote 400 of 10000 background services`. Discards them by
/// default.
#[derive(Clone, Default)]
pub struct ProgressSink(Option<Rc<Receiver>>);

impl ProgressSink {
    /// Creates a sink that passes messages to `receiver`.
    pub fn new(receiver: impl Fn(&str) + 'static) -> Self {
        Self(Some(Rc::new(receiver)))
    }

    /// Reports the current step.
    pub fn report(&self, text: &str) {
        if let Some(receiver) = &self.0 {
            receiver(text);
        }
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressSink").field(&self.0.is_some()).finish()
    }
}
