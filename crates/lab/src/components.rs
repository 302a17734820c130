//! The real components that the lab runs: where they are, which versions, and how they get there.
//!
//! Only Envoy for now. It is looked for in this order: a path that the user gave, `MESHMETER_ENVOY`, then the components
//! folder (`MESHMETER_COMPONENTS`, else `$XDG_CACHE_HOME/meshmeter/components`, else `~/.cache/meshmeter/components`),
//! which [`install`] fills. An Envoy that the user names may be of any version: the run records which. Nothing is looked
//! for in `PATH`, where an Envoy of unknown make could slip into a measurement.

mod install;
mod subprocess;

pub use install::{Installation, install};
pub(crate) use subprocess::output_within;

use experiment::environment::EnvironmentError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The version of Envoy that [`install`] fetches.
pub const ENVOY_VERSION: &str = "1.40.0";

/// Names an Envoy binary to use instead of the installed one.
pub const ENVOY_VARIABLE: &str = "MESHMETER_ENVOY";

/// Names the folder for components instead of the one in the user's cache.
pub const FOLDER_VARIABLE: &str = "MESHMETER_COMPONENTS";

/// What to do where Envoy is missing.
const INSTALL_HINT: &str =
    "`meshmeter lab install` fetches it; `--envoy PATH` or MESHMETER_ENVOY names one that you have";

/// How long `envoy --version` may take; it takes some 50 ms, more where the disk is cold.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// An Envoy binary that runs here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Envoy {
    /// The binary, as an absolute path.
    pub path: PathBuf,
    /// Its version, such as `1.40.0`.
    pub version: String,
}

/// What is known of one component.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComponentStatus {
    /// Such as `envoy`.
    pub name: String,
    /// Where it is, or would be after an installation.
    pub path: PathBuf,
    /// Its version as it states it itself, or why it cannot be used.
    pub version: Result<String, String>,
    /// Size of its file, bytes; 0 where there is none.
    pub size_bytes: u64,
}

/// Finds Envoy and asks it for its version.
///
/// # Errors
/// Where there is none, or the one that was named does not run.
pub fn find_envoy(explicit: Option<&Path>) -> Result<Envoy, EnvironmentError> {
    let path = envoy_path(explicit)?;
    let version = envoy_version(&path).map_err(|reason| {
        EnvironmentError::new(format!("use Envoy at {}", path.display()), reason).with_hint(INSTALL_HINT)
    })?;
    Ok(Envoy { path, version })
}

/// Every component, whether it is there or not.
///
/// # Errors
/// Where no folder for components is known.
pub fn status(explicit_envoy: Option<&Path>) -> Result<Vec<ComponentStatus>, EnvironmentError> {
    let path = envoy_path(explicit_envoy)?;
    let size_bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let version = envoy_version(&path);
    Ok(vec![ComponentStatus { name: "envoy".to_owned(), path, version, size_bytes }])
}

/// The folder for components, as the environment variables say.
///
/// # Errors
/// Where none of the variables that could name it is set.
pub fn folder() -> Result<PathBuf, EnvironmentError> {
    folder_from(&|name| std::env::var_os(name))
}

/// Where Envoy is expected; it need not be there.
fn envoy_path(explicit: Option<&Path>) -> Result<PathBuf, EnvironmentError> {
    let named = explicit.map(Path::to_path_buf).or_else(|| non_empty(std::env::var_os(ENVOY_VARIABLE)));
    let path = match named {
        Some(path) => path,
        None => install::envoy_in(&folder()?),
    };
    std::path::absolute(&path)
        .map_err(|error| EnvironmentError::new(format!("resolve the path {}", path.display()), error))
}

fn folder_from(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, EnvironmentError> {
    let set = |name: &str| non_empty(variable(name));
    set(FOLDER_VARIABLE)
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("meshmeter/components")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/meshmeter/components")))
        .ok_or_else(|| {
            EnvironmentError::new("find the folder for components", "HOME is not set")
                .with_hint(format!("set {FOLDER_VARIABLE} to a folder"))
        })
}

fn non_empty(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Runs `envoy --version`; the error says in words why that Envoy cannot be used.
fn envoy_version(path: &Path) -> Result<String, String> {
    if !path.exists() {
        return Err("there is no such file".to_owned());
    }
    let output = output_within(Command::new(path).arg("--version"), VERSION_LIMIT)
        .map_err(|error| format!("it does not run: {error}"))?;
    if !output.status.success() {
        return Err(format!("`--version` ended with {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    parse_version(&text)
        .map(ToOwned::to_owned)
        .ok_or_else(|| format!("`--version` printed no Envoy version: {:?}", first_line(&text)))
}

/// `…/envoy  version: <commit>/<version>/<clean>/<build type>/<TLS library>`, as Envoy's `VersionInfo::version` writes it.
fn parse_version(text: &str) -> Option<&str> {
    let (_, fields) = text.split_once("version:")?;
    let version = fields.trim().split('/').nth(1)?;
    let starts_as_version = version.chars().next().is_some_and(|first| first.is_ascii_digit());
    (starts_as_version && version.contains('.')).then_some(version)
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder_with(variables: &[(&str, &str)]) -> Result<PathBuf, EnvironmentError> {
        folder_from(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_folder_is_the_nearest_that_is_named() {
        let all = [("MESHMETER_COMPONENTS", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(folder_with(&all).unwrap(), Path::new("/c"));
        assert_eq!(folder_with(&all[1..]).unwrap(), Path::new("/x/meshmeter/components"));
        assert_eq!(folder_with(&all[2..]).unwrap(), Path::new("/h/.cache/meshmeter/components"));
        let empty = [("MESHMETER_COMPONENTS", ""), ("HOME", "/h")];
        assert_eq!(folder_with(&empty).unwrap(), Path::new("/h/.cache/meshmeter/components"));
    }

    #[test]
    fn no_folder_is_an_error_with_a_hint() {
        let error = folder_with(&[]).unwrap_err();
        assert!(error.hint.unwrap().contains("MESHMETER_COMPONENTS"));
    }

    #[test]
    fn version_is_read_from_what_envoy_prints() {
        let printed = "\n/e/envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL\n\n";
        assert_eq!(parse_version(printed), Some("1.40.0"));
        for other in ["", "version:", "version: abc/def/x", "nginx version: nginx/1.22"] {
            assert_ne!(parse_version(other), Some("1.40.0"), "{other}");
        }
    }

    #[test]
    fn an_absent_envoy_is_named_with_what_to_do() {
        let error = find_envoy(Some(Path::new("/nowhere/envoy"))).unwrap_err();
        assert_eq!(error.to_string(), "use Envoy at /nowhere/envoy");
        assert!(error.hint.unwrap().contains("meshmeter lab install"));
    }

    #[test]
    fn something_else_in_envoys_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("envoy");
        std::fs::write(&path, "#!/bin/sh\necho 'nginx version: nginx'\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = find_envoy(Some(&path)).unwrap_err();
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("no Envoy version"));
    }
}
