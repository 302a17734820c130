//! Credentials for a registry, from Docker's configuration and its credential helpers.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::docker_config::{DockerConfig, Source};

const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_HELPER_OUTPUT_BYTES: u64 = 64 << 10;
/// User name that marks the secret as an identity token.
const TOKEN_USER: &str = "<token>";

/// How to authenticate with a registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    Anonymous,
    Password {
        user: String,
        password: String,
    },
    /// Token that is exchanged for access tokens.
    IdentityToken(String),
    /// Token that is used directly.
    AccessToken(String),
}

/// Omits secrets.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Password { .. } => "Password",
            Self::IdentityToken(_) => "IdentityToken",
            Self::AccessToken(_) => "AccessToken",
        })
    }
}

/// Why there are no credentials.
#[derive(Debug)]
pub(crate) enum Unavailable {
    Interrupted,
    Failed(String),
}

/// Credentials for `registry`. A helper without credentials for it is treated like a missing entry.
pub(crate) fn find(
    config: &DockerConfig,
    registry: &str,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Credentials, Unavailable> {
    match config.source(registry) {
        Source::Nothing => Ok(Credentials::Anonymous),
        Source::Stored(credentials) => Ok(credentials),
        Source::Helper { program, server } => ask(&program, &server, interrupted),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperResponse {
    username: String,
    secret: String,
}

/// Runs a credential helper: `docker-credential-NAME get`, with the server's address on standard input.
fn ask(
    program: &str,
    server: &str,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Credentials, Unavailable> {
    let failed = |reason: String| Unavailable::Failed(format!("credential helper {program} {reason}"));
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("does not start: {}", crate::error::root_cause(&error))))?;
    // A helper that does not read its input may still print an answer.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(server.as_bytes()));
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut output = Vec::new();
            let _ = stdout.take(MAX_HELPER_OUTPUT_BYTES).read_to_end(&mut output);
            // After a timeout there is no receiver any more.
            let _ = sender.send(output);
        });
    }
    let deadline = Instant::now() + HELPER_TIMEOUT;
    let status = loop {
        let gave_up = if interrupted() {
            Some(Unavailable::Interrupted)
        } else if Instant::now() > deadline {
            Some(failed(format!("did not end within {} s", HELPER_TIMEOUT.as_secs())))
        } else {
            None
        };
        if let Some(gave_up) = gave_up {
            let _ = child.kill();
            let _ = child.wait();
            return Err(gave_up);
        }
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(POLL_INTERVAL),
            Err(error) => return Err(failed(format!("cannot be waited for: {error}"))),
        }
    };
    let output = receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    if !status.success() {
        let text = String::from_utf8_lossy(&output);
        if text.contains("credentials not found") {
            return Ok(Credentials::Anonymous);
        }
        return Err(failed(format!("failed: {}", crate::error::one_line(&text, 200))));
    }
    let response: HelperResponse =
        serde_json::from_slice(&output).map_err(|_| failed("answered with no credentials".to_owned()))?;
    Ok(if response.username == TOKEN_USER {
        Credentials::IdentityToken(response.secret)
    } else {
        Credentials::Password { user: response.username, password: response.secret }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper(script: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let program = test_support::program(folder.path(), "docker-credential-test", script);
        (folder, program)
    }

    fn run(script: &str) -> Result<Credentials, String> {
        let (_folder, program) = helper(script);
        match ask(&program, "registry.example", &mut || false) {
            Ok(credentials) => Ok(credentials),
            Err(Unavailable::Failed(reason)) => Err(reason),
            Err(Unavailable::Interrupted) => panic!("nobody interrupts"),
        }
    }

    #[test]
    fn helper_is_queried_for_server() {
        let script = r#"[ "$1" = get ] && printf '{"ServerURL":"x","Username":"%s","Secret":"s"}' "$(cat)""#;
        let expected =
            Credentials::Password { user: "registry.example".to_owned(), password: "s".to_owned() };
        assert!(run(script).is_ok_and(|credentials| credentials == expected));
        let token = r#"printf '{"ServerURL":"x","Username":"<token>","Secret":"t"}'"#;
        assert!(
            run(token).is_ok_and(|credentials| credentials == Credentials::IdentityToken("t".to_owned()))
        );
    }

    #[test]
    fn helper_without_credentials_is_not_error() {
        let script = "echo credentials not found in native keychain; exit 1";
        assert!(run(script).is_ok_and(|credentials| credentials == Credentials::Anonymous));
    }

    #[test]
    fn failing_helper_is_named() {
        assert!(run("echo locked; exit 1").unwrap_err().contains("failed: locked"));
        assert!(run("echo hello").unwrap_err().contains("no credentials"));
        let absent = ask("docker-credential-absent-from-here", "a", &mut || false);
        assert!(matches!(absent, Err(Unavailable::Failed(reason)) if reason.contains("does not start")));
    }

    #[test]
    fn interruption_ends_hanging_helper() {
        let (_folder, program) = helper("exec sleep 600");
        let started = Instant::now();
        let mut calls = 0;
        let result = ask(&program, "a", &mut || {
            calls += 1;
            calls > 3
        });
        assert!(matches!(result, Err(Unavailable::Interrupted)));
        assert!(started.elapsed() < HELPER_TIMEOUT);
    }
}
