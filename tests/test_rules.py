"""The page of rules: every rule that is cited stands there once, and every rule done has a place.

Source: D26.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.parsed_sources import ONE_PROCESS, nodes_of, tree_of

pytestmark = ONE_PROCESS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "rules.md"
NOT_YET = "not yet"
#: Words that look like rules and are none.
FOREIGN = frozenset(("BSD", "CRC", "GPL", "KAFKA", "KIP", "LGPL", "MPL", "SHA", "SSH", "UTF"))
_ROW = re.compile(r"^\| ([A-Z]+[-:]?[\w-]+) \| (.*) \| ([^|]*) \|$", re.MULTILINE)
_WORD = re.compile(r"(?<![\w-])(?:ZN:[a-z-]+|[A-Z]{2,5}-(?:\d+|\*)|[A-Z]\d{1,2})(?![\w*])")
_RANGE = re.compile(r"([A-Z]+-?)(\d+)\s*(?:…|\.\.\.|–)\s*\1(\d+)")
_PLACE = re.compile(r"`([\w./]+\.(?:py|txt))`(?: `([\w.]+)`)?")


class RuleRow(NamedTuple):
    """One row of the page."""

    id: str
    text: str
    place: str


def rows_of(text: str) -> list[RuleRow]:
    return [RuleRow(*match) for match in _ROW.findall(text) if match[0] != "Rule"]


@cache
def rules() -> dict[str, RuleRow]:
    return {row.id: row for row in rows_of(PAGE.read_text())}


def family_of(rule_id: str) -> str:
    return re.split(r"[-:\d]", rule_id, maxsplit=1)[0]


def families() -> frozenset[str]:
    return frozenset(map(family_of, rules()))


def ids_in(text: str) -> set[str]:
    """Return the rules that a text names, also those between the ends of a range."""
    found = {word for word in _WORD.findall(text) if family_of(word) not in FOREIGN}
    for prefix, first, last in _RANGE.findall(text):
        found |= {f"{prefix}{number}" for number in range(int(first), int(last) + 1)}
    for word in [word for word in found if word.endswith("*")]:
        found.remove(word)
        found |= {rule_id for rule_id in rules() if family_of(rule_id) == word[:-2]}
    return found


@cache
def words_of(path: Path) -> tuple[tuple[int, str], ...]:
    """Return the comments and docstrings of a file of Python, each with its line."""
    source = path.read_text()
    if not _WORD.search(source):
        return ()
    said = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    for node in nodes_of(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                said.append((node.body[0].lineno, text))
    return tuple(said)


@cache
def spans_of(path: Path) -> dict[str, tuple[int, int]]:
    """Return the lines of all classes and functions of a file, by qualified name."""
    spans: dict[str, tuple[int, int]] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{prefix}{child.name}"
                assert child.end_lineno is not None
                spans[name] = (child.lineno, child.end_lineno)
                walk(child, f"{name}.")

    walk(tree_of(path), "")
    return spans


def cited_at(path: Path, name: str) -> set[str]:
    """Return the rules that a class or function names, or a whole file."""
    if path.suffix != ".py":
        return ids_in(path.read_text())
    said = words_of(path)
    if name:
        first, last = spans_of(path)[name]
        said = tuple((line, text) for line, text in said if first <= line <= last)
    return ids_in("\n".join(text for _, text in said))


def files() -> Iterator[Path]:
    for folder in ("engine", "kctl", "tests", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "tables" not in path.parts and path != Path(__file__):
                yield path
    yield from sorted((ROOT / "tests" / "scripts").glob("*.txt"))
    yield from (path for path in sorted((ROOT / "docs").rglob("*.md")) if path != PAGE)


def test_every_rule_that_is_cited_is_defined() -> None:
    letters = {family for family in families() if len(family) == 1}
    undefined: dict[str, set[str]] = {}
    for path in files():
        for rule_id in cited_at(path, "") - set(rules()):
            if len(family_of(rule_id)) > 1 or family_of(rule_id) in letters:
                undefined.setdefault(str(path.relative_to(ROOT)), set()).add(rule_id)
    assert undefined == {}


def test_every_rule_is_defined_once() -> None:
    ids = [row.id for row in rows_of(PAGE.read_text())]
    assert [rule_id for rule_id in ids if ids.count(rule_id) > 1] == []


def test_every_rule_is_reported() -> None:
    for row in rules().values():
        assert re.fullmatch(r"\S.{20,}[.]", row.text), row.id


def test_rules_are_in_order() -> None:
    sections = PAGE.read_text().split("\n## ")[1:]
    told = []
    for section in sections:
        ids = [row.id for row in rows_of(section)]
        assert len(set(map(family_of, ids))) == 1, section.splitlines()[0]
        told.append(family_of(ids[0]))
        if ":" not in ids[0]:
            numbers = [int(re.sub(r"\D", "", rule_id)) for rule_id in ids]
            assert numbers == list(range(1, len(ids) + 1)), told[-1]
    assert len(set(told)) == len(told)


def placed() -> list[tuple[str, str, str]]:
    """Return (rule, file, name) of each place."""
    return [
        (row.id, file, name) for row in rules().values() for file, name in _PLACE.findall(row.place)
    ]


def test_every_rule_has_places_or_is_not_there_yet() -> None:
    for row in rules().values():
        rest = _PLACE.sub("", row.place)
        assert rest.replace(",", "").strip() == (NOT_YET if row.place == NOT_YET else ""), row.id


def test_a_rule_that_is_done_is_cited_at_its_place() -> None:
    silent = []
    for rule_id, file, name in placed():
        path = ROOT / file
        assert path.exists(), f"{rule_id}: {file}"
        assert not name or name in spans_of(path), f"{rule_id}: {file} {name}"
        if rule_id not in cited_at(path, name):
            silent.append(f"{rule_id}: {file} {name}")
    assert silent == []


def test_what_is_cited_is_read_from_words_alone() -> None:
    text = "HW-1 … HW-3, L1–L2; KIP-101, SHA-256; ZN:fence, x-R1, `R5`"
    assert {"HW-1", "HW-2", "HW-3", "L1", "L2", "ZN:fence", "R5"} == ids_in(text)
