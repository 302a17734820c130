//! Progress of operations that take long, for people.

use std::fmt;
use std::rc::Rc;

type Receiver = dyn Fn(&str);

/// Receives progress in a few words, such as `wrote 400 of 10000 background services`. Discards it by default.
#[derive(Clone, Default)]
pub struct ProgressSink(Option<Rc<Receiver>>);

impl ProgressSink {
    /// Passes progress on to `receiver`.
    pub fn new(receiver: impl Fn(&str) + 'static) -> Self {
        Self(Some(Rc::new(receiver)))
    }

    /// Reports what is being done.
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
