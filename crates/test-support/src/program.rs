//! Programs made of a few lines of shell, in place of real ones.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Creates a program with this name in `folder` and returns its path. `$1` etc. are its arguments.
///
/// A child process writes it: the kernel does not run a file that is open for writing, and a file that this
/// process had written would be open for a moment in each process that another test is just starting.
pub fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    write!(writer.stdin.take().unwrap(), "#!/bin/sh\n{script}\n").unwrap();
    assert!(writer.wait().unwrap().success());
    path.display().to_string()
}
