#!/usr/bin/env bash
# The first process of a cluster's namespaces (scripts/cluster.sh starts it): mounts, network, and the node's programs, each
# started again when it ends. When this process ends, the kernel ends all others.
#
#   node.sh DIR CGROUP PROGRAMS ETCD API_SERVER SAMPLE_INTERVAL
set -euo pipefail

dir=$1 cgroup=$2 programs=$3 etcd=$4 api_server=$5 sample_interval=$6 port=$CLUSTER_PORT
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
private=$dir/node
node_address=10.240.0.1
node_name=node-1
# Those of every cluster: no two share a network.
pod_addresses=10.244.0.0/16
service_addresses=10.96.0.0/16
dns_address=10.96.0.10
readonly restart_pause_s=0.5
# Fewer garbage collections in the node's programs, and half of the CPUs for each: threads that look for work take CPU from what
# runs on the node. Containers do not inherit these.
GOMAXPROCS=$((($(nproc) + 1) / 2))
export GOGC=400 GOMAXPROCS

set_up_mounts() {
  mount -t tmpfs -o mode=755 run /run
  mkdir -p "$private/lib" "$dir/logs" /run/cgroup /run/settings
  mount --bind "$private/lib" /var/lib
  mount --bind "$dir/logs" /var/log
  # The devices of this network namespace; cgroups stay where they are.
  mount --rbind /sys/fs/cgroup /run/cgroup
  mount -t sysfs sysfs /sys
  mount --rbind /run/cgroup /sys/fs/cgroup
  umount --lazy /run/cgroup
  shield_kernel_settings
  mount --make-rshared /
}

