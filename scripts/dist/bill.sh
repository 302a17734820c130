# shellcheck shell=bash
# shellcheck disable=SC2154 # what is not set here is set where this is sourced
# The software bill of materials (CycloneDX) and the licence texts of its parts. Sourced after program.sh by scripts/dist.sh and scripts/image.sh, which define
# `fail`.

# write_bill_of_materials TARGET FOLDER: writes FOLDER/meshmeter.cdx.json. The tool writes beside each Cargo.toml: it gets a copy
# of the sources.
write_bill_of_materials() {
  local target=$1 out=$2 tool copy
  tool=$(CARGO=$cargo scripts/cargo-tool.sh cargo-cyclonedx 0.5.9) || fail 'cargo-cyclonedx could not be built'
  copy=$(realpath "$(mktemp -d "$out/sources.XXXXXX")")
  cp -R Cargo.toml Cargo.lock crates "$copy/"
  # No time of day and no random number: it, too, is the same whenever it is made.
  (cd "$copy" && SOURCE_DATE_EPOCH=0 "$tool" cyclonedx --quiet --manifest-path crates/meshmeter/Cargo.toml --format json \
    --spec-version 1.5 --no-build-deps --target "$target" --override-filename bill) || {
    rm -rf "$copy"
    fail 'the bill of materials could not be made'
  }
  # As in the program: no paths of this machine.
  sed "s|path+file://$copy/|path+file:///meshmeter/|g" "$copy/crates/meshmeter/bill.json" >"$out/meshmeter.cdx.json"
  rm -rf "$copy"
  ! grep --quiet --fixed-strings "$copy" "$out/meshmeter.cdx.json" || fail "the bill of materials has the path $copy in it"
  check_bill_of_materials "$target" "$out"
}

# Holds the bill against Cargo's own list of what the program is made of.
check_bill_of_materials() {
  local linked listed missing
  linked=$(linked_crates "$1")
  listed=$(python3 -c '
import json, sys
bill = json.load(sys.stdin)
for part in bill["components"] + [bill["metadata"]["component"]]:
    print(part["name"], part["version"])' <"$2/meshmeter.cdx.json" | sort -u)
  missing=$(comm -23 <(echo "$linked") <(echo "$listed"))
  [[ -z $missing ]] || fail "the bill of materials lacks $(tr '\n' ',' <<<"$missing")"
  echo "the bill of materials has the $(wc -l <<<"$linked") crates that the program is made of" >&2
}

# linked_crates TARGET: name and version of each crate that is part of the program.
linked_crates() {
  "$cargo" tree --locked --package meshmeter --edges normal,no-proc-macro --target "$1" --prefix none --format '{p}' |
    sed 's/^\([^ ]*\) v\([^ ]*\).*/\1 \2/' | sort -u
}

# write_licences TARGET FOLDER: writes FOLDER/THIRD-PARTY-LICENCES, the texts of the same crates.
write_licences() {
  linked_crates "$1" | scripts/dist/licences.py "$1" >"$2/THIRD-PARTY-LICENCES" ||
    fail 'the licence texts could not be gathered'
}
