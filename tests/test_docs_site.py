"""The documentation site and the manual pages hold what docs and the commands have."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import pytest
import yaml

from tests.cli.commands import all_leaves
from tests.parsed_sources import ONE_PROCESS
from tools import man_pages
from tools.docs_site import ROOT, page_text, pages

pytestmark = ONE_PROCESS

SITE = pages()
MANUAL = man_pages.pages()


def navigation(entries: list[Any]) -> list[str]:
    """Return the pages of the site's navigation in their order."""
    found = []
    for entry in entries:
        for page in [entry] if isinstance(entry, str) else entry.values():
            found += navigation(page) if isinstance(page, list) else [page]
    return found


def test_the_navigation_has_every_page_once() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = navigation(config["nav"])
    assert sorted(SITE) == sorted(listed)


@pytest.mark.parametrize("name", SITE)
def test_links_of_the_site_stay_within_it(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", SITE[name]):
        path = target.partition("#")[0]
        if "://" in target or not path:
            continue
        there = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        assert there in SITE or (ROOT / "docs" / there).is_file(), target


def test_a_link_out_of_the_documentation_becomes_its_words() -> None:
    text = (
        "see [the cases](../tests/compat/wire), [the rules](reference/rules.md#wire) and [it](#a)"
    )
    assert page_text(text, "docs/compatibility.md") == (
        "see the cases, [the rules](reference/rules.md#wire) and [it](#a)"
    )


def test_the_readme_links_to_pages_beside_it() -> None:
    assert page_text("[a](docs/tour.md) [b](CONTRIBUTING.md)", "README.md") == (
        "[a](tour.md) [b](contributing.md)"
    )
    assert page_text("[r](../../README.md)", "docs/guides/watching.md") == "[r](../index.md)"


def test_pictures_are_those_of_the_site() -> None:
    picture = "![a topic](docs/images/topics-describe.svg)"
    assert page_text(picture, "README.md") == "![a topic](images/topics-describe.svg)"
    beside = "![a topic](../images/topics-describe.svg)"
    assert page_text(beside, "docs/guides/watching.md") == beside


def test_every_command_has_a_manual_page() -> None:
    wanted = {f"kctl-{words.replace(' ', '-')}.1" for words in all_leaves()}
    assert set() == wanted - set(MANUAL)


@pytest.mark.parametrize("name", MANUAL)
def test_a_manual_page_is_roff_of_ascii_with_a_name(name: str) -> None:
    lines = MANUAL[name].splitlines()
    assert MANUAL[name].isascii()
    assert [".TH", ".SH"] == [lines[0][:3], lines[1][:3]]
    assert lines[2].startswith(name.removesuffix(".1").replace("-", "\\-") + " \\- ")
    requests = {line.split()[0] for line in lines if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".PP", ".TP", ".B", ".BR", ".RS", ".RE"}


def test_what_roff_would_read_as_its_own_is_escaped() -> None:
    assert "\\&.x \\-a \\e \\[u2192]\n\\&'b" == man_pages.escaped(".x -a \\ →\n'b")
