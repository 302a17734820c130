#!/usr/bin/env bash
# Builds the programs of a cluster once per version, and prints where they are: the folder of those built here, etcd and
# kube-apiserver (which `meshmeter lab install` brings), and the folder of Helm and kwok.
#
#   programs.sh            builds what every cluster runs
#   programs.sh --all      Helm and kwok as well
#   programs.sh --tools    Helm and kwok alone
#   programs.sh --look     builds nothing
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=scripts/cluster/build.sh
source "$here/build.sh"

# Versions, from the one place that pins each: version MODULE_FOLDER MODULE
version() {
  sed -n "s|^[[:space:]]*\(require \)\{0,1\}$2 v\([^ ]*\).*|\2|p" "$root/components/$1/go.mod" | head -n 1
}

kubernetes=$(version kubernetes k8s.io/kubernetes)
etcd=$components/etcd-$(version kubernetes go.etcd.io/etcd/server/v3)/etcd
api_server=$components/kube-apiserver-$kubernetes/kube-apiserver

# What decides what is built, whose digest names the folder: recipe MODULE_FOLDER
recipe() {
  (cd "$root/components" && find "$1" -type f -print0 | sort -z | xargs -0 cat "$here"/{build,programs}.sh) | sha256sum | cut -c -12
}
programs=$components/cluster-$kubernetes-$(recipe cluster-node)
tools=$components/cluster-tools-$(recipe cluster-tools)

# An image of a program in the folder given, which it replaces: as_image FOLDER NAME
as_image() {
  "$root/scripts/oci_image.py" --output "$1/$2.tar" --name "localhost/$2:1" --user 65532:65532 \
    --file "/$2=$1/$2" --entrypoint "/$2" >/dev/null && rm "$1/$2"
}

# Into the folder given.
build() {
  echo "cluster.sh: building Kubernetes $kubernetes for a node; the first time, some minutes" >&2
  local minor=${kubernetes#*.} stamp=k8s.io/component-base/version
  go_build cluster-node "$1" \
    "-X $stamp.gitVersion=v$kubernetes -X $stamp.gitMajor=${kubernetes%%.*} -X $stamp.gitMinor=${minor%%.*} -X $stamp.gitTreeState=clean" \
    ./coredns k8s.io/kubernetes/cmd/{kube-controller-manager,kube-proxy,kube-scheduler,kubectl,kubelet} || return
  as_image "$1" coredns || return
  "$root/scripts/oci_image.py" --output "$1/pause.tar" --name localhost/pause:1 --user 65535:65535 \
    --program /busybox=/bin/busybox --entrypoint /busybox --entrypoint sleep --entrypoint infinity >/dev/null
}

# Into the folder given.
build_tools() {
  echo 'cluster.sh: building Helm and kwok; the first time, some minutes' >&2
  go_build cluster-tools "$1" '' helm.sh/helm/v3/cmd/helm sigs.k8s.io/kwok/cmd/kwok && as_image "$1" kwok
}

install() {
  [[ -x /bin/busybox ]] || fail 'there is no /bin/busybox' 'scripts/setup.sh test installs it'
  [[ $kubernetes == "$(version cluster-node k8s.io/kubernetes)" ]] ||
    fail 'components/kubernetes and components/cluster-node pin different versions of k8s.io/kubernetes' \
      'components/cluster-node/go.mod has the requirements and replacements of components/kubernetes/go.mod'
  build_once cluster "$programs" build
}

case ${1:-} in
--look | --tools) ;;
*) [[ -d $programs ]] || install ;;
esac
case ${1:-} in
--all | --tools) [[ -d $tools ]] || build_once cluster-tools "$tools" build_tools ;;
esac
printf '%s\n' "$programs" "$etcd" "$api_server" "$tools"
