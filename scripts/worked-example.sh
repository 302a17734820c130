#!/usr/bin/env bash
# The worked example of docs/worked-example.md: a mesh of 40 services in a lab, learned from its own spans, run and priced again,
# and compared with what it is. Takes a quarter of an hour on two cores and leaves every file in the directory that it is given.
# Needs `meshmeter` in the search path, the components of `meshmeter lab install`, curl and Python.
set -euo pipefail
mkdir -p "${1:?usage: scripts/worked-example.sh DIRECTORY}"
cd "$1"

# 1. The mesh: known, and up in a lab with real sidecars that trace every request.
meshmeter topology generate random --set services=40 --set density=1% --seed 7 --out mesh.yaml
meshmeter lab up --mesh istio --mode sidecar --set 'topology=mesh.yaml' --set istio.tracing=100% \
  --set proxy.workers=1 --set istio.workload-keys=ecdsa --json > lab.json 2> lab.log &
lab=$!
trap 'kill -TERM "$lab" 2>/dev/null; wait "$lab" || true' EXIT
until [ -s lab.json ]; do
  kill -0 "$lab" || { cat lab.log >&2; exit 1; }
  sleep 1
done
id=$(python3 -c 'import json; print(json.load(open("lab.json"))["id"])')
in_collector() { meshmeter lab exec --lab "$id" trace-collector -- curl -sS "$@"; }

# 2. Its telemetry: two requests a second for two minutes, and the spans of all of them.
in_collector -X PUT localhost:4318/spans
python3 - << 'END'
import json, subprocess
load = json.load(open("lab.json"))["load"]
words = [{"100": "2", "10s": "120s"}.get(word, word) for word in load]
subprocess.run(words + ["--warmup", "0s", "--json", "load.json"], check=True)
END
# A call has a span at either end. Sidecars send theirs seconds later.
meshmeter topology check mesh.yaml --json > mesh.json
python3 - << 'END' > expected
import json
requests = json.load(open("load.json"))["requests"]["completed"]
print(round(requests * 2 * sum(edge["requests"] for edge in json.load(open("mesh.json"))["edges"])))
END
for _ in $(seq 120); do
  in_collector localhost:4318/counters > counters.json
  python3 -c 'import json, sys; sys.exit(sum(json.load(open("counters.json"))["spans"].values()) < int(open("expected").read()))' && break
  sleep 1
done
in_collector localhost:4318/spans > spans.jsonl
kill -TERM "$lab"
wait "$lab" || true
trap - EXIT

# 3. Learned, and compared with the mesh.
meshmeter learn --traces spans.jsonl --sampling 100% --out learned.yaml
meshmeter topology check learned.yaml --json > learned.json
python3 - << 'END'
import json
def calls(file):
    bare = lambda name: name.rsplit("/", 1)[-1]
    return {(bare(e["from"]), bare(e["to"])): e["requests"] for e in json.load(open(file))["edges"]}
mesh, learned = calls("mesh.json"), calls("learned.json")
both = mesh.keys() & learned.keys()
print(f"calls: {len(mesh)} in the mesh, {len(learned)} learned, {len(both)} in both")
print(f"requests per request of the driver: {sum(mesh.values()):.4g} in the mesh, {sum(learned.values()):.4g} learned")
print(f"greatest difference of a call: {max(abs(learned[c] / mesh[c] - 1) for c in both):.2%}")
rate = json.load(open("load.json"))["rate"]["completed"]
driver = json.load(open("learned.provenance.json"))["drivers"][0]["rate"]
print(f"rate of the driver: {rate:.4g}/s sent, {driver:.4g}/s learned")
END

# 4. Run at two rates and priced at four requests a second; the mesh itself at that rate is the truth.
meshmeter run mesh-modes --set 'topology=learned.yaml' --set 'load.rate=[1,2]' --set 'modes=[none,sidecar]' --set proxy.workers=1 --set istio.workload-keys=ecdsa --set load.connections=2 --repeats 3 --duration 20s --accept-noise --out learned-run --overwrite
meshmeter price learned-run --topology learned.yaml --rate 4 --json > price.json
meshmeter run mesh-modes --set 'topology=mesh.yaml' --set load.rate=4 --set 'modes=[none,sidecar]' --set proxy.workers=1 --set istio.workload-keys=ecdsa --set load.connections=2 --repeats 3 --duration 20s --accept-noise --out mesh-run --overwrite
meshmeter price mesh-run --json > truth.json
python3 - << 'END'
import json
def sidecars(file):
    return next(mode for mode in json.load(open(file))["modes"] if mode["mode"] == "sidecar")
priced, truth = sidecars("price.json"), sidecars("truth.json")
print(f"sidecars: {priced['proxies']} priced, {truth['proxies']} in the mesh")
for name, key, unit, scale in [("CPU", "cpu_cores_used", "cores", 1), ("memory", "memory_bytes_used", "MB", 1e6)]:
    low, value, high = (priced[key][end] / scale for end in ("low", "estimate", "high"))
    print(f"{name}: {value:.3g} ({low:.3g}-{high:.3g}) {unit} priced, {truth[key]['estimate'] / scale:.3g} measured")
END
