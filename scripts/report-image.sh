#!/bin/sh
# docs/images/report.png: the beginning of the report of a run, drawn by Chromium. For README, after `make demo` on a quiet machine.
set -eu

run=${1:?usage: scripts/report-image.sh RUN [IMAGE]}
image=${2:-$(dirname "$0")/../docs/images/report.png}
report=$(realpath "$run/report.html")
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
"${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars --window-size=1180,1330 \
  --user-data-dir="$profile" --screenshot="$(realpath "$image")" "file://$report" 2> "$profile/log" || { cat "$profile/log" >&2; exit 1; }
echo "$image: the beginning of $report"
