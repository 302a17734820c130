//! Cases that need a ztunnel, which no registry has: without one they are listed as not run, and never as passed.

use components::{Component, Overrides, find, variable};
use experiment::environment::in_one_line;

/// Why there is no ztunnel here; nothing where there is one. One that was named must be usable.
pub fn missing() -> Option<String> {
    let error = find(Component::Ztunnel, &Overrides::default()).err()?;
    let named = variable(Component::Ztunnel).and_then(std::env::var_os);
    assert!(named.is_none(), "{}", in_one_line(&error));
    Some(in_one_line(&error))
}
