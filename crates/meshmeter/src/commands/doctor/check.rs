//! The result of one check.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Short name, such as `cgroups`.
    pub name: String,
    pub state: State,
    pub fact: String,
    /// Absent if nothing needs to be done.
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// Measurements are possible, but with less certainty or fewer features.
    Warn,
    /// Runs need it and it does not work.
    Missing,
}

impl Check {
    pub(super) fn ok(name: &str, fact: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Ok, fact: fact.into(), remedy: None }
    }

    pub(super) fn warn(name: &str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Warn, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn unreadable(name: &str, file: &str) -> Self {
        Self::warn(name, format!("{file} cannot be read"), "see that /proc is mounted")
    }

    pub(super) fn missing(name: &str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Missing, fact: fact.into(), remedy: Some(remedy.into()) }
    }
}
