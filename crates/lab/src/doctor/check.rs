//! The result of looking at one thing.

use serde::{Deserialize, Serialize};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at, such as `cgroups`.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub fact: String,
    /// What to do about it; absent where nothing needs to be done.
    pub remedy: Option<String>,
}

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// Measurements are possible, with less certainty or fewer features.
    Warn,
    /// Something that a run needs does not work.
    Missing,
}

impl Check {
    pub(super) fn ok(name: &str, fact: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Ok, fact: fact.into(), remedy: None }
    }

    pub(super) fn warn(name: &str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Warn, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn missing(name: &str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Missing, fact: fact.into(), remedy: Some(remedy.into()) }
    }
}
