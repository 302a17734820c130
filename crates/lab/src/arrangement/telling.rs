//! Who is told what a lab is at while that takes long.

use std::fmt;
use std::rc::Rc;

/// Hears a few words.
type Listener = dyn Fn(&str);

/// Somebody who is told in a few words what goes on, again and again; nobody unless one is given.
#[derive(Clone, Default)]
pub struct Telling(Option<Rc<Listener>>);

impl Telling {
    /// Tells this one.
    pub fn to(listener: impl Fn(&str) + 'static) -> Self {
        Self(Some(Rc::new(listener)))
    }

    /// Tells what goes on, such as `wrote 400 of 10000 other services`.
    pub(crate) fn tell(&self, what: &str) {
        if let Some(listener) = &self.0 {
            listener(what);
        }
    }
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Telling").field(&self.0.is_some()).finish()
    }
}
