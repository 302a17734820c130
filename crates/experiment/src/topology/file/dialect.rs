//! Keys of Meshmeter's own topology files and of isotope's.
//!
//! An isotope file is recognised by any key that only isotope has. Its sizes are multiples of 1024 (`1 KB`).
//! Its call probabilities are whole percentages, where 0 means always.

use super::keys;
use crate::keys::names;
use crate::yaml::document::{Node, Value};
use results::units::{UnitError, parse_duration, parse_fraction, parse_size};

/// Top-level keys of both dialects.
pub(crate) fn root_keys() -> impl Iterator<Item = &'static str> {
    let native = Dialect::Native.root_keys();
    let isotope = Dialect::Isotope.root_keys().iter().filter(|key| !native.contains(key));
    native.iter().chain(isotope).copied()
}

/// Format of topology files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    Native,
    Isotope,
}

/// Keys that only isotope has.
const ONLY_ISOTOPE: [&str; 12] = [
    "apiVersion",
    "kind",
    "default",
    "type",
    "numReplicas",
    "isEntrypoint",
    "errorRate",
    "responseSize",
    "requestSize",
    "numRbacPolicies",
    "cluster",
    "labels",
];

impl Dialect {
    pub(super) fn for_root(root: &Node) -> Self {
        let has = |node: &Node| node.entries().iter().any(|entry| ONLY_ISOTOPE.contains(&entry.key.as_str()));
        let below = |entry: &crate::yaml::document::Entry| match &entry.node.value {
            Value::List(items) if entry.key == "services" => items.iter().any(has),
            Value::Map(_) if entry.key == "defaults" => has(&entry.node),
            _ => false,
        };
        if has(root) || root.entries().iter().any(below) { Self::Isotope } else { Self::Native }
    }

    pub(super) fn root_keys(self) -> &'static [&'static str] {
        match self {
            Self::Native => const { &names(&keys::ROOT) },
            Self::Isotope => &["apiVersion", "kind", "defaults", "default", "services"],
        }
    }

    pub(super) fn default_keys(self) -> &'static [&'static str] {
        match self {
            Self::Native => const { &names(&keys::DEFAULTS) },
            Self::Isotope => &[
                "type",
                "numReplicas",
                "requestSize",
                "responseSize",
                "errorRate",
                "script",
                "numRbacPolicies",
            ],
        }
    }

    pub(super) fn service_keys(self) -> &'static [&'static str] {
        match self {
            Self::Native => const { &names(&keys::SERVICE) },
            Self::Isotope => &[
                "name",
                "namespace",
                "cluster",
                "type",
                "numReplicas",
                "isEntrypoint",
                "errorRate",
                "responseSize",
                "script",
                "labels",
                "numRbacPolicies",
                "computeUsage",
                "memoryUsage",
            ],
        }
    }

    pub(super) fn step_keys(self) -> &'static [&'static str] {
        match self {
            Self::Native => const { &names(&keys::STEP_KEYS) },
            Self::Isotope => &["call", "sleep"],
        }
    }

    pub(super) fn call_keys(self) -> &'static [&'static str] {
        match self {
            Self::Native => const { &names(&keys::CALL) },
            Self::Isotope => &["service", "size", "payloadSize", "probability", "hostname", "extra-header"],
        }
    }

    /// Name of a key in this dialect; unchanged if the dialect has no such key.
    pub(super) fn key(self, key: &'static str) -> &'static str {
        match (self, key) {
            (Self::Isotope, "protocol") => "type",
            (Self::Isotope, "replicas") => "numReplicas",
            (Self::Isotope, "request") => "requestSize",
            (Self::Isotope, "response") => "responseSize",
            (Self::Isotope, "error-rate") => "errorRate",
            _ => key,
        }
    }

    pub(super) fn size(self, text: &str) -> Result<f64, UnitError> {
        match self {
            Self::Native => parse_size(text),
            Self::Isotope => isotope_size(text),
        }
        .map(|bytes| bytes as f64)
    }

    pub(super) fn probability(self, text: &str) -> Result<f64, UnitError> {
        match (self, text.trim().parse::<u32>()) {
            (Self::Isotope, Ok(0)) => Ok(1.0),
            (Self::Isotope, Ok(_)) => parse_fraction(&format!("{}%", text.trim())),
            _ => parse_fraction(text),
        }
    }
}

/// Duration in seconds.
pub(super) fn seconds(text: &str) -> Result<f64, UnitError> {
    parse_duration(text).map(|duration| duration.as_secs_f64())
}

/// Size as parsed by isotope's library (docker/go-units `RAMInBytes`): `k`, `KB` and `KiB` are 1024 bytes.
fn isotope_size(text: &str) -> Result<u64, UnitError> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches(['i', 'b']).trim_end();
    match number.strip_suffix(['k', 'm', 'g']) {
        Some(amount) => parse_size(&format!("{amount}{}ib", &number[amount.len()..])),
        None => parse_size(text),
    }
}
