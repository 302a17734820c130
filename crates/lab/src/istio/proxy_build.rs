//! Detects whose build of Envoy a program is by running it. Its path and version do not show this, and it may
//! be a wrapper script.
//!
//! The program validates a small configuration with filters that only Istio's build has and, if it rejects
//! that one, the same configuration without them. Each takes some 50 ms.

use crate::Result;
use components::Installed;
use experiment::environment::EnvironmentError;
use mesh::envoy::istio_filters;
use results::ProxyBuild;
use std::time::Duration;

/// Envoy takes some 50 ms, and seconds from a cold disk.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of characters of a program's last output line that an error repeats.
const MAX_WORDS: usize = 300;

/// The build of this Envoy.
pub fn proxy_build(envoy: &Installed) -> Result<ProxyBuild> {
    let path = envoy.path.display();
    ask(envoy, TIMEOUT).map_err(|reason| {
        let operation = format!("query {path} for the filters of Istio's proxy");
        EnvironmentError::new(operation, reason)
            .with_hint(format!("`{path} --version` and `{path} --mode validate` must run here"))
    })
}

/// Runs the program. The error says why it does not run, with the last line of its output.
fn ask(envoy: &Installed, timeout: Duration) -> Result<ProxyBuild, String> {
    let mut reason = String::new();
    for build in [ProxyBuild::Istio, ProxyBuild::Upstream] {
        let bootstrap = istio_filters::bootstrap(build == ProxyBuild::Istio);
        let arguments = ["--mode", "validate", "--log-level", "error", "--config-yaml", &bootstrap];
        let output = envoy
            .answer_within(&arguments, &[], timeout)
            .map_err(|error| format!("it does not run: {error}"))?;
        if output.status.success() {
            return Ok(build);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let last: String = last.unwrap_or("no output").chars().take(MAX_WORDS).collect();
        reason = format!("`--mode validate` ended with {}: {last}", output.status);
    }
    Err(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::istio::programs::tests;
    use components::Component;
    use tempfile::TempDir;

    fn program(folder: &TempDir, script: &str) -> Installed {
        tests::program(folder.path(), Component::Envoy, script)
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
        assert!(broken.contains("for the filters of Istio's proxy"), "{broken}");
        assert!(broken.contains("libc.so.9 is missing"), "{broken}");
        let absent = Installed { path: folder.path().join("nothing"), ..program(&folder, "") };
        assert!(reason(&absent).contains("No such file"));
        let hanging = program(&folder, "exec sleep 600");
        assert!(ask(&hanging, Duration::from_millis(300)).unwrap_err().contains("does not run"));
    }
}
