"""The book's sources, and a check of its pages.

    scripts/book.py stage FOLDER   copies the documents, and the files that they link to, into FOLDER/source, for mdBook
    scripts/book.py check FOLDER   checks that each link within the pages leads to a page and an anchor, and that no page
                                   loads anything from the network

The documents lie in several folders, and mdBook takes one. The copy has the repository's layout, so that the links between
documents, and to source files, are the same in the repository and in the book.
"""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)")


def stage(folder):
    source = folder / "source"
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    chapters = [(ROOT / "docs" / link).resolve() for link in LINK.findall(summary)]
    linked = {
        (chapter.parent / link).resolve()
        for chapter in chapters
        for link in LINK.findall(chapter.read_text())
        if "://" not in link
    }
    for path in linked.difference(chapters):
        if path.is_file():
            shutil.copy(path, made(source / path.relative_to(ROOT)))
    for path in chapters:
        made(source / as_page(str(path.relative_to(ROOT)))).write_text(as_page(path.read_text()))
    # Paths in SUMMARY.md are relative to its own folder; mdBook's are relative to the source.
    in_source = lambda link: (ROOT / "docs" / link[1]).resolve().relative_to(ROOT)
    (source / "SUMMARY.md").write_text(as_page(LINK.sub(lambda link: f"]({in_source(link)}", summary)))
    shutil.copy(ROOT / "docs/book.toml", folder / "book.toml")


def made(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def as_page(text):
    """A folder's README.md is its index.html. mdBook renames the page, and does not change links to it."""
    return re.sub(r"(^|[(/])README\.md", r"\1index.md", text)


class Page(HTMLParser):
    """Anchors and links of a page, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag in ("script", "img", "link", "iframe"):
            self.loaded.extend(attributes[key] for key in ("src", "href") if attributes.get(key))


def problems(pages):
    for path, page in pages.items():
        for link in page.links + page.loaded:
            if "://" in link or link.startswith(("//", "mailto:")):
                if link in page.loaded:
                    yield f"{path}: loads {link} from the network"
                continue
            file, _, anchor = unquote(link).partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.is_file():
                yield f"{path}: no page {link}"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{path}: no anchor {link}"


def check(folder):
    # mdBook's page for servers refers to the root of a site, and its list of chapters is shown within other pages.
    ignored = {"404.html", "toc.html"}
    paths = [path.resolve() for path in folder.rglob("*.html") if path.name not in ignored]
    pages = {path: Page(path) for path in paths}
    links = sum(len(page.links) for page in pages.values())
    found = list(problems(pages))
    sys.stderr.writelines(f"{problem}\n" for problem in found)
    if found or not links:
        sys.exit(f"book.py: {len(found)} of {links} links are wrong")


if __name__ == "__main__":
    {"stage": stage, "check": check}[sys.argv[1]](Path(sys.argv[2]))
