#!/bin/sh
# The documents as a book in target/book/html, with a search that needs no network.
set -eu

cd "$(dirname "$0")/.."
book=${CARGO_TARGET_DIR:-target}/book
tool=$(scripts/cargo-tool.sh mdbook 0.5.4 --no-default-features --features search)

rm -rf "$book"
python3 scripts/book.py stage "$book"
"$tool" build "$book"
python3 scripts/book.py check "$book/html"
echo "The book: $book/html/index.html"
