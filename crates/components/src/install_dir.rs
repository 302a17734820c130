//! The components directory during an installation: one installation at a time, and each package is put in
//! place in one step.

use super::manifest::Flaw;
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Environment variable that names the components directory, in place of the one in the user's cache.
pub const FOLDER_VARIABLE: &str = "MESHMETER_COMPONENTS";

pub fn folder() -> Result<PathBuf> {
    folder_from(&|name| std::env::var_os(name))
}

fn folder_from(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    non_empty(variable(FOLDER_VARIABLE))
        .or_else(|| user_cache(variable).map(|cache| cache.join("components")))
        .ok_or_else(|| {
            EnvironmentError::new("find the folder for components", "HOME is not set")
                .with_hint(format!("set {FOLDER_VARIABLE} to a folder"))
        })
}

/// Meshmeter's directory in the cache of the user with these variables.
pub fn user_cache(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification says that relative paths must be ignored.
    let cache = non_empty(variable("XDG_CACHE_HOME")).filter(|cache| cache.is_absolute());
    let cache = cache.or_else(|| Some(non_empty(variable("HOME"))?.join(".cache")))?;
    Some(cache.join("meshmeter"))
}

/// Error for a package in the components directory that cannot be used.
pub(super) fn unusable(
    operation: String,
    package: &Path,
    flaw: &Flaw,
    how_to_get: String,
) -> EnvironmentError {
    if !matches!(flaw, Flaw::Absent) {
        return EnvironmentError::new(operation, flaw.to_string()).with_hint(how_to_get);
    }
    let reason = format!("it is not installed: there is no {}", package.display());
    let of_caller = package.file_name().and_then(hint_of_caller);
    EnvironmentError::new(operation, reason).with_hint(of_caller.unwrap_or(how_to_get))
}

/// Names the user who called sudo if that user has the package: root does not run programs that another user can replace.
fn hint_of_caller(name: &OsStr) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let (user, folder) = folder_of_caller(&|name| std::env::var_os(name), &passwd)?;
    folder.join(name).exists().then(|| {
        format!(
            "user {user} has it in {}, and root does not run programs of other users: `sudo meshmeter lab install` installs \
             it for root",
            folder.display()
        )
    })
}

/// The user who called sudo, and that user's components directory.
fn folder_of_caller(variable: &dyn Fn(&str) -> Option<OsString>, passwd: &str) -> Option<(String, PathBuf)> {
    if non_empty(variable(FOLDER_VARIABLE)).is_some() {
        return None;
    }
    let user = variable("SUDO_USER")?.into_string().ok()?;
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let home = fields.into_iter().find(|fields| fields[0] == user)?.get(5).map(OsString::from)?;
    let cache = user_cache(&|name| (name == "HOME").then(|| home.clone()))?;
    Some((user, cache.join("components")))
}

fn non_empty(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

const UNFINISHED_PREFIX: &str = ".installing-";

/// Maximum wait for another installation into the same directory: a complete one, on a slow machine.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3600);

pub(super) struct InstallDir {
    folder: PathBuf,
    /// The lock is released with the file descriptor, however this process ends.
    _lock: File,
}

impl InstallDir {
    /// Creates the directory if it does not exist, waits for another installation to end, and removes remains
    /// of killed ones. `waiting` is called meanwhile; false ends the wait.
    pub(super) fn take(folder: &Path, waiting: &mut dyn FnMut() -> bool) -> Result<Self> {
        let shown = folder.display();
        fs::create_dir_all(folder).context(format!("create the components folder {shown}"))?;
        let lock = lock(folder, waiting).context(format!("lock the components folder {shown}"))?;
        remove_unfinished(folder).context(format!("clear unfinished installations from {shown}"))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    pub(super) fn unfinished(&self) -> Result<TempDir> {
        tempfile::Builder::new()
            .prefix(UNFINISHED_PREFIX)
            .tempdir_in(&self.folder)
            .context(format!("create a folder in {}", self.folder.display()))
    }

    /// Renames a filled directory to its final name. An existing package is exchanged in the same step if the
    /// file system supports that, so that there is always one. The old package is removed with the temporary
    /// directory.
    pub(super) fn put(&self, filled: &Path, package: &Path) -> Result<()> {
        let put = || {
            settle_modes(filled)?;
            if fs::symlink_metadata(package).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                return fs::rename(filled, package);
            }
            match exchange(filled, package) {
                // NFS and others do not support it.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => in_two_steps(filled, package),
                result => result,
            }
        };
        put().context(format!("put into place {}", package.display()))
    }
}

fn exchange(filled: &Path, package: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, filled, CWD, package, RenameFlags::EXCHANGE)?)
}

fn in_two_steps(filled: &Path, package: &Path) -> io::Result<()> {
    fs::rename(package, filled.with_file_name("replaced"))?;
    fs::rename(filled, package)
}

/// Sets modes independent of the umask: proxies run these programs as a user of their own, and only we may
/// change them.
fn settle_modes(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Ok(());
    }
    let runs = metadata.is_dir() || metadata.mode() & 0o100 != 0;
    fs::set_permissions(path, Permissions::from_mode(if runs { 0o755 } else { 0o644 }))?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            settle_modes(&entry?.path())?;
        }
    }
    Ok(())
}

