#!/usr/bin/env bash
# Runs the tests of `make test` N times, in turn on a quiet machine, beside a busy thread per CPU, and stalled for two seconds now and
# then, and prints each test that ever failed, with its rate.
#
#   scripts/flakes.sh N [TEXT]      TEXT: only programs whose name (crate/target) contains it
#
# Outputs and outcomes of the runs stay in target/flakes/. Exit status 1 if a test failed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1:-} =~ ^[1-9][0-9]*$ && $# -le 2 ]] || {
  sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}
folder=${CARGO_TARGET_DIR:-target}/flakes
busy=()
trap 'end_busy' EXIT

start_busy() {
  local cpu
  for ((cpu = 0; cpu < $(nproc); cpu++)); do
    (while :; do :; done) &
    busy+=($!)
  done
}

end_busy() {
  [[ ${#busy[@]} -eq 0 ]] || kill "${busy[@]}"
  busy=()
}

scripts/tests.py build
rm -rf "$folder"
mkdir -p "$folder"
for ((number = 1; number <= $1; number++)); do
  conditions=(quiet busy stalled)
  condition=${conditions[(number - 1) % 3]}
  stall=0
  case $condition in
  busy) start_busy ;;
  stalled) stall=2 ;;
  esac
  status=0
  scripts/tests.py quick --no-build --stall "$stall" --only "${2:-}" --results "$folder/$condition-$number.json" >"$folder/$condition-$number.log" 2>&1 ||
    status=$?
  end_busy
  echo "run $number of $1 ($condition): $(tail -n 1 "$folder/$condition-$number.log")"
  [[ -s $folder/$condition-$number.json ]] || {
    echo "flakes.sh: run $number left no outcomes (exit status $status): $folder/$condition-$number.log" >&2
    exit 3
  }
done
scripts/tests.py rates "$folder"/*.json