# kubelet wants settings that hold for the whole machine. It reads what it wants, and the machine keeps what it has.
shield_kernel_settings() {
  local setting name value
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    name=${setting%=*} value=${setting#*=}
    [[ -e /proc/sys/$name ]] || continue
    echo "$value" >"/run/settings/${name//\//.}"
    mount --bind "/run/settings/${name//\//.}" "/proc/sys/$name"
  done
}

set_up_network() {
  hostname "$node_name"
  ip link set lo up
  # The kernel wants a route for a Service's address before it looks at the rules that replace it. There is no other way out:
  # what lies outside the cluster is unreachable, and known to be at once.
  ip link add node type bridge
  ip address add "$node_address/32" dev node
  ip link set node up
  ip route add "$service_addresses" dev node
  echo 1 >/proc/sys/net/ipv4/ip_forward
}

set_up_cgroups() {
  local controller
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    mkdir -p "/sys/fs/cgroup/$cgroup"
    return
  fi
  for controller in /sys/fs/cgroup/*/; do
    [[ ! -e $controller/cgroup.procs ]] || mkdir -p "$controller/$cgroup"
  done
}

# Runs a program for as long as the cluster lives: part NAME COMMAND...
part() {
  local name=$1 status
  shift
  while :; do
    status=0
    "$@" >>"$dir/logs/$name.log" 2>&1 </dev/null || status=$?
    echo "$name ended with status $status" >>"$dir/logs/ended.log"
    sleep "$restart_pause_s"
  done
}

write_containerd_settings() {
  local snapshotter=overlayfs
  # Where the folder lies on an overlay itself, as in a container.
  mkdir -p "$private/lib/probe/"{lower,upper,work,merged}
  if mount -t overlay -o "lowerdir=$private/lib/probe/lower,upperdir=$private/lib/probe/upper,workdir=$private/lib/probe/work" \
    overlay "$private/lib/probe/merged" 2>/dev/null; then
    umount "$private/lib/probe/merged"
  else
    snapshotter=native
  fi
  rm -rf "$private/lib/probe"
  cat >"$private/containerd.toml" <<TOML
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  # Not every root may lower the scores by which the kernel chooses whom to end.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$private/cni-programs"
    conf_dir = "$private/cni"
TOML
}

# Every pod has its own pair of devices, and all traffic between pods is routed, so that the rules of Services see it.
write_network_settings() {
  # A mesh may add a plugin: here, and not to the machine's own.
  mkdir -p "$private/cni" "$private/cni-programs"
  ln --symbolic /usr/lib/cni/* "$private/cni-programs/"
  cat >"$private/cni/10-pods.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "mtu": 1500, "ipMasq": false, "ipam":
    {"type": "host-local", "ranges": [[{"subnet": "$pod_addresses"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
}

write_kubelet_settings() {
  : >"$private/resolv.conf"
  cat >"$private/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $private/authority.crt}}
authorization: {mode: Webhook}
tlsCertFile: $private/kubelet-server.crt
tlsPrivateKeyFile: $private/kubelet-server.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$cgroup
kubeletCgroups: /$cgroup/kubelet
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
clusterDNS: [$dns_address]
clusterDomain: cluster.local
resolvConf: $private/resolv.conf
volumePluginDir: /var/lib/kubelet/volume-plugins
maxPods: 500
podPidsLimit: -1
oomScoreAdj: 0
# Images come by import alone: none is removed to make room, and a full disk of the machine's is for its owner to see.
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
# Pods start and end in bursts.
kubeAPIQPS: 200
kubeAPIBurst: 400
serializeImagePulls: false
YAML
}

write_proxy_settings() {
  cat >"$private/kube-proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $private/kube-proxy.kubeconfig}
clusterCIDR: $pod_addresses
hostnameOverride: $node_name
oomScoreAdj: 0
# These settings of the kernel's are not this namespace's to set.
conntrack: {maxPerCore: 0, min: 0}
iptables: {minSyncPeriod: 0s}
YAML
}

start_etcd() {
  local client=http://127.0.0.1:2379 peer=http://127.0.0.1:2380
  # Nothing of it outlives the cluster: it need not reach the disk.
  part etcd "$etcd" --data-dir=/var/lib/etcd --listen-client-urls=$client --advertise-client-urls=$client \
    --listen-peer-urls=$peer --initial-advertise-peer-urls=$peer --initial-cluster=default=$peer \
    --unsafe-no-fsync --election-timeout=500 --log-level=warn &
}

start_api_server() {
  part kube-apiserver "$api_server" --etcd-servers=http://127.0.0.1:2379 \
    --bind-address=0.0.0.0 --secure-port="$port" --advertise-address="$node_address" \
    --tls-cert-file="$private/api-server.crt" --tls-private-key-file="$private/api-server.key" \
    --client-ca-file="$private/authority.crt" \
    --service-account-signing-key-file="$private/accounts.key" --service-account-key-file="$private/accounts.pub" \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-cluster-ip-range="$service_addresses" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --anonymous-auth=false \
    --allow-privileged=true --kubelet-preferred-address-types=InternalIP \
    --kubelet-certificate-authority="$private/authority.crt" \
    --kubelet-client-certificate="$private/kubelet-client.crt" --kubelet-client-key="$private/kubelet-client.key" \
    --requestheader-client-ca-file="$private/authority.crt" --requestheader-allowed-names=aggregator \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$private/aggregator.crt" --proxy-client-key-file="$private/aggregator.key" \
    --profiling=false --shutdown-delay-duration=0s &
}

start_controllers() {
  local kubeconfig
  kubeconfig=$private/kube-controller-manager.kubeconfig
  part kube-controller-manager "$programs/kube-controller-manager" --kubeconfig="$kubeconfig" \
    --authentication-kubeconfig="$kubeconfig" --authorization-kubeconfig="$kubeconfig" \
    --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true \
    --flex-volume-plugin-dir=/var/lib/kubelet/volume-plugins \
    --service-account-private-key-file="$private/accounts.key" --root-ca-file="$private/authority.crt" \
    --cluster-signing-cert-file="$private/authority.crt" --cluster-signing-key-file="$private/authority.key" \
    --kube-api-qps=200 --kube-api-burst=400 &
  kubeconfig=$private/kube-scheduler.kubeconfig
  part kube-scheduler "$programs/kube-scheduler" --kubeconfig="$kubeconfig" \
    --authentication-kubeconfig="$kubeconfig" --authorization-kubeconfig="$kubeconfig" \
    --bind-address=127.0.0.1 --leader-elect=false --kube-api-qps=200 --kube-api-burst=400 &
}

start_node() {
  part kubelet "$programs/kubelet" --config="$private/kubelet.yaml" --kubeconfig="$private/kubelet.kubeconfig" \
    --hostname-override="$node_name" --node-ip="$node_address" --housekeeping-interval="$sample_interval" &
  part kube-proxy "$programs/kube-proxy" --config="$private/kube-proxy.yaml" &
}

api_server_is_ready() {
  "$programs/kubectl" --kubeconfig "$dir/kubeconfig" get --raw /readyz >/dev/null 2>&1
}

set_up_mounts
set_up_network
set_up_cgroups
write_containerd_settings
write_network_settings
write_kubelet_settings
write_proxy_settings

start_etcd
part containerd containerd --config "$private/containerd.toml" &
start_api_server
part forward python3 "$here/forward.py" serve "$port" &
# Its roles must be there before anybody asks it for something; cluster.sh sees to it that this ends.
until api_server_is_ready; do sleep 0.2; done
start_controllers
start_node
wait
