#!/bin/sh
# Runs cargo-deny with the arguments given.
set -eu

cd "$(dirname "$0")/.."
tool=$(scripts/cargo-tool.sh cargo-deny 0.20.2 --no-default-features)
exec "$tool" "$@"
