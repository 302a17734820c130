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
# shellcheck source=scripts/dist/program.sh
source scripts/dist/program.sh
# shellcheck source=scripts/dist/bill.sh
source scripts/dist/bill.sh
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

fail() {
  echo "image.sh: $1" >&2
  [[ -z ${2:-} ]] || echo "  hint: $2" >&2
  exit 3
}

# image ARCHITECTURE: prints the name of the archive.
image() {
  scripts/oci_image.py --output "$out/$1.tar" --name "$name" --architecture "$1" --user 65532:65532 --temporary /tmp \
    --label "org.opencontainers.image.version=$version" --label org.opencontainers.image.licenses=Apache-2.0 \
    --file "/meshmeter=$program" --file /LICENSE=LICENSE --file "/THIRD-PARTY-LICENCES=$out/THIRD-PARTY-LICENCES" \
    --entrypoint /meshmeter >/dev/null
  echo "$out/$1.tar"
}

# Before anything is built, which takes minutes.
for architecture in "${named[@]}"; do
  use_architecture "$architecture" || fail "there are images for amd64 and arm64, not for \"$architecture\""
  reason=$(lacking)
  [[ -z $reason ]] || fail "there can be no image for $architecture: $reason"
done
[[ ${#named[@]} -gt 0 ]] || named=(amd64 arm64)

mkdir -p "$out"
archives=()
for architecture in "${named[@]}"; do
  use_architecture "$architecture"
  reason=$(lacking)
  if [[ -n $reason ]]; then
    echo "image.sh: without $architecture: $reason" >&2
    continue
  fi
  build_program || fail "the build for $target failed"
  write_licences "$target" "$out"
  archives+=("$(image "$architecture")")
  built_target=$target
done
[[ ${#archives[@]} -gt 0 ]] || fail 'there is nothing to make an image of'
digest=$(scripts/oci_image.py --output "$out/meshmeter.tar" --name "$name" --index "${archives[@]}")
write_bill_of_materials "$built_target" "$out"
echo "$out/meshmeter.tar: $name@$digest"
echo "$out/meshmeter.cdx.json: its bill of materials"
