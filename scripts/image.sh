#!/usr/bin/env bash
# Builds an image of meshmeter, without a container engine: target/image/meshmeter.tar (an OCI archive) and beside it its
# software bill of materials (CycloneDX).
#
#   scripts/image.sh [--architecture amd64|arm64]... [NAME:TAG]
#
# Without --architecture it is for each architecture that can be built here; one that is named and cannot be built is an error.
# The image holds one static program and needs nothing else: no shell, no writable file system, no privileges. No path and no
# time of the build is in it: packing the same program again gives the same digest.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo=${CARGO:-cargo}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
named=()
while [[ ${1:-} == --architecture ]]; do
  named+=("${2:-}")
  shift 2 || break
done
case ${1:-} in
  -h | --help)
    sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' scripts/image.sh
    exit
    ;;
  -*)
    echo "image.sh: there is no option $1 (--help shows those there are)" >&2
    exit 2
    ;;
esac
name=${1:-localhost/meshmeter:$version}
out=target/image
cyclonedx=0.5.9
sysroot=$(rustc --print sysroot)

fail() {
  echo "image.sh: $1" >&2
  [[ -z ${2:-} ]] || echo "  hint: $2" >&2
  exit 3
}

# Why a target cannot be built here, if so.
lacking() {
  local target=$1 linker=$2
  [[ -d $sysroot/lib/rustlib/$target/lib ]] || {
    echo "Rust has no standard library for $target (rustup target add $target)"
    return
  }
  command -v "$linker" >/dev/null || echo "there is no $linker (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross)"
}

# Paths of this machine are in no program, so that it is the same wherever it is built.
build() {
  local target=$1 linker=$2 upper flags prefix
  upper=$(tr 'a-z-' 'A-Z_' <<<"$target")
  flags="-C target-feature=+crt-static"
  for prefix in "$PWD=/meshmeter" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$sysroot=/rust"; do
    flags+=" --remap-path-prefix=$prefix"
  done
  env "CARGO_TARGET_${upper}_RUSTFLAGS=$flags" "CARGO_TARGET_${upper}_LINKER=$linker" CARGO_TARGET_DIR="$out/build" \
    "CC_${target//-/_}=$linker" "CFLAGS_${target//-/_}=-ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
    CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols \
    "$cargo" build --locked --quiet --release --bin meshmeter --target "$target"
}

# image ARCHITECTURE TARGET: prints the name of the archive.
image() {
  scripts/oci_image.py --output "$out/$1.tar" --name "$name" --architecture "$1" --user 65532:65532 --temporary /tmp \
    --label "org.opencontainers.image.version=$version" --label org.opencontainers.image.licenses=Apache-2.0 \
    --file "/meshmeter=$out/build/$2/release/meshmeter" --file /LICENSE=LICENSE --entrypoint /meshmeter >/dev/null
  echo "$out/$1.tar"
}

# The tool writes beside each Cargo.toml: it gets a copy of the sources.
write_bill_of_materials() {
  local tool=$PWD/.tools/cargo-cyclonedx-$cyclonedx/bin/cargo-cyclonedx copy
  if [[ ! -x $tool ]]; then
    echo "image.sh: building cargo-cyclonedx $cyclonedx into .tools/ (a minute or two, once)" >&2
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR=.tools/build \
      "$cargo" install cargo-cyclonedx --locked --quiet --version "$cyclonedx" --root ".tools/cargo-cyclonedx-$cyclonedx"
    rm -rf .tools/build
  fi
  copy=$(mktemp -d "$out/sources.XXXXXX")
  cp -R Cargo.toml Cargo.lock crates "$copy/"
  # No time of day and no random number: it, too, is the same whenever it is made.
  (cd "$copy" && SOURCE_DATE_EPOCH=0 "$tool" cyclonedx --quiet --manifest-path crates/meshmeter/Cargo.toml --format json \
    --spec-version 1.5 --no-build-deps --target "$1" --override-filename bill) || {
    rm -rf "$copy"
    fail 'the bill of materials could not be made'
  }
  # As in the program: no paths of this machine.
  sed "s|path+file://$PWD/$copy/|path+file:///meshmeter/|g" "$copy/crates/meshmeter/bill.json" >"$out/meshmeter.cdx.json"
  rm -rf "$copy"
  check_bill_of_materials "$1"
}

# Holds the bill against Cargo's own list of what the program is made of.
check_bill_of_materials() {
  local linked listed missing
  linked=$("$cargo" tree --locked --package meshmeter --edges normal --target "$1" --prefix none --format '{p}' |
    sed 's/^\([^ ]*\) v\([^ ]*\).*/\1 \2/' | sort -u)
  listed=$(python3 -c '
import json, sys
bill = json.load(sys.stdin)
for part in bill["components"] + [bill["metadata"]["component"]]:
    print(part["name"], part["version"])' <"$out/meshmeter.cdx.json" | sort -u)
  missing=$(comm -23 <(echo "$linked") <(echo "$listed"))
  [[ -z $missing ]] || fail "the bill of materials lacks $(tr '\n' ',' <<<"$missing")"
  echo "image.sh: the bill of materials has the $(wc -l <<<"$linked") crates that the program is made of" >&2
}

# use_architecture NAME: sets its target and linker.
use_architecture() {
  case $1 in
  amd64) target=x86_64-unknown-linux-gnu linker=x86_64-linux-gnu-gcc ;;
  arm64) target=aarch64-unknown-linux-gnu linker=aarch64-linux-gnu-gcc ;;
  *) fail "there are images for amd64 and arm64, not for \"$1\"" ;;
  esac
}

# Before anything is built, which takes minutes.
for architecture in "${named[@]}"; do
  use_architecture "$architecture"
  reason=$(lacking "$target" "$linker")
  [[ -z $reason ]] || fail "there can be no image for $architecture: $reason"
done
[[ ${#named[@]} -gt 0 ]] || named=(amd64 arm64)

mkdir -p "$out"
archives=()
for architecture in "${named[@]}"; do
  use_architecture "$architecture"
  reason=$(lacking "$target" "$linker")
  if [[ -n $reason ]]; then
    echo "image.sh: without $architecture: $reason" >&2
    continue
  fi
  build "$target" "$linker" || fail "the build for $target failed"
  archives+=("$(image "$architecture" "$target")")
  built_target=$target
done
[[ ${#archives[@]} -gt 0 ]] || fail 'there is nothing to make an image of'
digest=$(scripts/oci_image.py --output "$out/meshmeter.tar" --name "$name" --index "${archives[@]}")
write_bill_of_materials "$built_target"
echo "$out/meshmeter.tar: $name@$digest"
echo "$out/meshmeter.cdx.json: its bill of materials"
