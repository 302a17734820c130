#!/bin/sh
# The documents as a book in target/book/html, with a search that needs no network. mdBook is taken from the path if it is of the
# right version, else built once into .tools/.
set -eu

version=0.5.4
cd "$(dirname "$0")/.."
tool=.tools/mdbook-$version/bin/mdbook
book=${CARGO_TARGET_DIR:-target}/book

if command -v mdbook >/dev/null 2>&1 && [ "$(mdbook --version)" = "mdbook v$version" ]; then
  tool=mdbook
elif [ ! -x "$tool" ]; then
  echo "docs.sh: building mdBook $version into .tools/ (three minutes, once)" >&2
  # It runs for a second at a time: building it fast matters more than how fast it runs.
  CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 CARGO_TARGET_DIR=.tools/build \
    "${CARGO:-cargo}" install mdbook --locked --quiet --version "$version" --no-default-features --features search \
    --root ".tools/mdbook-$version"
  rm -rf .tools/build
fi

rm -rf "$book"
python3 scripts/book.py stage "$book"
"$tool" build "$book"
python3 scripts/book.py check "$book/html"
echo "The book: $book/html/index.html"
