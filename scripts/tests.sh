#!/usr/bin/env bash
# All tests, whichever fail. Says at the end how long they took, and which of their programs took longest.
set -euo pipefail
shopt -s extglob

slowest=10
declare -A took
program='' since=0

# So ends a program's time: with the next program, or with the last line.
ended() {
  if [[ -n $program ]]; then
    took[$program]=$((SECONDS - since))
  fi
  since=$SECONDS
}

if [[ -t 1 ]]; then
  export CARGO_TERM_COLOR=always
fi
begun=$SECONDS
exec 3< <("${CARGO:-cargo}" test --locked --workspace --no-fail-fast "$@" 2>&1)
tests=$!
while IFS= read -r line <&3; do
  printf '%s\n' "$line"
  plain=${line//$'\e['*([0-9;])m/}
  if [[ $plain =~ ^\ +Running\ (.+)\ \(.*/([^/]+)\)$ ]]; then
    ended
    program="${BASH_REMATCH[2]}  ${BASH_REMATCH[1]}"
  elif [[ $plain =~ ^\ +(Doc-tests\ .+)$ ]]; then
    ended
    program=${BASH_REMATCH[1]}
  fi
done
ended
status=0
wait "$tests" || status=$?
echo
echo "All tests took $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s. Longest:"
for program in "${!took[@]}"; do
  printf '%6d s  %s\n' "${took[$program]}" "$program"
done | sort -rn | head -n "$slowest"
exit "$status"
