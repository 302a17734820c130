//! The build of this program, from its build script.

use results::Build;
use std::sync::LazyLock;

static VERSION: LazyLock<String> = LazyLock::new(|| Build::this().describe());

/// Declares the build of this process, for its results.
pub fn declare() {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let commit = known(env!("MESHMETER_BUILD_COMMIT"));
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit_date: known(env!("MESHMETER_BUILD_DATE")),
        modified: commit.as_ref().map(|_| env!("MESHMETER_BUILD_MODIFIED") == "true"),
        commit,
    }
    .declare();
}

/// Version, commit and state of the sources, as `--version` prints them.
pub fn version() -> &'static str {
    &VERSION
}
