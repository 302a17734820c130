//! Detects whose build of Envoy a program is by running it. Its path and version do not show this, and it may
//! be a wrapper script.
//!
//! The program validates a small configuration with filters that only Istio's build has and, if it rejects
//! that one, the same configuration without them. Each takes some 50 ms. The result is cached until the file
//! changes.

use crate::Result;
use components::{Installed, answer_within};
use experiment::environment::EnvironmentError;
use experiment::schema::ProxyBuild;
use mesh::envoy::istio_filters;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Envoy takes some 50 ms, and seconds from a cold disk.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of characters of a program's last output line that an error repeats.
const MAX_WORDS: usize = 300;

/// A program's file and its state when it was read.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    changed_at: (i64, i64),
}

impl Identity {
    fn read(path: &Path) -> io::Result<Self> {
        let file = path.metadata()?;
        Ok(Self {
            path: path.to_path_buf(),
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            changed_at: (file.mtime(), file.mtime_nsec()),
        })
    }
}

static KNOWN: LazyLock<Mutex<HashMap<Identity, ProxyBuild>>> = LazyLock::new(Mutex::default);

/// The build of this Envoy.
pub fn proxy_build(envoy: &Installed) -> Result<ProxyBuild> {
    let path = &envoy.path;
    let error = |reason: String| {
        let operation = format!("ask {} whether it has the filters of Istio's proxy", path.display());
        EnvironmentError::new(operation, reason)
            .with_hint(format!("`{} --version` and `{0} --mode validate` must run here", path.display()))
    };
    let identity = Identity::read(path).map_err(|cause| error(cause.to_string()))?;
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(build) = known().get(&identity) {
        return Ok(*build);
    }
    let build = ask(path, TIMEOUT).map_err(error)?;
    known().insert(identity, build);
    Ok(build)
}

/// Runs the program. The error says why it does not run.
fn ask(envoy: &Path, timeout: Duration) -> Result<ProxyBuild, String> {
    if validates(envoy, &istio_filters::bootstrap_with(), timeout)?.is_ok() {
        return Ok(ProxyBuild::Istio);
    }
    validates(envoy, &istio_filters::bootstrap_without(), timeout)?.map(|()| ProxyBuild::Upstream)
}

/// Checks whether Envoy accepts a configuration. The inner error is its last line of output.
fn validates(envoy: &Path, bootstrap: &str, timeout: Duration) -> Result<Result<(), String>, String> {
    let mut command = Command::new(envoy);
    command.args(["--mode", "validate", "--log-level", "error", "--config-yaml", bootstrap]);
    let output = answer_within(&mut command, timeout).map_err(|error| format!("it does not run: {error}"))?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it says nothing");
    let last: String = last.chars().take(MAX_WORDS).collect();
    Ok(Err(format!("`--mode validate` ended with {}: {last}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use components::{Component, Origin};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::TempDir;

    fn program(folder: &TempDir, script: &str) -> Installed {
        let path = folder.path().join("envoy");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Installed { component: Component::Envoy, path, version: "1.2.3".to_owned(), origin: Origin::Option }
    }

    #[test]
    fn proxy_build_follows_from_validated_configurations() {
        for (script, expected) in [
            ("case \"$*\" in *--mode*validate*istio.stats*) exit 0;; esac; exit 1", ProxyBuild::Istio),
            ("case \"$*\" in *istio*) echo unknown filter >&2; exit 1;; esac", ProxyBuild::Upstream),
        ] {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(proxy_build(&program(&folder, script)).unwrap(), expected, "{script}");
        }
    }

    #[test]
    fn program_that_does_not_run_is_error() {
        let folder = tempfile::tempdir().unwrap();
        let reason = |envoy: &Installed| {
            let error = proxy_build(envoy).unwrap_err();
            format!("{error}: {}", std::error::Error::source(&error).unwrap())
        };
        let broken = reason(&program(&folder, "echo libc.so.9 is missing >&2; exit 127"));
        assert!(broken.contains("whether it has the filters of Istio's proxy"), "{broken}");
        assert!(broken.contains("libc.so.9 is missing"), "{broken}");
        let absent = Installed { path: folder.path().join("nothing"), ..program(&folder, "") };
        assert!(reason(&absent).contains("No such file"));
        let hanging = program(&folder, "exec sleep 600");
        assert!(ask(&hanging.path, Duration::from_millis(300)).unwrap_err().contains("does not run"));
    }

    #[test]
    fn proxy_build_is_cached_until_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("asked");
        let script = |status| format!("echo asked >> {}; exit {status}", log.display());
        let envoy = program(&folder, &script(0));
        let build = proxy_build(&envoy).unwrap();
        assert_eq!((build, proxy_build(&envoy).unwrap()), (ProxyBuild::Istio, ProxyBuild::Istio));
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
        assert!(proxy_build(&program(&folder, &script(10))).is_err());
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 3);
    }
}
