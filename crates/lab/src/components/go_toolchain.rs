//! The user's Go: whether it is there, and recent enough for the modules that are built with it.

use super::long_command::{self, Unended};
use experiment::environment::EnvironmentError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Asking takes a moment, unless Go fetches another version of itself first, some 70 MB.
const LIMIT: Duration = Duration::from_secs(600);

/// Variables of the user's that would change what is built, or for which machine.
const FOREIGN_VARIABLES: [&str; 6] = ["GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GO111MODULE"];

/// A `go` command that runs in a module's folder, with nothing of the user's settings that would change the result.
pub(super) fn command(go: &str, module: &Path) -> Command {
    let mut command = Command::new(go);
    command.current_dir(module).env("GOWORK", "off").env("GOFLAGS", "-mod=readonly");
    // Two gigabytes at times: beside the module, so that they go with it, however the build ends.
    command.env("GOTMPDIR", temporary_folder(module));
    // Without C: the programs need none, and a C compiler is not asked for.
    command.env("CGO_ENABLED", "0");
    for variable in FOREIGN_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// Where Go keeps what it is at work on.
pub(super) fn temporary_folder(module: &Path) -> PathBuf {
    module.with_file_name("at-work")
}

/// The version of Go that builds this module, such as `go1.26.8`. Where the user's Go is older than the module's go.mod asks
/// for and may fetch another version (GOTOOLCHAIN), it does so here.
///
/// # Errors
/// Where there is no Go, or none that is recent enough.
pub(super) fn version(
    go: &str,
    module: &Path,
    go_mod: &str,
    look: &mut dyn FnMut(Duration, &str) -> bool,
) -> Result<String, EnvironmentError> {
    let needed = needed(go_mod);
    let hint = format!(
        "install Go {needed} or later (https://go.dev/dl; Debian 12's own is too old); from 1.21 on, Go fetches a later version \
         of itself where GOTOOLCHAIN=auto lets it"
    );
    let operation = format!("use {go}, which must be of version {needed} or later");
    let ended =
        long_command::run(command(go, module).arg("version"), LIMIT, look).map_err(|error| match error {
            Unended::Interrupted => EnvironmentError::new("ask for the version of Go", error),
            _ => EnvironmentError::new(operation.clone(), error).with_hint(hint.clone()),
        })?;
    let said = [ended.output, ended.errors].concat().join("; ");
    // "go version go1.26.8 linux/amd64".
    let version = said.split_once("go version ").and_then(|(_, rest)| rest.split_whitespace().next());
    match version {
        Some(version) if ended.status.success() && numbers(version) >= numbers(needed) => {
            Ok(version.to_owned())
        }
        _ => Err(EnvironmentError::new(operation, format!("it says: {said}")).with_hint(hint)),
    }
}

/// What the `go` line of a go.mod asks for.
fn needed(go_mod: &str) -> &str {
    let line = go_mod.lines().find_map(|line| line.strip_prefix("go "));
    line.expect("the embedded go.mod has a go line, as a test sees to").trim()
}

/// `go1.26.8` and `1.26.8` as numbers; `go1.27rc1` as 1.27.
fn numbers(version: &str) -> Vec<u32> {
    let number = |part: &str| {
        let digits = part.find(|letter: char| !letter.is_ascii_digit()).map_or(part, |end| &part[..end]);
        digits.parse().unwrap_or(0)
    };
    version.trim_start_matches("go").split('.').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::testing::program;

    const GO_MOD: &str = "module m\n\ngo 1.26.0\n";

    fn ask(script: &str) -> Result<String, EnvironmentError> {
        let folder = tempfile::tempdir().unwrap();
        version(&program(folder.path(), "go", script), folder.path(), GO_MOD, &mut |_, _| true)
    }

    #[test]
    fn a_version_that_is_recent_enough_is_taken() {
        assert_eq!(ask("echo go version go1.26.8 linux/amd64").unwrap(), "go1.26.8");
        assert_eq!(ask("echo go version go1.100 linux/amd64").unwrap(), "go1.100");
        let fetching =
            "echo 'go: downloading go1.26.0 (linux/amd64)' >&2; echo go version go1.26.0 linux/amd64";
        assert_eq!(ask(fetching).unwrap(), "go1.26.0");
    }

    #[test]
    fn an_old_one_is_refused_and_what_is_needed_is_said() {
        let old = [
            "echo go version go1.19.8 linux/amd64",
            "echo 'go: go.mod requires go >= 1.26.0 (running go 1.24.4; GOTOOLCHAIN=local)' >&2; exit 1",
            "echo what",
        ];
        for script in old {
            let error = ask(script).unwrap_err();
            assert!(error.to_string().contains("must be of version 1.26.0 or later"), "{error}");
            assert!(error.hint.unwrap().contains("install Go 1.26.0"), "{script}");
        }
    }

    #[test]
    fn no_go_says_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let error = version("/no/go", folder.path(), GO_MOD, &mut |_, _| true).unwrap_err();
        assert!(error.hint.unwrap().contains("https://go.dev/dl"));
    }
}
