//! The build of Meshmeter that measured.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Hexadecimal digits of a commit that people are shown.
const SHORT_COMMIT_DIGITS: usize = 8;

/// Build of this process, as declared by its `main`.
static THIS: OnceLock<Build> = OnceLock::new();

/// Version, commit and state of the sources of a build.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// Version of Meshmeter.
    pub version: String,
    /// Commit of the sources in hexadecimal; `null` if they were not in a Git repository.
    pub commit: Option<String>,
    /// Day of the commit, such as `2026-11-27`; `null` if unknown.
    #[serde(default)]
    pub commit_date: Option<String>,
    /// True if tracked files differed from the commit; `null` without a commit.
    pub modified: Option<bool>,
}

impl Build {
    /// Declares the build of this process. Only the program itself knows its commit, so that a commit recompiles no library.
    pub fn declare(self) {
        // Later declarations change nothing: results of one process name one build.
        let _ = THIS.set(self);
    }

    /// Build of this process; a process that declared none, such as a test of a library, knows the version only.
    #[must_use]
    pub fn this() -> &'static Self {
        THIS.get_or_init(|| Self { version: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() })
    }

    /// Such as `0.1.0 (6f9fdd3b 2026-11-27, modified)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let Some(commit) = self.short_commit() else { return format!("{} (commit unknown)", self.version) };
        let date = self.commit_date.as_ref().map(|date| format!(" {date}")).unwrap_or_default();
        format!("{} ({commit}{date}{})", self.version, self.modified_mark())
    }

    /// Value of the header `User-Agent`, such as `meshmeter/0.1.0 (6f9fdd3b, modified)`.
    #[must_use]
    pub fn user_agent(&self) -> String {
        let commit = self.short_commit().map(|commit| format!(" ({commit}{})", self.modified_mark()));
        format!("meshmeter/{}{}", self.version, commit.unwrap_or_default())
    }

    fn short_commit(&self) -> Option<&str> {
        let commit = self.commit.as_deref()?;
        Some(commit.get(..SHORT_COMMIT_DIGITS).unwrap_or(commit))
    }

    fn modified_mark(&self) -> &'static str {
        if self.modified == Some(true) { ", modified" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(commit: Option<&str>, modified: Option<bool>) -> Build {
        Build {
            version: "0.1.0".to_owned(),
            commit: commit.map(str::to_owned),
            commit_date: commit.map(|_| "2026-11-27".to_owned()),
            modified,
        }
    }

    #[test]
    fn build_is_described_with_commit_and_state_of_tree() {
        let commit = Some("6f9fdd3b0a1b2c3d");
        for (build, described, agent) in [
            (build(commit, Some(false)), "0.1.0 (6f9fdd3b 2026-11-27)", "meshmeter/0.1.0 (6f9fdd3b)"),
            (
                build(commit, Some(true)),
                "0.1.0 (6f9fdd3b 2026-11-27, modified)",
                "meshmeter/0.1.0 (6f9fdd3b, modified)",
            ),
            (build(None, None), "0.1.0 (commit unknown)", "meshmeter/0.1.0"),
        ] {
            assert_eq!((build.describe().as_str(), build.user_agent().as_str()), (described, agent));
        }
    }

    #[test]
    fn unknown_commit_is_null_in_results() {
        let value = serde_json::to_value(build(None, None)).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"version": "0.1.0", "commit": null, "commit_date": null, "modified": null})
        );
    }
}
