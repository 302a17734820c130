#!/usr/bin/env python3
"""Gathers the licence texts of the crates that the program is made of.

    scripts/dist/licences.py TARGET <crates

Standard input has a crate per line, its name and version; the texts are those in the crates' sources. Same input, same output.
A crate without a text is an error, unless scripts/dist/licences.toml says which text of another crate is its own.
"""

import json
import os
import re
import subprocess
import sys
import tomllib

TEXT_NAME = re.compile(r"^(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-._].*)?$", re.IGNORECASE)


def metadata(target):
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
    output = subprocess.run([*command, "--filter-platform", target], check=True, stdout=subprocess.PIPE).stdout
    return {(package["name"], package["version"]): package for package in json.loads(output)["packages"]}


def texts(folder):
    """Licence texts in a crate's folder, by file name."""
    names = sorted(name for name in os.listdir(folder) if TEXT_NAME.match(name))
    found = {}
    for name in names:
        path = os.path.join(folder, name)
        # Some crates have a folder of texts.
        files = [path] if os.path.isfile(path) else [os.path.join(path, one) for one in sorted(os.listdir(path))]
        for file in files:
            if os.path.isfile(file):
                found[os.path.relpath(file, folder)] = read(file)
    return found


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def listed():
    """Crates without a text of their own: the crate that has it, and those under the Apache License."""
    with open(os.path.join(os.path.dirname(__file__), "licences.toml"), "rb") as file:
        table = tomllib.load(file)
    return table["same-text-as"], table["apache-2"]["crates"]


def texts_of(package, by_name, same_as, apache):
    found = texts(os.path.dirname(package["manifest_path"]))
    name = package["name"]
    if not found and name in same_as:
        found = texts(os.path.dirname(by_name[same_as[name]]["manifest_path"]))
    # An entry is for one licence: a crate that changes to another one is to be looked at again.
    if not found and name in apache and "Apache-2.0" in package["license"]:
        found = {"LICENSE": read("LICENSE")}
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/dist/licences.py TARGET <crates")
    packages = metadata(sys.argv[1])
    by_name = {name: package for (name, _), package in packages.items()}
    same_as, apache = listed()
    wanted = [tuple(line.split()) for line in sys.stdin if line.strip()]
    if not wanted:
        sys.exit("licences.py: there are no crates on standard input")
    lacking, crates_by_text = [], {}
    for name, version in wanted:
        package = packages.get((name, version))
        if package is None:
            sys.exit(f"licences.py: Cargo does not know {name} {version}")
        if package["source"] is None:
            continue
        shown = f"{name} {version} ({package['license']})"
        found = texts_of(package, by_name, same_as, apache)
        if not found:
            lacking.append(shown)
        for text in sorted(set(found.values())):
            crates_by_text.setdefault(text, []).append(shown)
    if lacking:
        sys.exit(f"licences.py: no licence text in {', '.join(lacking)}: list each in scripts/dist/licences.toml")
    print("Licences of the libraries that are part of meshmeter.\n")
    for text, crates in sorted(crates_by_text.items(), key=lambda pair: pair[1]):
        print("=" * 100)
        print("\n".join(crates))
        print("=" * 100)
        print(f"\n{text}\n")


if __name__ == "__main__":
    main()
