#!/usr/bin/env bash
# A real Kubernetes cluster of one node on this machine, in namespaces of its own, for tests and trials (docs/cluster.md).
#
#   scripts/cluster.sh install [--all]         build what a cluster runs and `meshmeter lab install` does not bring; --all: also
#                                              Helm and kwok, which are built when they are needed otherwise
#   scripts/cluster.sh up DIR [OPTION...]      bring it up; DIR/kubeconfig leads to it
#     --owner PID                              it ends with process PID
#     --sample-interval DURATION               how often kubelet samples the usage of containers, in place of its default of 10s
#   scripts/cluster.sh status DIR              what runs; exit status 3 unless it is up
#   scripts/cluster.sh import DIR IMAGE.tar... give it images (OCI or Docker archives)
#   scripts/cluster.sh istio DIR               install Istio, from the components of the lab
#   scripts/cluster.sh ambient DIR ZTUNNEL     the same with its ambient mode; ZTUNNEL is a program of your own
#   scripts/cluster.sh linkerd DIR PROGRAMS    install Linkerd; PROGRAMS is a folder with programs of your own
#   scripts/cluster.sh kwok DIR [NODES]        add nodes without machines (20), on which all pods made from then on are said to run
#   scripts/cluster.sh kubectl DIR ARGUMENT... its own kubectl
#   scripts/cluster.sh helm DIR ARGUMENT...    its own Helm
#   scripts/cluster.sh enter DIR COMMAND...    run a command on the node
#   scripts/cluster.sh down DIR                end it; DIR keeps the logs
#
# Needs root, for cgroups and mounts.
set -euo pipefail
shopt -s extglob

self=$(readlink -f "${BASH_SOURCE[0]}")
root=$(dirname "$(dirname "$self")")
parts=$root/scripts/cluster
readonly ready_timeout_s=180 end_timeout_s=60

fail() {
  echo "cluster.sh: $1" >&2
  [[ -z ${2:-} ]] || echo "  hint: $2" >&2
  exit 3
}

usage() {
  sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^set /,$d' >&2
  exit 2
}

# find_programs [--look|--tools|--all]
find_programs() {
  local found
  found=$("$parts/programs.sh" "$@") || exit
  { read -r programs && read -r etcd && read -r api_server && read -r tools; } <<<"$found"
}

