//! Files that are read, of which none may be an output. A pipe is read as a file is, from the shell's `<(…)` or by its name.

use crate::output::destination::overwriting;
use crate::output::tell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Opens a file. Opening a named pipe waits until something writes to it, which is said: a regular file may have been meant.
pub fn open(path: &Path) -> io::Result<File> {
    // A pipe that has no name cannot be resolved, and has its writer already.
    if fs::metadata(path)?.file_type().is_fifo() && fs::canonicalize(path).is_ok() {
        tell!("waiting for what is written to the pipe {}", path.display());
    }
    check(path)?;
    File::open(path)
}

/// Refuses a file that an output would overwrite.
pub fn check(path: &Path) -> io::Result<()> {
    overwriting(path).map_or(Ok(()), |option| Err(io::Error::other(format!("{option} would overwrite it"))))
}
