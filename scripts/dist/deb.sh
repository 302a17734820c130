# shellcheck shell=bash
# shellcheck disable=SC2154 # what is not set here is set where this is sourced
# A Debian package of the static program. Sourced by scripts/dist.sh. `ar` and `tar` are enough: dpkg need not be there.

# lay_out_package FOLDER: the files of the package.
lay_out_package() {
  local folder=$1 share=$1/usr/share
  mkdir -p "$folder/usr/bin" "$share"/{man/man1,doc/meshmeter,meshmeter,bash-completion/completions} \
    "$share"/{zsh/vendor-completions,fish/vendor_completions.d}
  install -m 755 "$program" "$folder/usr/bin/meshmeter"
  cp "$documents"/man/*.1 "$share/man/man1/"
  cp LICENSE "$share/doc/meshmeter/copyright"
  cp "$work/THIRD-PARTY-LICENCES" "$work/meshmeter.cdx.json" "$share/doc/meshmeter/"
  gzip -9 --no-name "$share"/man/man1/*.1 "$share/doc/meshmeter/THIRD-PARTY-LICENCES" "$share/doc/meshmeter/meshmeter.cdx.json"
  cp -R "$documents/schema" "$share/meshmeter/"
  cp "$documents/completions/bash" "$share/bash-completion/completions/meshmeter"
  cp "$documents/completions/zsh" "$share/zsh/vendor-completions/_meshmeter"
  cp "$documents/completions/fish" "$share/fish/vendor_completions.d/meshmeter.fish"
}

# write_control FOLDER ARCHITECTURE INSTALLED_KIB. Nothing is depended on: the program is static. iptables redirects traffic to
# sidecars, and pip fetches Envoy.
write_control() {
  cat >"$1/control" <<CONTROL
Package: meshmeter
Version: $version
Architecture: $2
Maintainer: The Meshmeter authors
Installed-Size: $3
Recommends: iptables, python3, python3-pip
Section: net
Priority: optional
Description: measures what a service mesh costs
 Latency, throughput, CPU and memory of each data plane mode of a service
 mesh, on one machine without Kubernetes or on a cluster, with confidence
 intervals. Also a load generator and a simulator of many proxies.
CONTROL
}

# pack_deb ARCHITECTURE: prints the name of the package.
pack_deb() {
  local name=meshmeter_${version}_$1.deb folder=$work/deb-$1 size
  mkdir -p "$folder"/{control,data}
  lay_out_package "$folder/data"
  size=$(find "$folder/data" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
  write_control "$folder/control" "$1" "$size"
  (cd "$folder/data" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$folder/control/md5sums"
  pack_tar "$folder/control.tar.gz" "$folder/control" ./control ./md5sums
  pack_tar "$folder/data.tar.gz" "$folder/data" ./usr
  echo 2.0 >"$folder/debian-binary"
  rm -f "$out/$name"
  # D: no times, no owners.
  ar rcD "$out/$name" "$folder/debian-binary" "$folder/control.tar.gz" "$folder/data.tar.gz"
  echo "$name"
}
