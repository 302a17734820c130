#!/bin/sh
# rustc with Clippy's lints, for RUSTC_WORKSPACE_WRAPPER: `make test` lints what it compiles while it compiles it, instead of checking
# everything, dependencies included, once more.
exec clippy-driver "$@" -D warnings
