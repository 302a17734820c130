#!/usr/bin/env bash
# Images that a cluster is given, made of programs of this machine. Sourced by istio.sh and linkerd.sh, after build.sh, with `dir`,
# `work` and `version` set.
# shellcheck disable=SC2154

# image NAME OPTION...: makes localhost/NAME:$version and gives it to the cluster.
image() {
  "$root/scripts/oci_image.py" --output "$work/$1.tar" --name "localhost/$1:$version" "${@:2}" >/dev/null
  "$root/scripts/cluster.sh" import "$dir" "$work/$1.tar"
  rm "$work/$1.tar"
}

# Options of an image with the distribution's iptables, by all names that meshes look for.
find_tables() {
  local tables name
  tables=$(command -v xtables-nft-multi) || fail 'xtables-nft-multi is not on the path' 'scripts/setup.sh test installs iptables'
  of_tables=(--program "/usr/sbin/xtables-nft-multi=$tables")
  for name in ip{,6}tables{,-save,-restore,-nft,-nft-save,-nft-restore}; do
    of_tables+=(--link "/usr/sbin/$name=xtables-nft-multi")
  done
  name=$(find /usr/lib*/ -type d -name xtables 2>/dev/null | head -n 1)
  of_tables+=(--tree "$name=$name" --temporary /tmp)
}