check_machine() {
  [[ $(id -u) -eq 0 ]] || fail 'a cluster needs root, for cgroups and mounts' "sudo $0 up $dir"
  local program
  for program in containerd runc ctr busybox openssl unshare nsenter ip iptables python3; do
    command -v "$program" >/dev/null || fail "$program is not on the path" 'scripts/setup.sh test installs it'
  done
  [[ -x /usr/lib/cni/ptp ]] || fail 'there is no /usr/lib/cni/ptp' 'scripts/setup.sh test installs containernetworking-plugins'
  for program in "$etcd" "$api_server"; do
    [[ -x $program ]] || fail "there is no $program" 'meshmeter lab install etcd kube-apiserver'
  done
  for program in "$dir" "$root" "$etcd"; do
    case $program/ in
    /run/* | /var/run/* | /var/lib/* | /var/log/*) fail "$program lies in a folder that the cluster has of its own" ;;
    esac
  done
}

# A key and a certificate of the cluster's authority: certificate NAME SUBJECT EXTENSION...
certificate() {
  local name=$private/$1 extension extensions=()
  for extension in "${@:3}"; do extensions+=(-addext "$extension"); done
  openssl req -x509 -config "$private/openssl.cnf" -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \
    -CA "$private/authority.crt" -CAkey "$private/authority.key" -subj "$2" "${extensions[@]}" \
    -keyout "$name.key" -out "$name.crt" 2>>"$dir/logs/certificates.log"
}

make_certificates() {
  printf '[req]\ndistinguished_name=subject\n[subject]\n' >"$private/openssl.cnf"
  openssl req -x509 -config "$private/openssl.cnf" -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \
    -subj /CN=meshmeter-cluster -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign,digitalSignature \
    -keyout "$private/authority.key" -out "$private/authority.crt" 2>>"$dir/logs/certificates.log"
  local of_client=extendedKeyUsage=clientAuth of_server=extendedKeyUsage=serverAuth
  certificate api-server /CN=kube-apiserver "$of_server" \
    subjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:10.96.0.1,IP:10.240.0.1
  certificate kubelet-server /CN=node-1 "$of_server" subjectAltName=DNS:node-1,IP:10.240.0.1
  certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client "$of_client"
  certificate aggregator /CN=aggregator "$of_client"
  certificate admin /O=system:masters/CN=admin "$of_client"
  certificate kubelet /O=system:nodes/CN=system:node:node-1 "$of_client"
  certificate kube-proxy /CN=system:kube-proxy "$of_client"
  certificate kube-controller-manager /CN=system:kube-controller-manager "$of_client"
  certificate kube-scheduler /CN=system:kube-scheduler "$of_client"
  openssl ecparam -name prime256v1 -genkey -noout -out "$private/accounts.key"
  openssl ec -in "$private/accounts.key" -pubout -out "$private/accounts.pub" 2>/dev/null
}

# kubeconfig FILE NAME_OF_CERTIFICATE PORT: the data inline, so that the file may be copied.
kubeconfig() {
  cat >"$1" <<YAML
apiVersion: v1
kind: Config
current-context: meshmeter-cluster
contexts: [{name: meshmeter-cluster, context: {cluster: meshmeter-cluster, user: $2}}]
clusters:
- name: meshmeter-cluster
  cluster: {server: "https://127.0.0.1:$3", certificate-authority-data: $(base64 -w 0 "$private/authority.crt")}
users:
- name: $2
  user: {client-certificate-data: $(base64 -w 0 "$private/$2.crt"), client-key-data: $(base64 -w 0 "$private/$2.key")}
YAML
}

kubectl() {
  KUBECACHEDIR=$private/kubectl-cache "$programs/kubectl" --kubeconfig "$dir/kubeconfig" "$@"
}

helm() {
  HELM_CACHE_HOME=$private/helm HELM_CONFIG_HOME=$private/helm HELM_DATA_HOME=$private/helm \
    "$tools/helm" --kubeconfig "$dir/kubeconfig" "$@"
}

# Main (outside) and init (the namespaces' first process) are recorded with their time of start, which tells them from
# others that got their numbers later.
time_of_start() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # What follows the name in parentheses, which may hold spaces, begins with the state.
  read -ra stat <<<"${stat##*) }"
  [[ ${stat[0]} != [ZX] ]] && echo "${stat[19]}"
}

record_process() {
  echo "$2 $(time_of_start "$2")" >"$private/$1.process"
}

# Prints the number of a recorded process that is alive.
process() {
  local pid since
  [[ -s $private/$1.process ]] && read -r pid since <"$private/$1.process"
  [[ -n ${since:-} && $(time_of_start "$pid") == "$since" ]] && echo "$pid"
}

is_up() {
  process init >/dev/null && [[ -e $private/ready ]]
}

# Waits until a command succeeds, as long as none of the cluster's programs has ended: until_so DESCRIPTION COMMAND...
until_so() {
  local output=''
  until output=$("${@:2}" 2>&1); do
    process main >/dev/null || fail_with_log "wait until $1: the cluster has ended" node
    [[ ! -s $dir/logs/ended.log ]] ||
      fail_with_log "wait until $1: $(head -n 1 "$dir/logs/ended.log")" "$(head -n 1 "$dir/logs/ended.log" | cut -d ' ' -f 1)"
    ((SECONDS < ready_timeout_s)) || fail_with_log "wait until $1: not within $ready_timeout_s s: $output" kubelet
    sleep 0.2
  done
}

fail_with_log() {
  fail "$1
$(tail -n 8 "$dir/logs/$2.log" 2>/dev/null | sed "s/^/  $2: /")" "logs are in $dir/logs"
}

init_has_begun() {
  local main init
  main=$(process main) && init=$(pgrep --parent "$main") && record_process init "$init"
}

node_is_ready() {
  [[ $(kubectl get node node-1 --output 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]]
}

dns_is_ready() {
  [[ $(kubectl --namespace kube-system get deployment coredns --output 'jsonpath={.status.availableReplicas}') == 1 ]]
}

on_node() {
  local init
  init=$(process init) || fail "no cluster is up in $dir" "$0 up $dir"
  nsenter --target "$init" --mount --net --pid --uts -- "$@"
}

import_image() {
  on_node ctr --namespace k8s.io images import - <"$1" >/dev/null
}

start_main() {
  setsid "$parts/forward.py" listen "$private/port" \
    unshare --mount --net --pid --uts --fork --kill-child --mount-proc -- \
    "$parts/node.sh" "$dir" "$(<"$private/cgroup")" "$programs" "$etcd" "$api_server" "$sample_interval" >>"$dir/logs/node.log" 2>&1 </dev/null &
  record_process main "$!"
  until_so 'it has a port' test -s "$private/port"
  until_so 'it has namespaces' init_has_begun
}

up() {
  find_programs
  check_machine
  ! is_up || fail "a cluster is up in $dir already" "$0 down $dir"
  [[ ! -e $private ]] || fail "$dir holds the rest of another cluster" "$0 down $dir"
  [[ -z $owner || -d /proc/$owner ]] || fail "there is no process $owner to end with"
  mkdir -p "$dir/logs"
  rm -f "$dir/logs/"*.log
  (umask 077 && mkdir -p "$private")
  basename "$(mktemp --dry-run -t meshmeter-cluster-XXXXXXXX)" >"$private/cgroup"
  trap down_after_failure EXIT
  trap 'exit 130' INT TERM
  SECONDS=0
  make_certificates
  start_main
  local port client
  port=$(<"$private/port")
  for client in kubelet kube-proxy kube-controller-manager kube-scheduler; do
    kubeconfig "$private/$client.kubeconfig" "$client" "$port"
  done
  kubeconfig "$dir/kubeconfig" admin "$port"
  until_so 'containerd answers' on_node ctr version
  # Before any pod: kubelet waits the longer the more often an image is not there.
  import_image "$programs/pause.tar"
  import_image "$programs/coredns.tar"
  until_so 'the API server is ready' kubectl get --raw /readyz
  until_so 'CoreDNS is asked for' kubectl apply --filename "$parts/coredns.yaml"
  until_so 'the node is ready' node_is_ready
  until_so 'CoreDNS is ready' dns_is_ready
  touch "$private/ready"
  if [[ -n $owner ]]; then
    # Its outputs are not this script's: whoever reads those waits for their end.
    setsid "$self" down-after "$dir" "$owner" >/dev/null 2>&1 </dev/null &
  fi
  echo "cluster.sh: up after $SECONDS s; export KUBECONFIG=$dir/kubeconfig" >&2
}

# add_nodes COUNT: nodes of kwok's. It runs on the real node, which gets no pods any more.
add_nodes() {
  local number
  import_image "$tools/kwok.tar"
  kubectl apply --filename "$parts/kwok.yaml" >/dev/null
  kubectl --namespace kube-system rollout status deployment/kwok --timeout=60s >/dev/null || fail_with_log 'start kwok' kubelet
  kubectl cordon node-1 >/dev/null
  for ((number = 1; number <= $1; number++)); do
    sed "s/NUMBER/$number/" "$parts/kwok-node.yaml"
  done | kubectl apply --filename - >/dev/null
  kubectl wait --for=condition=Ready node --selector=type=kwok --timeout=60s >/dev/null || fail 'the nodes of kwok do not get ready'
  echo "cluster.sh: $1 nodes without machines are ready; what is made from now on runs there alone" >&2
}

# What was made goes when the rest of it cannot be made.
down_after_failure() {
  local status=$?
  [[ $status -eq 0 ]] || down
  exit "$status"
}

status() {
  is_up || {
    echo "no cluster is up in $dir"
    exit 3
  }
  kubectl get nodes --output wide
  kubectl get pods --all-namespaces
}

down() {
  [[ -s $private/cgroup ]] || return 0
  local name pid since=$SECONDS cgroup directory
  for name in init main; do
    ! pid=$(process "$name") || kill -KILL "$pid" 2>/dev/null || true
  done
  while process init >/dev/null || process main >/dev/null; do
    ((SECONDS - since < end_timeout_s)) || fail "the cluster's processes are alive $end_timeout_s s after they were killed"
    sleep 0.05
  done
  cgroup=$(<"$private/cgroup")
  for directory in "/sys/fs/cgroup/$cgroup" /sys/fs/cgroup/*/"$cgroup"; do
    [[ ! -d $directory ]] || find "$directory" -depth -type d -exec rmdir {} +
  done
  rm -rf "$private" "$dir/kubeconfig"
}

