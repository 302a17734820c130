#!/usr/bin/env bash
# Builds what is shipped, below target/dist: for each architecture an archive, a Debian package and a Python wheel of one static
# program; an image for all of them; the bill of materials; SHA-256 sums.
#
#   scripts/dist.sh [--architecture amd64|arm64]...
#
# Without --architecture it is for each architecture that can be built here, and says which is left out and why; one that is named
# and cannot be built is an error. The same sources give the same digests (docs/packages.md).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/dist/program.sh
source scripts/dist/program.sh
# shellcheck source=scripts/dist/bill.sh
source scripts/dist/bill.sh
# shellcheck source=scripts/dist/archive.sh
source scripts/dist/archive.sh
# shellcheck source=scripts/dist/deb.sh
source scripts/dist/deb.sh
out=$PWD/target/dist

fail() {
  echo "dist.sh: $1" >&2
  [[ -z ${2:-} ]] || echo "  hint: $2" >&2
  exit 3
}

named=()
while [[ $# -gt 0 ]]; do
  case $1 in
  --architecture)
    named+=("${2:-}")
    shift 2 || fail '--architecture needs a name'
    ;;
  -h | --help)
    sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' scripts/dist.sh
    exit
    ;;
  *)
    echo "dist.sh: there is no option $1 (--help shows those there are)" >&2
    exit 2
    ;;
  esac
done

# Before anything is built, which takes minutes.
architectures=()
wanted=("${named[@]}")
[[ ${#named[@]} -gt 0 ]] || wanted=(amd64 arm64)
for architecture in "${wanted[@]}"; do
  use_architecture "$architecture" || fail "packages are for amd64 and arm64, not for \"$architecture\""
  reason=$(lacking)
  if [[ -z $reason ]]; then
    architectures+=("$architecture")
  elif [[ ${#named[@]} -gt 0 ]]; then
    fail "there can be no packages for $architecture" "$reason"
  else
    echo "dist.sh: without $architecture: $reason" >&2
  fi
done
[[ ${#architectures[@]} -gt 0 ]] || fail 'there is nothing that can be built here'
if [[ -z $commit && -n $is_clone ]]; then
  echo 'dist.sh: the tree has changes: the program says that its commit is modified' >&2
elif [[ -z $commit ]]; then
  echo 'dist.sh: this is not a clone: the program does not know its commit (MESHMETER_COMMIT)' >&2
fi

# The documents are made by a program that runs here.
native=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
use_architecture "$native" || fail "packages are not made on $native"
build_program || fail "the build for $target failed"
native_program=$PWD/$program

mkdir -p "$out"
rm -rf "${out:?}"/*
work=$(mktemp -d "$PWD/$build_folder/packages.XXXXXX")
trap 'rm -rf "$work"' EXIT
documents=$work/documents
gather_documents "$documents"
write_bill_of_materials "$target" "$work"

image_options=()
for architecture in "${architectures[@]}"; do
  use_architecture "$architecture"
  build_program || fail "the build for $target failed"
  write_licences "$target" "$work"
  pack_archive "$architecture"
  pack_deb "$architecture"
  scripts/dist/wheel.py --program "$program" --architecture "$architecture" --version "$version" --man "$documents/man" \
    --licences "$work/THIRD-PARTY-LICENCES" --output "$out"
  image_options+=(--architecture "$architecture")
done
scripts/image.sh "${image_options[@]}" "localhost/meshmeter:$version" >&2
cp target/image/meshmeter.tar "$out/meshmeter-$version-image.tar"
cp "$work/meshmeter.cdx.json" "$out/meshmeter-$version.cdx.json"
(cd "$out" && sha256sum -- meshmeter* | LC_ALL=C sort -k 2 >SHA256SUMS)
echo "$out: $(wc -l <"$out/SHA256SUMS") files and SHA256SUMS"