fn lock(folder: &Path, waiting: &mut dyn FnMut() -> bool) -> io::Result<File> {
    let file = File::create(folder.join(".lock"))?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another installation does not end"));
            }
            Err(error) => return Err(error.into()),
        }
        if !waiting() {
            return Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "interrupted while another installation runs",
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// With the lock held nobody else installs, so these are remains of killed installations.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(folder: &Path) -> InstallDir {
        InstallDir::take(folder, &mut || panic!("nobody else installs")).unwrap()
    }

    #[test]
    fn package_replaces_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = take(folder.path());
        let package = folder.path().join("etcd-3.6.8");
        for content in ["old", "new"] {
            let unfinished = place.unfinished().unwrap();
            let filled = unfinished.path().join("package");
            fs::create_dir(&filled).unwrap();
            fs::write(filled.join("etcd"), content).unwrap();
            place.put(&filled, &package).unwrap();
            assert_eq!(fs::read_to_string(package.join("etcd")).unwrap(), content);
        }
    }

    #[test]
    fn any_file_with_package_name_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = take(folder.path());
        let package = folder.path().join("etcd-3.6.8");
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("theirs"), "").unwrap();
        let in_the_way: [&dyn Fn() -> io::Result<()>; 4] = [
            &|| fs::write(&package, "a file"),
            &|| std::os::unix::fs::symlink("/nowhere", &package),
            &|| std::os::unix::fs::symlink(&elsewhere, &package),
            &|| fs::create_dir(&package),
        ];
        for (way, make) in
            [exchange, in_two_steps].into_iter().flat_map(|way| in_the_way.map(|make| (way, make)))
        {
            make().unwrap();
            let unfinished = place.unfinished().unwrap();
            let filled = unfinished.path().join("package");
            fs::create_dir(&filled).unwrap();
            way(&filled, &package).unwrap();
            drop(unfinished);
            assert!(fs::symlink_metadata(&package).unwrap().is_dir());
            fs::remove_dir(&package).unwrap();
        }
        assert!(elsewhere.join("theirs").exists(), "what a link leads to is not ours");
    }

    #[test]
    fn installed_modes_are_independent_of_umask() {
        let folder = tempfile::tempdir().unwrap();
        let place = take(folder.path());
        for (made, settled) in [(0o700, 0o755), (0o777, 0o755), (0o600, 0o644), (0o666, 0o644)] {
            let unfinished = place.unfinished().unwrap();
            let filled = unfinished.path().join("package");
            fs::create_dir_all(filled.join("bin")).unwrap();
            fs::set_permissions(filled.join("bin"), Permissions::from_mode(0o700)).unwrap();
            fs::write(filled.join("bin/etcd"), "").unwrap();
            fs::set_permissions(filled.join("bin/etcd"), Permissions::from_mode(made)).unwrap();
            let package = folder.path().join("etcd-3.6.8");
            place.put(&filled, &package).unwrap();
            let mode = |path: &str| fs::metadata(package.join(path)).unwrap().mode() & 0o777;
            assert_eq!((mode("bin"), mode("bin/etcd")), (0o755, settled));
        }
    }

    #[test]
    fn second_installation_waits_until_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let _first = take(folder.path());
        let mut waited = 0;
        let second = InstallDir::take(folder.path(), &mut || {
            waited += 1;
            waited < 2
        });
        assert!(second.is_err_and(|error| error.to_string().contains("lock the components folder")));
        assert_eq!(waited, 2);
    }

    fn folder_with(variables: &[(&str, &str)]) -> Result<PathBuf> {
        folder_from(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn components_directory_follows_precedence_of_variables() {
        let all = [("MESHMETER_COMPONENTS", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(folder_with(&all).unwrap(), Path::new("/c"));
        assert_eq!(folder_with(&all[1..]).unwrap(), Path::new("/x/meshmeter/components"));
        assert_eq!(folder_with(&all[2..]).unwrap(), Path::new("/h/.cache/meshmeter/components"));
        let relative = [("XDG_CACHE_HOME", "x"), ("HOME", "/h")];
        assert_eq!(folder_with(&relative).unwrap(), Path::new("/h/.cache/meshmeter/components"));
        let empty = [("MESHMETER_COMPONENTS", ""), ("HOME", "/h")];
        assert_eq!(folder_with(&empty).unwrap(), Path::new("/h/.cache/meshmeter/components"));
    }

    #[test]
    fn caller_of_sudo_has_the_components_in_their_home() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\ntom:x:1000:1000:Tom:/home/tom:/bin/sh\nbroken\n";
        let found = |variables: &[(&str, &str)]| {
            let value = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
            };
            folder_of_caller(&value, passwd)
        };
        let theirs = PathBuf::from("/home/tom/.cache/meshmeter/components");
        assert_eq!(found(&[("SUDO_USER", "tom"), ("HOME", "/root")]), Some(("tom".to_owned(), theirs)));
        for other in [&[][..], &[("SUDO_USER", "eve")], &[("SUDO_USER", "broken")]] {
            assert_eq!(found(other), None);
        }
        assert_eq!(found(&[("SUDO_USER", "tom"), ("MESHMETER_COMPONENTS", "/c")]), None);
    }

    #[test]
    fn missing_directory_is_error_with_hint() {
        let error = folder_with(&[]).unwrap_err();
        assert!(error.hint.unwrap().contains("MESHMETER_COMPONENTS"));
    }
}
