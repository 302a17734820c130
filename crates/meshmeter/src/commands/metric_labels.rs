//! Labels of the metrics that a process sends.

use export::Labels;
use std::borrow::Cow;

/// Labels that identify a process, unless `given` overrides them: two processes that write the same series
/// would corrupt both. `id` is unique on the host.
pub(super) fn of_process(id: &str, given: &[(String, String)]) -> Labels {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let own = [("generator", format!("{host}-{id}")), ("job", "meshmeter".to_owned())];
    let own = own.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
    own.chain(given.iter().map(|(name, value)| (Cow::Owned(name.clone()), value.clone()))).collect()
}
