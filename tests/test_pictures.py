"""The pictures of the documentation are used, small, and load nothing from the network."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.parsed_sources import ONE_PROCESS
from tests.test_docs import PAGES, ROOT
from tools.pictures import IMAGES, Picture, drawn
from tools.screen_pictures import DRAWN_WITH, report_picture, top_picture

pytestmark = ONE_PROCESS

PICTURES = sorted(IMAGES.iterdir())
BYTES_MAX = 60_000
_NAMESPACE = "http://www.w3.org/2000/svg"


def shown(page: Path) -> list[tuple[str, Path]]:
    """Return the words and the file of each picture on a page."""
    found = re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", page.read_text())
    return [(words, (page.parent / target).resolve()) for words, target in found]


def network_references(svg: str) -> list[str]:
    """Return what a viewer of a picture would load, or follow, to another host."""
    return [url for url in re.findall(r"(?:https?:)?//[^\s\"')<]+", svg) if url != _NAMESPACE]


def test_every_picture_is_on_a_page_and_every_page_has_its_pictures() -> None:
    on_pages = {file for page in PAGES for _, file in shown(page)}
    assert {picture.resolve() for picture in PICTURES} == on_pages
    assert len(PICTURES) >= 7


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_picture_is_described_in_words(page: Path) -> None:
    assert [file.name for words, file in shown(page) if len(words) < 40] == []


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.name)
def test_a_picture_is_a_small_svg_that_loads_nothing(picture: Path) -> None:
    text = picture.read_text()
    assert f"{{{_NAMESPACE}}}svg" == ElementTree.fromstring(text).tag
    assert len(text.encode()) < BYTES_MAX
    assert network_references(text) == []
    assert "@import" not in text
    assert "<script" not in text


def test_what_changes_from_run_to_run_is_not_drawn() -> None:
    picture = Picture("one", "topics describe a")
    first = drawn(picture, "a  id TfmK_Dw8QWCpEYXRYaoiwA  2026-11-28T16:56:39.980Z\n")
    second = drawn(picture, "a  id AAAAAAAAAAAAAAAAAAAAAA  2027-01-01T00:00:00.001Z\n")
    assert first == second
    assert "2026-01-01T00:00:00.000Z" in first


def words(svg: str) -> str:
    """Return what can be read on a picture."""
    return re.sub(r"\s", "", "".join(ElementTree.fromstring(svg).itertext()))


@pytest.mark.parametrize(
    ("name", "draw"), [("top.svg", top_picture), ("report-charts.svg", report_picture)]
)
def test_the_pictures_of_screens_are_what_is_drawn_now(name: str, draw: Callable[[], str]) -> None:
    """If they are not: `make pictures`. Other releases of the libraries may draw them otherwise."""
    drawn_now, picture = draw(), (IMAGES / name).read_text()
    assert words(drawn_now) == words(picture)
    if DRAWN_WITH == {package: version(package) for package in DRAWN_WITH}:
        assert drawn_now == picture


def test_a_font_from_the_network_is_found() -> None:
    loaded = 'src: url("https://fonts.example/a.woff2"); href="//other.example/b"'
    assert network_references(loaded) == ["https://fonts.example/a.woff2", "//other.example/b"]
