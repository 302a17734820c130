//! Keys of the section `components`.

use crate::keys::{Key, Kind};

pub(super) const COMPONENTS: [Key; 5] = [
    Key::new("istio", Kind::Text, "Istio release, such as 1.30.1, or `pinned`; the installed one if absent"),
    program("envoy"),
    program("ztunnel"),
    program("istiod"),
    program("pilot-agent"),
];

const fn program(name: &'static str) -> Key {
    Key::new(name, Kind::Text, "your own program, a file relative to the experiment file's directory")
}
