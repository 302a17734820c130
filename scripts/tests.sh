#!/usr/bin/env bash
# Runs all tests, whichever fail. Builds once. Several programs run side by side, the longest first; programs that
# measure run afterwards, undisturbed. Prints the total time and the longest programs, with the CPU of each
# and of the processes it waited for.
#
#   scripts/tests.sh [--everyday] [OPTION of cargo test that selects packages or targets]...
#
# --everyday leaves out what brings up real Istio, releases of it and clusters, and the benchmarks.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo=${CARGO:-cargo}
slowest=10

# Programs, as crate/target. Programs joined by a comma run one after the other.
slots=3
# The longest first: a long program that starts last would run alone. All other programs follow.
long=(
  meshmeter/istio
  'meshmeter/one_node_cluster,meshmeter/cluster_meshes'
  meshmeter/run_istio
  meshmeter/lab_releases
  lab/istio
  meshmeter/lab_up
  statistics/size
  statistics/studies
  meshmeter/run
  meshmeter/run_export
  meshmeter/benchmarks
  lab/arrangement
  lab/lab
  report/browser
)
# Afterwards, since they measure how evenly requests are sent. Side by side they leave up to a third of two CPUs idle.
measuring=(
  meshmeter/load_search
  'load/engine,meshmeter/load_objective'
  'load/engine_on_epoll,meshmeter/load_schedules'
  'load/several_servers,load/schedules'
  load/several_servers_on_epoll
)
# Not among the everyday tests: most of the time of all, in few programs.
rare=(
  meshmeter/istio meshmeter/one_node_cluster meshmeter/cluster_meshes meshmeter/run_istio meshmeter/lab_releases
  lab/istio meshmeter/lab_up meshmeter/size meshmeter/benchmarks
)

left_out=()
if [[ ${1:-} == --everyday ]]; then
  shift
  left_out=("${rare[@]}")
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
touch "$folder/times" "$folder/failed"
[[ ! -t 1 ]] || export CARGO_TERM_COLOR=always
begun=$SECONDS

# Prints a program's output at once when it has ended: run NAME FOLDER COMMAND...
run() {
  local name=$1 since=$SECONDS status=0 output user system TIMEFORMAT='%0U %0S'
  output=$(mktemp "$folder/output.XXXXXX")
  { time { (cd "$2" && CARGO_MANIFEST_DIR=$PWD exec "${@:3}") >"$output" 2>&1 </dev/null; } || status=$?; } 2>"$output.cpu"
  read -r user system <"$output.cpu"
  {
    flock 9
    echo "     Running $name ($((SECONDS - since)) s)"
    cat "$output"
    [[ $status -eq 0 ]] || echo "error: $name ended with status $status" | tee -a "$folder/failed"
    printf '%6d s, CPU %4d s  %s\n' $((SECONDS - since)) $((user + system)) "$name" >>"$folder/times"
  } 9>"$folder/lock"
  rm "$output" "$output.cpu"
}

"$cargo" test --locked --workspace --no-run --message-format json-render-diagnostics "$@" >"$folder/messages"
named=("${long[@]//,/ }" "${measuring[@]//,/ }")
declare -A folder_of program_of
others=()
while IFS=$'\t' read -r package kind target program; do
  name=${package##*/}/$target
  # A library's own tests go by the crate, as a program's own do.
  [[ $kind == test || $kind == bench ]] || name="${package##*/} ($kind)"
  folder_of[$name]=$package
  program_of[$name]=$program
  [[ " ${named[*]} " == *" $name "* ]] || others+=("$name")
done < <(sed -n 's/^{"reason":"compiler-artifact",.*"manifest_path":"\([^"]*\)\/Cargo.toml","target":{"kind":\["\([^"]*\)".*"name":"\([^"]*\)","src_path".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*$/\1\t\2\t\3\t\4/p' "$folder/messages")
[[ ${#program_of[@]} -gt 0 ]] || {
  echo 'tests: no test program is selected' >&2
  exit 2
}

# Runs the built programs of a row, as far as they are selected, one after the other.
run_row() {
  local names name
  IFS=, read -ra names <<<"$1"
  for name in "${names[@]}"; do
    [[ -z ${folder_of[$name]:-} || " ${left_out[*]} " == *" $name "* ]] || run "$name" "${folder_of[$name]}" "${program_of[$name]}"
  done
}

# Prints the next row of the queue, and removes it.
take_row() {
  {
    flock 8
    head -n 1 "$folder/queue"
    sed -i 1d "$folder/queue"
  } 8>"$folder/queue.lock"
}

# Runs row after row until the queue is empty.
run_slot() {
  local row
  while row=$(take_row) && [[ -n $row ]]; do
    run_row "$row"
  done
}

printf '%s\n' "${long[@]}" "${others[@]}" >"$folder/queue"
for ((slot = 0; slot < slots; slot++)); do
  run_slot &
done
wait
for row in "${measuring[@]}"; do
  run_row "$row" &
done
wait

echo
[[ ${#left_out[@]} -eq 0 ]] || echo "Left out: ${left_out[*]}"
echo "All tests took $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s. Longest:"
sort -rn "$folder/times" | head -n "$slowest"
[[ ! -s $folder/failed ]] || {
  echo
  cat "$folder/failed"
  exit 1
}
