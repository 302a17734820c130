#!/usr/bin/env bash
# Runs every fuzz target in turn, each for the same time, and keeps what they find in fuzz/corpus and fuzz/artifacts.
#
#   scripts/fuzz.sh [SECONDS [TARGET…]]      SECONDS: of each target, 3600 by default
#
# Builds cargo-fuzz once, and libFuzzer with the C++ compiler. Without a sanitizer: the readers have no unsafe code, and with one the
# dependencies take half an hour to compile. Panics, overflows, endless loops and memory beyond 4 GB are found all the same. A crash
# ends its target alone; exit status 1 if any crashed. Before inputs are committed, `cargo fuzz cmin --sanitizer none TARGET` reduces
# them to those that reach different code.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"
seconds=${1:-3600}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || {
  sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' ../scripts/fuzz.sh >&2
  exit 2
}
shift || true
command -v c++ >/dev/null || {
  echo "fuzz: there is no C++ compiler (c++), which libFuzzer needs: install g++ or clang" >&2
  exit 2
}
tool=$(../scripts/cargo-tool.sh cargo-fuzz 0.13.1)
PATH=$(dirname "$tool"):$PATH
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
  for target in fuzz_targets/*.rs; do
    targets+=("$(basename "$target" .rs)")
  done
fi
failed=()
for target in "${targets[@]}"; do
  echo "fuzz: $target for $seconds s" >&2
  dictionary=()
  [[ ! -e $target.dict ]] || dictionary=("-dict=$target.dict")
  cargo fuzz run --sanitizer none "$target" -- \
    -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 "${dictionary[@]}" ||
    failed+=("$target")
done
[[ ${#failed[@]} -eq 0 ]] || {
  echo "fuzz: inputs that crash are in fuzz/artifacts: ${failed[*]}" >&2
  exit 1
}
