//! Queries a program for its version, in the format of each component.

use super::{Component, answer_within, confined_answer_within};
use std::io;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// Envoy takes some 50 ms to print its version, longer from a cold disk.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// In characters; longer texts are not versions.
const MAX_LENGTH: usize = 80;

/// Runs a program of a registry or an image, confined. The error says why it is not usable as that component.
pub(super) fn ask(component: Component, path: &Path) -> Result<String, String> {
    let ask = |argument: &str| confined_answer_within(path, &[argument], &[], VERSION_TIMEOUT);
    ask_with(component, path, ask)
}

/// Runs a program that the user named, as the user would. The error says why it is not usable as that
/// component.
pub(super) fn ask_users_own(component: Component, path: &Path) -> Result<String, String> {
    ask_with(component, path, |argument| answer_within(Command::new(path).arg(argument), VERSION_TIMEOUT))
}

fn ask_with(
    component: Component,
    path: &Path,
    ask: impl FnOnce(&str) -> io::Result<Output>,
) -> Result<String, String> {
    if !path.exists() {
        return Err("there is no such file".to_owned());
    }
    let argument = match component {
        Component::Istiod | Component::PilotAgent | Component::AmbientIptables | Component::Ztunnel => {
            "version"
        }
        _ => "--version",
    };
    let output = ask(argument).map_err(|error| format!("it does not run: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{argument}` ended with {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    parse(component, &text)
        .filter(|version| version.len() <= MAX_LENGTH)
        .map(ToOwned::to_owned)
        .ok_or_else(|| format!("`{argument}` printed no version of {component}: {:?}", first_line(&text)))
}

pub(super) fn check_pinned(component: Component, program: &Path) -> Result<(), String> {
    let version = ask(component, program)?;
    let pinned = component.pinned_version().unwrap_or_default();
    if version == pinned { Ok(()) } else { Err(format!("it reports version {version}, not {pinned}")) }
}

fn parse(component: Component, text: &str) -> Option<&str> {
    match component {
        Component::Envoy => envoy(text),
        Component::Etcd => numbered(text.trim_start().strip_prefix("etcd Version: ")?),
        Component::ApiServer => numbered(text.trim_start().strip_prefix("Kubernetes v")?),
        Component::Istiod | Component::PilotAgent | Component::AmbientIptables | Component::Ztunnel => {
            istio(text)
        }
        Component::FerretDb => numbered(text.trim_start().strip_prefix("version: v")?),
        Component::Mongod => numbered(text.trim_start().strip_prefix("db version v")?),
        Component::FilterServices => numbered(text.trim_start().strip_prefix("filter-services ")?),
        Component::RateLimit => numbered(text.trim_start().strip_prefix("ratelimit ")?),
        Component::RedisServer => numbered(text.trim_start().strip_prefix("Redis server v=")?),
        Component::IstioFiles => None,
    }
}

/// `…/envoy  version: <commit>/<version>/<clean>/<build type>/<TLS library>`, the format of Envoy's
/// `VersionInfo::version`.
fn envoy(text: &str) -> Option<&str> {
    let (_, fields) = text.split_once("version:")?;
    let mut fields = fields.trim().split('/').skip(1);
    let version = numbered(fields.next()?)?;
    fields.next().map(|_| version)
}

/// `version.BuildInfo{Version:"1.31.0", GitRevision:"…", …}`, the format of Istio's Go programs and ztunnel.
/// Builds without a version print `unknown`; the Git revision then identifies them.
fn istio(text: &str) -> Option<&str> {
    let (_, fields) = text.split_once("version.BuildInfo{")?;
    let field = |name: &str| {
        let (_, rest) = fields.split_once(name)?;
        let (value, _) = rest.strip_prefix(":\"")?.split_once('"')?;
        (!value.is_empty()).then_some(value)
    };
    match field("Version")? {
        "unknown" => field("GitRevision"),
        version => Some(version),
    }
}

/// The first word, if it starts as version numbers do.
fn numbered(text: &str) -> Option<&str> {
    let version = text.split_whitespace().next()?;
    let starts_as_version = version.starts_with(|first: char| first.is_ascii_digit());
    (starts_as_version && version.contains('.')).then_some(version)
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_in_format_of_each_component() {
        let istio = r#"version.BuildInfo{Version:"1.29.1", GitRevision:"8f2c", GolangVersion:"go1.26.0"}"#;
        let unnamed = r#"version.BuildInfo{Version:"unknown", GitRevision:"15a147d", RustVersion:"1.95.0"}"#;
        let cases = [
            (Component::Envoy, "\n/e/envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL\n\n", "1.40.0"),
            (Component::Etcd, "etcd Version: 3.6.8\nGit SHA: none\n", "3.6.8"),
            (Component::ApiServer, "Kubernetes v1.36.3\n", "1.36.3"),
            (Component::Istiod, istio, "1.29.1"),
            (Component::PilotAgent, istio, "1.29.1"),
            (Component::Ztunnel, unnamed, "15a147d"),
            (Component::FerretDb, "version: v1.24.0\ncommit: unknown\n", "1.24.0"),
            (Component::Mongod, "db version v8.0.4\nBuild Info: {\n", "8.0.4"),
            (Component::FilterServices, "filter-services 3.8.1-crs-4.25.0\n", "3.8.1-crs-4.25.0"),
            (Component::RateLimit, "ratelimit 1.4.1-0.2026\n", "1.4.1-0.2026"),
            (Component::RedisServer, "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc\n", "7.0.15"),
        ];
        for (component, printed, version) in cases {
            assert_eq!(parse(component, printed), Some(version), "{component}");
            for other in ["", "version:", "version: abc/def/x", "nginx version: nginx/1.22", "Kubernetes vx"]
            {
                assert_eq!(parse(component, other), None, "{component}: {other}");
            }
        }
    }

    #[test]
    fn question_shows_program_nothing_of_machine() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "3.6.8").unwrap();
        let script = format!("echo \"etcd Version: $(cat {})\"", secret.display());
        let path = test_support::program(folder.path(), "etcd", &script);
        let path = Path::new(&path);
        assert!(ask(Component::Etcd, path).unwrap_err().contains("no version of etcd"));
        assert_eq!(ask_users_own(Component::Etcd, path).unwrap(), "3.6.8");
    }

    #[test]
    fn hanging_program_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM INT HUP; exec sleep 600";
        let path = test_support::program(folder.path(), "etcd", script);
        assert!(ask(Component::Etcd, Path::new(&path)).unwrap_err().contains("it hangs"));
    }

    #[test]
    fn other_program_in_place_of_component_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = test_support::program(folder.path(), "envoy", "echo 'nginx version: nginx'");
        assert!(
            ask(Component::Envoy, Path::new(&path)).unwrap_err().contains("no version of envoy: \"nginx")
        );
        assert_eq!(ask(Component::Envoy, Path::new("/nowhere/envoy")).unwrap_err(), "there is no such file");
    }
}
