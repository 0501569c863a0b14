"""Gathers the pages of the documentation site, which `make docs` builds.

    python -m tools.docs_site FOLDER

README.md becomes the first page and CONTRIBUTING.md a page beside it; docs/ keeps its layout. A
link to a file of the repository that the site does not have becomes its text, as does such a
picture: the site stands alone.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
#: Pages at the root of the repository, by their names on the site.
AT_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
#: A link, or a picture by its mark before the bracket.
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def site_path(repository_path: str) -> str | None:
    """Return where a file of the repository is on the site, None if it is not there."""
    if repository_path in AT_ROOT:
        return AT_ROOT[repository_path]
    inside = repository_path.removeprefix("docs/")
    return inside if inside != repository_path and (ROOT / repository_path).is_file() else None


def page_text(text: str, repository_path: str) -> str:
    """Return a page with its links and pictures as the site has them."""
    own = site_path(repository_path)
    assert own is not None, repository_path

    def link(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match.group()
        path, _, heading = target.partition("#")
        at = posixpath.normpath(posixpath.join(posixpath.dirname(repository_path), path))
        there = site_path(at)
        if there is None:
            return str(words)
        relative = os.path.relpath(there, posixpath.dirname(own) or ".")
        return f"{mark}[{words}]({relative}{'#' + heading if heading else ''})"

    return _LINK.sub(link, text)


def pages() -> dict[str, str]:
    """Return every page by its path on the site."""
    found = {}
    for path in [*map(ROOT.joinpath, AT_ROOT), *DOCS.rglob("*.md")]:
        name = path.relative_to(ROOT).as_posix()
        there = site_path(name)
        assert there is not None, name
        found[there] = page_text(path.read_text(encoding="utf-8"), name)
    return found


def write(folder: Path) -> None:
    """Write the pages, and what docs has besides them, into a folder that begins empty."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Gather the pages."""
    parser = argparse.ArgumentParser(description="Gather the pages of the documentation site.")
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
