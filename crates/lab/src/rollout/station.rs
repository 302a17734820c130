//! Positions of proxies on the path of a call, and destinations of drivers.

use mesh::trial::place::Station;

#[derive(Debug, Default)]
pub(crate) struct Stations {
    /// Proxies near the caller, in the order in which requests pass them.
    pub at_caller: Vec<Station>,
    pub at_callee: Vec<Station>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Destination {
    pub url: String,
    /// Further arguments for `meshmeter load`: certificates to trust and to present.
    pub arguments: Vec<String>,
}
