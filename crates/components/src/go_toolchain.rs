//! The user's Go: checks that it exists and is recent enough for the modules that it builds.

use super::supervised_command::{self, CommandError, Look};
use crate::Result;
use experiment::environment::EnvironmentError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The command takes a moment, unless Go first downloads another version of itself, some 70 MB.
const VERSION_TIMEOUT: Duration = Duration::from_secs(600);

/// User settings that would change the build. They are set rather than removed, since variables override the
/// settings file (`go env -w`).
const SETTINGS: [(&str, &str); 7] = [
    ("GOWORK", "off"),
    ("GOFLAGS", "-mod=readonly"),
    ("GO111MODULE", "on"),
    // The programs need no cgo, and so no C compiler.
    ("CGO_ENABLED", "0"),
    ("GOOS", "linux"),
    ("GOAMD64", "v1"),
    ("GOARM64", "v8.0"),
];

/// A `go` command in a module's directory, without user settings that would change the result.
pub(super) fn command(go: &str, module: &Path) -> Command {
    let mut command = Command::new(go);
    command.current_dir(module).envs(SETTINGS);
    match std::env::consts::ARCH {
        "x86_64" => command.env("GOARCH", "amd64"),
        "aarch64" => command.env("GOARCH", "arm64"),
        // Go detects this machine's architecture.
        _ => command.env_remove("GOARCH"),
    };
    command.env_remove("GOEXPERIMENT");
    // Up to two gigabytes. It is next to the module, so that it is removed with it, however the build ends.
    command.env("GOTMPDIR", temporary_folder(module));
    // Go rejects a relative path; we ignore it.
    if std::env::var_os("XDG_CACHE_HOME").is_some_and(|cache| Path::new(&cache).is_relative()) {
        command.env_remove("XDG_CACHE_HOME");
    }
    command
}

pub(super) fn temporary_folder(module: &Path) -> PathBuf {
    module.with_file_name("at-work")
}

/// The version of Go that builds this module, such as `go1.26.8`. If the user's Go is older than go.mod
/// requires and may download another version (GOTOOLCHAIN), it does so here.
pub(super) fn version(go: &str, module: &Path, go_mod: &str, look: &mut Look<'_>) -> Result<String> {
    let needed = needed(go_mod);
    let hint = format!(
        "install Go {needed} or later (https://go.dev/dl; Debian 12's own is too old); from 1.21 on, Go fetches a later version \
         of itself where GOTOOLCHAIN=auto lets it"
    );
    let operation = format!("use {go}, which must be of version {needed} or later");
    let ended = supervised_command::run(command(go, module).arg("version"), VERSION_TIMEOUT, look).map_err(
        |error| match error {
            CommandError::Interrupted => EnvironmentError::new("query the version of Go", error),
            _ => EnvironmentError::new(operation.clone(), error).with_hint(hint.clone()),
        },
    )?;
    let said = [ended.output, ended.errors].concat().join("; ");
    // For example "go version go1.26.8 linux/amd64".
    let version = said.split_once("go version ").and_then(|(_, rest)| rest.split_whitespace().next());
    match version {
        Some(version) if ended.status.success() && numbers(version) >= numbers(needed) => {
            Ok(version.to_owned())
        }
        _ if said.is_empty() => {
            Err(EnvironmentError::new(operation, format!("it ended with {}", ended.status)).with_hint(hint))
        }
        _ => Err(EnvironmentError::new(operation, format!("it says: {said}")).with_hint(hint)),
    }
}

fn needed(go_mod: &str) -> &str {
    let line = go_mod.lines().find_map(|line| line.strip_prefix("go "));
    line.expect("the embedded go.mod has a go line, as a test sees to").trim()
}

/// Version numbers of `go1.26.8` or `1.26.8`; `go1.27rc1` is 1.27.
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
    use test_support::program;

    const GO_MOD: &str = "module m\n\ngo 1.26.0\n";

    fn ask(script: &str) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        version(&program(folder.path(), "go", script), folder.path(), GO_MOD, &mut |_, _| true)
    }

    #[test]
    fn recent_go_is_accepted() {
        assert_eq!(ask("echo go version go1.26.8 linux/amd64").unwrap(), "go1.26.8");
        assert_eq!(ask("echo go version go1.100 linux/amd64").unwrap(), "go1.100");
        let fetching =
            "echo 'go: downloading go1.26.0 (linux/amd64)' >&2; echo go version go1.26.0 linux/amd64";
        assert_eq!(ask(fetching).unwrap(), "go1.26.0");
    }

    #[test]
    fn old_go_is_rejected_with_required_version() {
        let old = [
            "echo go version go1.19.8 linux/amd64",
            "echo 'go: go.mod requires go >= 1.26.0 (running go 1.24.4; GOTOOLCHAIN=local)' >&2; exit 1",
            "echo what",
            "exit 1",
        ];
        for script in old {
            let error = ask(script).unwrap_err();
            assert!(error.to_string().contains("must be of version 1.26.0 or later"), "{error}");
            assert!(error.hint.unwrap().contains("install Go 1.26.0"), "{script}");
        }
    }

    #[test]
    fn user_settings_do_not_change_build() {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("env");
        std::fs::write(&settings, "GOARCH=mips\nGOOS=windows\nGOFLAGS=-race\nGOAMD64=v4\nGOARM64=v9.0\n")
            .unwrap();
        let mut command = command("go", folder.path());
        command.args(["env", "GOARCH", "GOOS", "GOFLAGS", "GOAMD64", "GOARM64"]).env("GOENV", settings);
        let output = command.output().expect("this test needs Go");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let values: Vec<&str> = said.lines().collect();
        assert!(["amd64", "arm64"].contains(&values[0]), "{said}");
        assert_eq!(values[1..], ["linux", "-mod=readonly", "v1", "v8.0"]);
    }

    #[test]
    fn missing_go_is_error_with_hint() {
        let folder = tempfile::tempdir().unwrap();
        let error = version("/no/go", folder.path(), GO_MOD, &mut |_, _| true).unwrap_err();
        assert!(error.hint.unwrap().contains("https://go.dev/dl"));
    }
}
