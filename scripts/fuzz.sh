#!/usr/bin/env bash
# Runs every fuzz target in turn, each for the same time, and keeps what they find in fuzz/corpus and fuzz/artifacts.
#
#   scripts/fuzz.sh [SECONDS [TARGET…]]      SECONDS: of each target, 3600 by default
#
# Needs a nightly compiler and cargo-fuzz (`cargo install cargo-fuzz`). A crash ends its target alone; exit status 1 if any
# crashed. Before inputs are committed, `cargo +nightly fuzz cmin TARGET` reduces them to those that reach different code.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"
seconds=${1:-3600}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || {
  sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' ../scripts/fuzz.sh >&2
  exit 2
}
shift || true
cargo +nightly fuzz --version >/dev/null 2>&1 || {
  echo "fuzz: there is no nightly compiler with cargo-fuzz: \`cargo install cargo-fuzz\`" >&2
  exit 2
}
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
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 "${dictionary[@]}" ||
    failed+=("$target")
done
[[ ${#failed[@]} -eq 0 ]] || {
  echo "fuzz: inputs that crash are in fuzz/artifacts: ${failed[*]}" >&2
  exit 1
}
