#!/usr/bin/env python3
"""Counts the project's Rust code, without tests, comments and blank lines.

  scripts/count.py               lines by crate, the longest files and functions
  scripts/count.py --limits      exit status 1 if a file or function is longer than the project allows

Tests are what is compiled for tests alone: items marked `#[cfg(test)]`, files of modules marked so, and the folders tests, benches
and examples. A line counts if something but a comment stands on it.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Crates that only tests and benchmarks use.
FOR_TESTS = ("fleet-stub", "test-support")
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 90
LONGEST = 5

# What may hold braces, slashes and quotes that are none of the code's.
LITERAL = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r'''|(?P<raw>\bb?r(?P<hashes>\#*)".*?"(?P=hashes))'''
    r'''|(?P<string>b?"(?:\\.|[^"\\])*")'''
    r"""|(?P<letter>b?'(?:\\[^\n]+?|[^\\'\n])')""",
    re.DOTALL,
)
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")
TEST_MODULE = re.compile(r'#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[path = "(?P<path>[^"]+)"\]\s*)?(?:pub(?:\([^)]*\))? )?mod (?P<name>\w+);')
FUNCTION = re.compile(r"\bfn (\w+)")


def bare(text):
    """The code with the same lines, without comments, and with nothing in its literals."""

    def emptied(literal):
        filler = "" if literal["comment"] else "_"
        return filler + "\n".join(filler for _ in literal[0].split("\n"))

    return LITERAL.sub(emptied, text)


def end_of_item(code, start):
    """Where an item ends that begins at a place: behind its braces, or at its semicolon."""
    depth = 0
    for place in range(start, len(code)):
        if code[place] in "{([":
            depth += 1
        elif code[place] in "})]":
            depth -= 1
            if depth == 0 and code[place] == "}":
                return place + 1
        elif code[place] in ";," and depth == 0:
            return place + 1
    return len(code)


def without_tests(code):
    while found := TEST_ITEM.search(code):
        code = code[: found.start()] + code[end_of_item(code, found.end()) :]
    return code


def lines(code):
    return sum(1 for line in code.split("\n") if line.strip())


def test_files(path, text):
    """Files and folders of a file's modules that are compiled for tests alone."""
    folder = path.parent if path.name in ("lib.rs", "main.rs", "mod.rs") else path.with_suffix("")
    for module in TEST_MODULE.finditer(text):
        if module["path"]:
            yield path.parent / module["path"]
        else:
            yield folder / f"{module['name']}.rs"
            yield folder / module["name"]


def sources(crate):
    """The files of a crate that are not tests, each with its text."""
    texts = {path: path.read_text() for path in sorted((crate / "src").rglob("*.rs"))}
    tests = {test for path, text in texts.items() for test in test_files(path, text)}
    return {path: text for path, text in texts.items() if tests.isdisjoint({path, *path.parents})}


def functions(code):
    """Name and lines of each function that has a body, with what it contains."""
    for function in FUNCTION.finditer(code):
        end = end_of_item(code, function.start())
        yield function[1], lines(code[function.start() : end])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", action="store_true")
    options = parser.parse_args()
    by_crate, files, all_functions = {}, [], []
    for crate in sorted((ROOT / "crates").iterdir()):
        for path, text in sources(crate).items():
            code = without_tests(bare(text))
            name = path.relative_to(ROOT)
            files.append((lines(code), str(name)))
            all_functions += [(count, f"{name} {function}") for function, count in functions(code)]
            by_crate[crate.name] = by_crate.get(crate.name, 0) + lines(code)
    if options.limits:
        long = [row for row in files if row[0] > MAX_FILE_LINES] + [row for row in all_functions if row[0] > MAX_FUNCTION_LINES]
        for count, name in long:
            print(f"{count} lines: {name}")
        return 1 if long else 0
    for crate, count in sorted(by_crate.items(), key=lambda row: -row[1]):
        print(f"{count:7} {crate}")
    print(f"{sum(by_crate.values()):7} in all, {sum(c for n, c in by_crate.items() if n not in FOR_TESTS)} without {' and '.join(FOR_TESTS)}")
    for what, rows in (("files", files), ("functions", all_functions)):
        print(f"longest {what}:")
        for count, name in sorted(rows, reverse=True)[:LONGEST]:
            print(f"{count:7} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
