# shellcheck shell=bash
# The static program that is shipped, by architecture. Sourced by scripts/dist.sh and scripts/image.sh, from the repository's
# folder.
#
# musl, since a static glibc still loads the name services of the machine that it runs on. No path and no time of the build is
# in the program: the same sources give the same bytes.
# shellcheck disable=SC2034 # what is set here is used where this is sourced

cargo=${CARGO:-cargo}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
sysroot=$(rustc --print sysroot)
# Not below target/dist: that holds what is shipped and nothing else.
build_folder=target/dist-build

# The commit, and its time as that of every file in an archive. An archive of the sources without git has neither, unless
# variables say so, also where it is unpacked inside another repository.
commit=${MESHMETER_COMMIT:-}
is_clone=
[[ ! $(git rev-parse --show-toplevel 2>/dev/null) -ef . ]] || is_clone=yes
if [[ -n $is_clone ]]; then
  : "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
  [[ -n $commit || -n $(git status --porcelain --untracked-files=no) ]] || commit=$(git rev-parse HEAD)
fi
# The earliest time that a zip archive can state: 1980-01-01.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
[[ -z $commit ]] || export MESHMETER_COMMIT=$commit

# use_architecture NAME: sets its target, the linker and the compiler of C code; false for an unknown name.
use_architecture() {
  case $1 in
  amd64) target=x86_64-unknown-linux-musl linker=cc compiler=musl-gcc package=musl-tools ;;
  # Rust brings musl itself; the code in C includes headers that declare the same in both libraries.
  arm64)
    target=aarch64-unknown-linux-musl linker=aarch64-linux-gnu-gcc compiler=$linker
    package='gcc-aarch64-linux-gnu libc6-dev-arm64-cross'
    ;;
  *) return 1 ;;
  esac
  program=$build_folder/$target/release/meshmeter
}

# Why the target in use cannot be built here, if so.
lacking() {
  [[ -d $sysroot/lib/rustlib/$target/lib ]] || {
    echo "Rust has no standard library for $target (rustup target add $target)"
    return
  }
  command -v "$compiler" >/dev/null || echo "there is no $compiler (Debian: $package)"
}

# Builds the program for the target in use.
build_program() {
  local upper flags='' prefix home=${CARGO_HOME:-$HOME/.cargo}
  upper=$(tr 'a-z-' 'A-Z_' <<<"$target")
  for prefix in "$PWD=/meshmeter" "$home=/cargo" "$sysroot=/rust"; do
    flags+=" --remap-path-prefix=$prefix"
  done
  env "CARGO_TARGET_${upper}_RUSTFLAGS=${flags# }" "CARGO_TARGET_${upper}_LINKER=$linker" CARGO_TARGET_DIR="$build_folder" \
    "CC_${target//-/_}=$compiler" "CFLAGS_${target//-/_}=-ffile-prefix-map=$home=/cargo" \
    "$cargo" build --locked --quiet --release --bin meshmeter --target "$target"
}
