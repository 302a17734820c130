#!/bin/sh
# The main job on this machine: build, fetch Envoy, measure what a sidecar costs. The last line says where the report is.
set -eu

cd "$(dirname "$0")/.."
${CARGO:-cargo} build --locked --profile demo --bin meshmeter
meshmeter=${CARGO_TARGET_DIR:-target}/demo/meshmeter
"$meshmeter" lab install envoy

run=runs/sidecar-cost-$(date +%Y%m%d-%H%M%S)
status=0
"$meshmeter" run sidecar-cost --out "$run" || status=$?
if [ -f "$run/report.html" ]; then
  echo "The report: $(pwd)/$run/report.html"
elif [ "$status" -eq 0 ]; then
  echo "demo: the run ended well but left no $run/report.html" >&2
  status=3
fi
exit "$status"
