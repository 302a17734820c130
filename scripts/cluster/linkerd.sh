#!/usr/bin/env bash
# Gives a cluster Linkerd by its own command, with images of programs that the user has.
# Part of scripts/cluster.sh.
#
#   linkerd.sh DIR PROGRAMS    PROGRAMS is a folder with Linkerd's programs, by the names below
set -euo pipefail

dir=$1 programs=$2
# shellcheck source=scripts/cluster/build.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/build.sh"
# shellcheck source=scripts/cluster/images.sh
source "$root/scripts/cluster/images.sh"
readonly ready_timeout=180s
work=$dir/node/linkerd

# By what Linkerd's own images call them: the command, the control plane in Go and in Rust, and the three of the proxy's image.
for program in linkerd controller linkerd-policy-controller linkerd2-proxy linkerd2-proxy-identity linkerd2-proxy-init; do
  [[ -x $programs/$program ]] || fail "there is no program $programs/$program" 'name a folder with programs of your own: the project neither ships nor builds them'
done
kubectl() {
  "$root/scripts/cluster.sh" kubectl "$dir" "$@"
}
linkerd() {
  KUBECONFIG=$dir/kubeconfig "$programs/linkerd" "$@"
}
# Whose version nobody knows: runs show the digest.
version=own-$(cat "$programs"/{controller,linkerd2-proxy} | sha256sum | cut -c -12)
rm -rf "$work"
mkdir -p "$work"
find_tables
image controller --entrypoint /controller --env "LINKERD_CONTAINER_VERSION_OVERRIDE=$version" \
  --program "/controller=$programs/controller" --program "/linkerd-policy-controller=$programs/linkerd-policy-controller"
image proxy --entrypoint /usr/lib/linkerd/linkerd2-proxy-identity --env PATH=/usr/sbin:/usr/bin \
  --env "LINKERD_CONTAINER_VERSION_OVERRIDE=$version" --env LINKERD2_PROXY_LOG=warn,linkerd=info --env LINKERD2_PROXY_LOG_FORMAT=plain \
  "${of_tables[@]}" \
  --next-layer --program "/usr/lib/linkerd/linkerd2-proxy=$programs/linkerd2-proxy" \
  --program "/usr/lib/linkerd/linkerd2-proxy-identity=$programs/linkerd2-proxy-identity" \
  --program "/usr/lib/linkerd/linkerd2-proxy-init=$programs/linkerd2-proxy-init"
# It refuses to write definitions of the Gateway API that are there already.
definitions=true
! kubectl get --output name customresourcedefinition httproutes.gateway.networking.k8s.io >/dev/null 2>&1 || definitions=false
linkerd install --crds --set "installGatewayAPI=$definitions" | kubectl apply --server-side --filename - >/dev/null
# Pods have no IPv6, and files of these images no capabilities.
linkerd install --disable-heartbeat --registry localhost --image-pull-policy Never \
  --set "linkerdVersion=$version,disableIPv6=true,proxyInit.runAsRoot=true,proxyInit.iptablesMode=nft" |
  kubectl apply --server-side --filename - >/dev/null
kubectl --namespace linkerd rollout status --timeout "$ready_timeout" deployment >/dev/null
rm -rf "$work"
echo 'cluster.sh: Linkerd is ready; annotate a pod or a namespace with linkerd.io/inject=enabled' >&2