verb=${1:-} owner='' sample_interval=10s
case $verb in
install)
  [[ $# -eq 1 || "${*:2}" == --all ]] || usage
  find_programs "${@:2}"
  exit
  ;;
up | status | import | istio | ambient | linkerd | kwok | kubectl | helm | enter | down | down-after) ;;
*) usage ;;
esac
[[ $# -ge 2 ]] || usage
dir=$(realpath --canonicalize-missing -- "$2")
# Keys, and what the node has in place of /var/lib.
private=$dir/node
shift 2
find_programs --look
case $verb in
up)
  while [[ $# -gt 0 ]]; do
    case "$1 ${2:-}" in
    --owner\ [1-9]*([0-9])) owner=$2 ;;
    --sample-interval\ [1-9]*([0-9])s) sample_interval=$2 ;;
    *) usage ;;
    esac
    shift 2
  done
  up
  ;;
import)
  [[ $# -ge 1 ]] || usage
  for image in "$@"; do
    [[ -r $image ]] || fail "there is no file $image"
    import_image "$image" || fail "import $image"
  done
  ;;
istio)
  [[ $# -eq 0 ]] || usage
  is_up || fail "no cluster is up in $dir" "$0 up $dir"
  find_programs --tools
  "$parts/istio.sh" "$dir" "$tools"
  ;;
ambient)
  [[ $# -eq 1 ]] || usage
  is_up || fail "no cluster is up in $dir" "$0 up $dir"
  find_programs --tools
  "$parts/istio.sh" "$dir" "$tools" "$(realpath -- "$1")"
  ;;
linkerd)
  [[ $# -eq 1 ]] || usage
  is_up || fail "no cluster is up in $dir" "$0 up $dir"
  "$parts/linkerd.sh" "$dir" "$(realpath -- "$1")"
  ;;
kwok)
  [[ $# -eq 0 || ($# -eq 1 && $1 =~ ^[0-9]+$) ]] || usage
  is_up || fail "no cluster is up in $dir" "$0 up $dir"
  find_programs --tools
  add_nodes "${1:-20}"
  ;;
# In place of this process: a port that it forwards ends with the process that the caller started.
kubectl) KUBECACHEDIR=$private/kubectl-cache exec "$programs/kubectl" --kubeconfig "$dir/kubeconfig" "$@" ;;
helm)
  find_programs --tools
  helm "$@"
  ;;
enter) on_node "$@" ;;
down-after)
  tail --pid="$1" --follow /dev/null
  down
  ;;
*)
  [[ $# -eq 0 ]] || usage
  "$verb"
  ;;
esac
