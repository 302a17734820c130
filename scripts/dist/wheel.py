#!/usr/bin/env python3
"""Packs the static program into a Python wheel: `pip install` puts it beside python, with its manual pages.

    scripts/dist/wheel.py --program FILE --architecture amd64|arm64 --version V --man FOLDER --output FOLDER

A wheel is a zip archive with three files about it. This writes them instead of maturin, which would compile the program once
more, with its own options: this way every package holds the same bytes (docs/packages.md). Same input, same digest.
"""

import argparse
import base64
import hashlib
import os
import time
import zipfile

# A static program runs with any C library: pip takes the wheel on systems of glibc and of musl alike.
PLATFORMS = {
    "amd64": ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"],
    "arm64": ["manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"],
}

METADATA = """\
Metadata-Version: 2.1
Name: meshmeter
Version: {version}
Summary: Measures what a service mesh costs: latency, throughput, CPU and memory of each data plane mode
License: Apache-2.0
Requires-Python: >=3.8
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Rust
Description-Content-Type: text/markdown

# Meshmeter

Measures what a service mesh costs, with real proxies on one Linux machine or on a cluster:

    meshmeter lab install envoy
    meshmeter run sidecar-cost

`meshmeter --help` lists the commands, `meshmeter doctor` checks what works on this machine.
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: meshmeter
Root-Is-Purelib: false
"""


class Wheel:
    def __init__(self, path, modified):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.modified = modified
        self.record = []

    def add(self, name, data, mode=0o644):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")
        self._write(name, data, mode)

    def finish(self, name):
        self._write(name, ("\n".join([*self.record, f"{name},,"]) + "\n").encode(), 0o644)
        self.archive.close()

    def _write(self, name, data, mode):
        entry = zipfile.ZipInfo(name, self.modified)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3  # Unix, so that the mode counts
        entry.external_attr = (0o100000 | mode) << 16
        self.archive.writestr(entry, data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser()
    for option in ["--program", "--version", "--man", "--licences", "--output"]:
        parser.add_argument(option, required=True)
    parser.add_argument("--architecture", required=True, choices=sorted(PLATFORMS))
    options = parser.parse_args()

    platforms = PLATFORMS[options.architecture]
    name = f"meshmeter-{options.version}-py3-none-{'.'.join(platforms)}.whl"
    data, info = f"meshmeter-{options.version}.data", f"meshmeter-{options.version}.dist-info"
    modified = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    wheel = Wheel(os.path.join(options.output, name), modified)
    wheel.add(f"{data}/scripts/meshmeter", read(options.program), 0o755)
    for page in sorted(os.listdir(options.man)):
        wheel.add(f"{data}/data/share/man/man1/{page}", read(os.path.join(options.man, page)))
    wheel.add(f"{info}/METADATA", METADATA.format(version=options.version).encode())
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    wheel.add(f"{info}/WHEEL", (WHEEL + tags).encode())
    wheel.add(f"{info}/licenses/LICENSE", read("LICENSE"))
    wheel.add(f"{info}/licenses/THIRD-PARTY-LICENCES", read(options.licences))
    wheel.finish(f"{info}/RECORD")
    print(name)


if __name__ == "__main__":
    main()
