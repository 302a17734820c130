#!/bin/sh
# Prints the path of a tool from the crates' registry: the right version from the path, else one built once into the user's cache,
# so that every clone has it.
#
#   scripts/cargo-tool.sh NAME VERSION [OPTION of cargo install]...
set -eu

name=$1
version=$2
shift 2
tools=${XDG_CACHE_HOME:-$HOME/.cache}/meshmeter/tools
tool=$tools/$name-$version/bin/$name

if "$name" --version 2>/dev/null | grep --quiet --fixed-strings --word-regexp "$version"; then
  command -v "$name"
  exit
fi
mkdir -p "$tools"
exec 9>"$tools/.$name.lock"
flock 9
if [ ! -x "$tool" ]; then
  echo "cargo-tool.sh: building $name $version (some minutes, once)" >&2
  unfinished=$(mktemp -d "$tools/.$name.XXXXXX")
  trap 'rm -rf "$unfinished"' EXIT
  trap 'exit 130' INT TERM
  # It runs for a second at a time: building it fast matters more than how fast it runs.
  CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 CARGO_TARGET_DIR=$unfinished/build \
    "${CARGO:-cargo}" install "$name" --locked --quiet --version "$version" --root "$unfinished/installed" "$@" >&2 9>&-
  mv -T "$unfinished/installed" "$tools/$name-$version"
fi
echo "$tool"
