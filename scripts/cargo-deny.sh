#!/bin/sh
# Runs cargo-deny with the arguments given: the right version from the path, else one built once into .tools/.
set -eu

version=0.20.2
cd "$(dirname "$0")/.."
tool=.tools/cargo-deny-$version/bin/cargo-deny

if command -v cargo-deny >/dev/null 2>&1 && [ "$(cargo-deny --version)" = "cargo-deny $version" ]; then
  tool=cargo-deny
elif [ ! -x "$tool" ]; then
  echo "cargo-deny.sh: building cargo-deny $version into .tools/ (a minute or two, once)" >&2
  # It runs for a second at a time: building it fast matters more than how fast it runs.
  CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 CARGO_TARGET_DIR=.tools/build \
    cargo install cargo-deny --locked --quiet --version "$version" --no-default-features \
    --root ".tools/cargo-deny-$version"
  rm -rf .tools/build
fi
exec "$tool" "$@"
