#!/usr/bin/env bash
# Installs each package of target/dist into an empty folder and runs a study from there, without the sources, Cargo and Go.
#
#   scripts/dist/check.sh
#
# It needs what `make demo` needs on the machine, and the package index for Envoy. As root it hides the checkout meanwhile, so that
# nothing beside the sources can be used unnoticed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
checkout=$PWD
dist=$checkout/target/dist

fail() {
  echo "check.sh: $1" >&2
  exit 1
}

[[ -f $dist/SHA256SUMS ]] || fail 'there is nothing in target/dist (make dist)'
folder=$(mktemp -d "${TMPDIR:-/tmp}/meshmeter-dist.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# only FILE...: the only file that a pattern matches.
only() {
  [[ $# -eq 1 && -e $1 ]] || fail "there is not one such file: $*"
  echo "$1"
}

check_sums_and_reproducibility() {
  (cd "$dist" && sha256sum --check --quiet SHA256SUMS) || fail 'target/dist has other files than SHA256SUMS says'
  cp "$dist/SHA256SUMS" "$folder/first"
  scripts/dist.sh >"$folder/dist.log" || fail 'the packages could not be made again'
  diff "$folder/first" "$dist/SHA256SUMS" || fail 'packages that are made again have other digests'
}

# No path of the machine that it was built on is in the program: it would not be the same elsewhere.
check_program() {
  local path
  for path in "$checkout" "${CARGO_HOME:-$HOME/.cargo}"; do
    ! grep --quiet --fixed-strings --text "$path/" "$1" || fail "$1 has the path $path in it"
  done
  ! readelf --program-headers "$1" | grep --quiet INTERP || fail "$1 is not static"
}

# in_empty_root FOLDER COMMAND...: runs a command with nothing but the system's programs and what was installed.
in_empty_root() {
  local root=$1 path=$2 hide=()
  shift 2
  if [[ $(id -u) -eq 0 ]]; then
    # shellcheck disable=SC2016 # for the inner shell
    hide=(unshare --mount sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$checkout")
  fi
  mkdir -p "$root/home" "$root/work"
  (cd "$root/work" && "${hide[@]}" env -i "HOME=$root/home" "PATH=$path:/usr/sbin:/usr/bin:/sbin:/bin" LANG=C.UTF-8 \
    "MESHMETER_COMPONENTS=$folder/components" ${PIP_INDEX_URL:+"PIP_INDEX_URL=$PIP_INDEX_URL"} \
    ${PIP_CONFIG_FILE:+"PIP_CONFIG_FILE=$PIP_CONFIG_FILE"} "$@")
}

# runs_a_study KIND ROOT SEARCH_PATH: a run as its user would make it. Status 1 says that the machine disturbed every trial: a
# result nevertheless.
runs_a_study() {
  local kind=$1 root=$2 path=$3 status=0 mode
  echo "check.sh: $kind: $(in_empty_root "$root" "$path" meshmeter --version)"
  in_empty_root "$root" "$path" meshmeter run sidecar-cost --repeats 1 --out run >"$root/run.log" 2>&1 || status=$?
  [[ $status -le 1 && -s $root/work/run/report.html ]] ||
    fail "$kind: the run ended with $status: $(tail -n 20 "$root/run.log")"
  for mode in none gateway sidecar; do
    grep --quiet "\"mode\":\"$mode\"" "$root/work/run/trials.jsonl" || fail "$kind: no trial of mode $mode"
  done
}

check_archive() {
  local root=$folder/archive name
  mkdir "$root"
  tar --extract --file "$(only "$dist"/meshmeter-*-linux-"$native".tar.gz)" --directory "$root"
  name=$(only "$root"/meshmeter-*)
  check_program "$name/meshmeter"
  [[ -s $name/man/man1/meshmeter-run.1 && -s $name/THIRD-PARTY-LICENCES && -s $name/schema/experiment.json ]] ||
    fail 'the archive lacks documents'
  bash -c "source '$name/completions/meshmeter.bash' && complete -p meshmeter" >/dev/null || fail 'bash refuses the completions'
  runs_a_study archive "$root" "$name"
}

# as_root COMMAND...: for what only root may do to an empty root, which an ordinary user is in a namespace.
as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  else
    unshare --user --map-root-user "$@"
  fi
}

check_deb() {
  local root=$folder/deb package verified
  package=$(only "$dist"/meshmeter_*_"$native".deb)
  command -v dpkg >/dev/null || fail 'dpkg is needed to install the Debian package'
  mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
  touch "$root/var/lib/dpkg/status"
  as_root dpkg --root="$root" --force-script-chrootless --install "$package" >"$root/install.log" 2>&1 ||
    fail "the Debian package cannot be installed: $(tail -n 5 "$root/install.log")"
  verified=$(dpkg --root="$root" --verify meshmeter) || fail 'the files of the Debian package cannot be verified'
  [[ -z $verified ]] || fail "the Debian package has other files than its md5sums say: $verified"
  runs_a_study deb "$root" "$root/usr/bin"
}

check_wheel() {
  local root=$folder/wheel machine
  machine=$(uname -m)
  mkdir "$root"
  python3 -m venv "$root/venv"
  "$root/venv/bin/python" -m pip install --quiet --no-index "$(only "$dist"/meshmeter-*"$machine".whl)"
  [[ -s $root/venv/share/man/man1/meshmeter-run.1 ]] || fail 'the wheel lacks manual pages'
  runs_a_study wheel "$root" "$root/venv/bin"
}

# The image has the program of the archive, which plans a study where there is nothing else. Its runs are on clusters.
check_image() {
  local layer program image=$folder/image
  program=$(only "$folder"/archive/meshmeter-*)/meshmeter
  mkdir "$image"
  tar --extract --file "$(only "$dist"/meshmeter-*-image.tar)" --directory "$image"
  for layer in "$image"/blobs/sha256/*; do
    rm -rf "$image/root"
    mkdir "$image/root"
    # Other blobs are not archives, or of the other architecture.
    tar --extract --file "$layer" --directory "$image/root" 2>/dev/null || continue
    cmp --quiet "$program" "$image/root/meshmeter" || continue
    as_root chroot "$image/root" /meshmeter run sidecar-cost --dry-run >"$image/plan" ||
      fail 'the program of the image does not run in it'
    return
  done
  fail 'the image has not the program of the archive'
}

native=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
check_sums_and_reproducibility
check_archive
check_deb
check_wheel
check_image
echo 'check.sh: the archive, the Debian package and the wheel run a study from an empty folder; the image plans one'
