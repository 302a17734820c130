#!/usr/bin/env bash
# Go programs that a cluster runs, built once per version. Sourced by programs.sh and istio.sh.
root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
components=${MESHMETER_COMPONENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/meshmeter/components}

fail() {
  echo "cluster.sh: $1" >&2
  echo "  hint: $2" >&2
  exit 3
}

# go_build MODULE_FOLDER OUTPUT LINKER_FLAGS PACKAGE...
go_build() {
  # As `meshmeter lab install` builds, so that nothing is compiled twice.
  (cd "$root/components/$1" && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly GOAMD64=v1 \
    go build -trimpath -buildvcs=false -ldflags "-s -w $3" -o "$2/" "${@:4}")
}

# build_once NAME FOLDER COMMAND...: has the command fill a new folder, its last argument, which gets its name when all is in it.
build_once() {
  command -v go >/dev/null || fail 'go is not on the path' 'install Go (https://go.dev/dl), then try again'
  mkdir -p "$components"
  exec 9>"$components/.$1.lock"
  flock 9
  # Another may have built it meanwhile.
  [[ ! -d $2 ]] || return 0
  unfinished=$(mktemp -d "$components/.$1-unfinished.XXXXXX")
  trap 'rm -rf "$unfinished"' EXIT
  "${@:3}" "$unfinished" 9>&- || fail "the build of $1 failed" 'it needs the Go module proxy (network, GOPROXY) and 3 GB of memory'
  chmod 755 "$unfinished"
  mv -T "$unfinished" "$2"
}
