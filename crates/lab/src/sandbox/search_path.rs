//! Directories in which system programs are looked up: PATH, and directories that an ordinary user's PATH
//! often lacks.

use std::ffi::OsString;
use std::path::PathBuf;

const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// Used if PATH is not set.
const USUAL_FOLDERS: &str = "/usr/local/bin:/usr/bin:/bin";

fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL_FOLDERS.into());
    std::env::split_paths(&path).chain(SYSTEM_FOLDERS.iter().map(PathBuf::from)).collect()
}

pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    folders().into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// PATH for programs that call others by name.
pub(crate) fn search_path() -> OsString {
    // A directory with a colon in its name cannot be in PATH anyway.
    std::env::join_paths(folders()).unwrap_or_default()
}
