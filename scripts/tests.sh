#!/usr/bin/env bash
# All tests, whichever fail. Builds once; then those that mostly wait run beside those that mostly compute, and afterwards
# what measures, in peace. Says how long everything took, and which programs took longest, with their CPU and
# that of the processes they waited for.
#
#   scripts/tests.sh [--everyday] [OPTION of cargo test that selects packages or targets]...
#
# --everyday leaves out what brings up real Istio, releases of it and clusters, and the benchmarks.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo=${CARGO:-cargo}
slowest=10

# Programs, as crate/target. Each row runs one after the other, beside the next row and all programs that are not named.
waiting=(meshmeter/run_istio meshmeter/one_node_cluster meshmeter/cluster_meshes)
components=(meshmeter/istio lab/istio meshmeter/lab_up meshmeter/run meshmeter/run_export lab/arrangement lab/lab)
# Afterwards, for they measure how evenly requests are sent: little CPU, much time.
measuring=(load/engine load/engine_on_epoll load/several_servers load/several_servers_on_epoll load/schedules)
searching=(meshmeter/load_search meshmeter/load_schedules meshmeter/load_objective)
# Alone: it holds the CPU of programs against each other.
comparing=(meshmeter/benchmarks)
# Most of the time of all, in few programs.
rare=("${waiting[@]}" meshmeter/istio lab/istio meshmeter/lab_up meshmeter/lab_releases meshmeter/size "${comparing[@]}")

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

# Runs the built programs of these names, as far as they are selected, one after the other.
run_named() {
  local name
  for name in "$@"; do
    [[ -z ${folder_of[$name]:-} || " ${left_out[*]} " == *" $name "* ]] || run "$name" "${folder_of[$name]}" "${program_of[$name]}"
  done
}

"$cargo" test --locked --workspace --no-run --message-format json-render-diagnostics "$@" >"$folder/messages"
named=("${waiting[@]}" "${components[@]}" "${measuring[@]}" "${searching[@]}" "${comparing[@]}")
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

run_named "${waiting[@]}" &
run_named "${components[@]}" &
run_named "${others[@]}"
wait
run_named "${searching[@]}" &
run_named "${measuring[@]}"
wait
run_named "${comparing[@]}"

echo
[[ ${#left_out[@]} -eq 0 ]] || echo "Left out: ${left_out[*]}"
echo "All tests took $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s. Longest:"
sort -rn "$folder/times" | head -n "$slowest"
[[ ! -s $folder/failed ]] || {
  echo
  cat "$folder/failed"
  exit 1
}
