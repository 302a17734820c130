//! Cases that need a ztunnel, which no registry provides. Without one they are listed as not run, never as
//! passed.

use components::{Component, Overrides, find, variable};
use experiment::environment::error_chain;

/// Why there is no ztunnel here; `None` if there is one. One that was named must be usable.
pub fn missing() -> Option<String> {
    let error = find(Component::Ztunnel, &Overrides::default()).err()?;
    let named = variable(Component::Ztunnel).and_then(std::env::var_os);
    assert!(named.is_none(), "{}", error_chain(&error));
    Some(error_chain(&error))
}
