"""The documentation is in step with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from kctl.app import NOUNS
from tools.reference import FOLDER, pages

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("name", pages())
def test_generated_reference_is_current(name: str) -> None:
    assert pages()[name] == (FOLDER / name).read_text(), "run `make reference`"


def test_every_dependency_has_a_sentence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    said = (ROOT / "docs" / "decisions" / "dependencies.md").read_text().lower()
    names = {re.split(r"[\[<>=~!]", text)[0].strip().lower() for text in wanted}
    assert {name for name in names if f"| {name} |" not in said} == set()


def test_the_readme_shows_every_noun() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in NOUNS if f"kctl {name}" not in readme] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_pages_name_exist(page: Path) -> None:
    named = re.findall(r"`((?:engine|kctl|tests|tools|docs)/[\w./-]+\.\w+)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_readmes_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= named
    assert [t for t in named if not re.search(rf"^[\w ]*\b{t}\b.*:", makefile, re.M)] == []
