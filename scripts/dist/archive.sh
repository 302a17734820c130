# shellcheck shell=bash
# shellcheck disable=SC2154 # what is not set here is set where this is sourced
# Archives that depend on their files alone: sorted, with the time of the commit, owned by root. Sourced by scripts/dist.sh.

# pack_tar FILE FOLDER ENTRY...: a compressed tar archive of entries of a folder.
pack_tar() {
  local file=$1 folder=$2
  shift 2
  tar --create --directory "$folder" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --mtime="@$SOURCE_DATE_EPOCH" "$@" | gzip -9 --no-name >"$file"
}

# gather_documents FOLDER: what every package has beside the program, made by the program itself.
gather_documents() {
  local folder=$1 shell kind
  mkdir -p "$folder/completions" "$folder/schema"
  "$native_program" man --out "$folder/man"
  for shell in bash zsh fish; do
    "$native_program" completion "$shell" >"$folder/completions/$shell"
  done
  for kind in experiment topology; do
    "$native_program" schema "$kind" >"$folder/schema/$kind.json"
  done
}

# pack_archive ARCHITECTURE: prints the name of the archive, which unpacks into a folder of its own.
pack_archive() {
  local name=meshmeter-$version-linux-$1 folder=$work/archive-$1
  mkdir -p "$folder/$name"/{man/man1,completions}
  install -m 755 "$program" "$folder/$name/meshmeter"
  cp LICENSE "$work/THIRD-PARTY-LICENCES" "$work/meshmeter.cdx.json" "$folder/$name/"
  cp "$documents"/man/*.1 "$folder/$name/man/man1/"
  cp -R "$documents/schema" "$folder/$name/"
  cp "$documents/completions/bash" "$folder/$name/completions/meshmeter.bash"
  cp "$documents/completions/zsh" "$folder/$name/completions/_meshmeter"
  cp "$documents/completions/fish" "$folder/$name/completions/meshmeter.fish"
  pack_tar "$out/$name.tar.gz" "$folder" "$name"
  echo "$name.tar.gz"
}
