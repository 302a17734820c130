//! Cases that need a ztunnel, which no registry has: where there is none they are listed as not run, and never as passed.

use crate::cases::Cases;
use experiment::environment::in_one_line;
use lab::components::{Component, Overrides, find, variable};

/// Runs them, or lists them with the reason.
pub fn run<Case: Copy>(cases: &mut Cases, table: &[(&'static str, Case)], call: impl Fn(Case)) {
    let no_ztunnel = no_ztunnel();
    for (name, case) in table {
        match &no_ztunnel {
            Some(reason) => cases.cannot_run(name, reason),
            None => cases.run(name, || call(*case)),
        }
    }
}

/// Why there is no ztunnel here; nothing where there is one. One that was named must be usable.
fn no_ztunnel() -> Option<String> {
    let error = find(Component::Ztunnel, &Overrides::default()).err()?;
    let named = variable(Component::Ztunnel).and_then(std::env::var_os);
    assert!(named.is_none(), "{}", in_one_line(&error));
    Some(in_one_line(&error))
}
