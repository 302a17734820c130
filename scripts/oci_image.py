#!/usr/bin/env python3
"""Writes an OCI image as a tar archive (image layout), without a container engine.

    scripts/oci_image.py --output FILE --name NAME:TAG [--entrypoint ARGUMENT]... [OPTION]...

The archive depends on the arguments and the files' contents alone: same input, same digest. Layers are not compressed, since
compressors differ between machines. The archive holds one layer, or one per --next-layer.

`--program` adds a program with the shared libraries that it needs on this machine, found by the dynamic loader itself. Several
architectures: write one archive each, then `--index FILE FILE` joins them.
"""

import argparse
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
# Where containerd and `podman load` look for an image's name.
CONTAINERD_NAME = "io.containerd.image.name"
REFERENCE_NAME = "org.opencontainers.image.ref.name"


class Layer:
    """Files by path; parents are added as directories."""

    def __init__(self):
        self.entries = {}

    def directory(self, path, mode=0o755):
        self._add(path, tarfile.DIRTYPE, mode)

    def file(self, path, data, mode=0o644):
        self._add(path, tarfile.REGTYPE, mode, data=data)

    def link(self, path, target):
        self._add(path, tarfile.SYMTYPE, 0o777, target=target)

    def _add(self, path, kind, mode, data=b"", target=""):
        path = os.path.normpath(path).strip("/")
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self.directory(parent)
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), target
        self.entries[path] = (entry, data)

    def to_bytes(self):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for _, (entry, data) in sorted(self.entries.items()):
                archive.addfile(entry, io.BytesIO(data))
        return buffer.getvalue()


class Archive:
    """An image layout in one tar file."""

    def __init__(self):
        self.blobs = {}

    def blob(self, data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def json_blob(self, value, media_type):
        return self.blob(to_json(value), media_type)

    def write(self, path, descriptors):
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors}
        layout = Layer()
        layout.file("oci-layout", to_json({"imageLayoutVersion": "1.0.0"}))
        layout.file("index.json", to_json(index))
        for digest, data in self.blobs.items():
            layout.file(f"blobs/sha256/{digest}", data)
        # Named only once it is whole.
        unfinished = f"{path}.{os.getpid()}"
        with open(unfinished, "wb") as file:
            file.write(layout.to_bytes())
        os.replace(unfinished, path)


def to_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        sys.exit(f"oci_image: read {path}: {error.strerror}")


def libraries(program):
    """Paths of the shared libraries and the loader that a program needs; none for a static program."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        if "not a dynamic executable" in listed.stderr + listed.stdout:
            return []
        sys.exit(f"oci_image: ldd {program}: {listed.stderr.strip()}")
    if "not found" in listed.stdout:
        sys.exit(f"oci_image: {program} lacks libraries here:\n{listed.stdout}")
    return re.findall(r"(/\S+) \(0x", listed.stdout)


def write_image(options):
    archive = Archive()
    layers = [archive.blob(layer.to_bytes(), LAYER) for layer in options.layers if layer.entries]
    process = {"Entrypoint": options.entrypoint, "User": options.user, "Env": options.env or []}
    config = {
        "architecture": options.architecture,
        "os": "linux",
        "config": {**process, "WorkingDir": "/", "Labels": dict(options.label or [])},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
    }
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": archive.json_blob(config, CONFIG), "layers": layers}
    descriptor = archive.json_blob(manifest, MANIFEST)
    descriptor["platform"] = {"architecture": options.architecture, "os": "linux"}
    archive.write(options.output, [named(descriptor, options.name)])
    return descriptor["digest"]


def write_index(options):
    archive, descriptors = Archive(), []
    for path in options.index:
        with tarfile.open(path) as image:
            for member in image.getmembers():
                if member.name.startswith("blobs/sha256/") and member.isfile():
                    archive.blobs[os.path.basename(member.name)] = image.extractfile(member).read()
            for descriptor in json.load(image.extractfile("index.json"))["manifests"]:
                descriptor.pop("annotations", None)
                descriptors.append(descriptor)
    index = archive.json_blob({"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors}, INDEX)
    archive.write(options.output, [named(index, options.name)])
    return index["digest"]


def named(descriptor, name):
    return {**descriptor, "annotations": {CONTAINERD_NAME: name, REFERENCE_NAME: name.rpartition(":")[2]}}


def pair(text):
    key, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form A=B")
    return key, value


class IntoLayer(argparse.Action):
    """Options that add to the last layer, in the order of the command line."""

    def __call__(self, parser, options, value, option=None):
        layers = options.layers
        if option == "--next-layer":
            layers.append(Layer())
        elif option == "--file":
            path, source = value
            layers[-1].file(path, read(source), 0o755 if os.access(source, os.X_OK) else 0o644)
        elif option == "--text":
            path, text = value
            layers[-1].file(path, text.encode())
        elif option == "--program":
            path, source = value
            layers[-1].file(path, read(source), 0o755)
            for library in libraries(source):
                layers[-1].file(library, read(library), 0o755)
        elif option == "--tree":
            path, source = value
            for name in os.listdir(source):
                layers[-1].file(f"{path}/{name}", read(os.path.join(source, name)), 0o755)
        elif option == "--link":
            layers[-1].link(*value)
        elif option == "--temporary":
            layers[-1].directory(value, 0o1777)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(layers=[Layer()])
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--name", required=True, help="such as registry.example/meshmeter:1.0")
    parser.add_argument("--index", nargs="+", metavar="FILE", help="join the images of several architectures")
    parser.add_argument("--architecture", default="amd64")
    parser.add_argument("--entrypoint", action="append", metavar="ARGUMENT")
    parser.add_argument("--user", default="0:0", metavar="UID:GID")
    parser.add_argument("--env", action="append", metavar="NAME=VALUE")
    parser.add_argument("--label", action="append", type=pair, metavar="NAME=VALUE")
    parser.add_argument("--next-layer", action=IntoLayer, nargs=0)
    parser.add_argument("--file", action=IntoLayer, type=pair, metavar="PATH=SOURCE")
    parser.add_argument("--text", action=IntoLayer, type=pair, metavar="PATH=TEXT")
    parser.add_argument("--program", action=IntoLayer, type=pair, metavar="PATH=SOURCE")
    parser.add_argument("--tree", action=IntoLayer, type=pair, metavar="PATH=FOLDER", help="the files of a folder")
    parser.add_argument("--link", action=IntoLayer, type=pair, metavar="PATH=TARGET")
    parser.add_argument("--temporary", action=IntoLayer, metavar="PATH")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()
    print(write_index(OPTIONS) if OPTIONS.index else write_image(OPTIONS))
