"""The documentation is in step with the code."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from engine.config.key import UpdateMode, broker_keys
from kctl.app import NOUNS
from tests.cli.commands import all_leaves
from tests.parsed_sources import ONE_PROCESS, nodes_of, tree_of
from tools.reference import FOLDER, pages

pytestmark = ONE_PROCESS

ROOT = Path(__file__).parent.parent
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
PAGES = [README, CONTRIBUTING, *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages whose prose is wrapped by the rule of CONTRIBUTING.md.
WRAPPED = [README, CONTRIBUTING, *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
PROSE_COLUMNS = 120


#: Made once: the commands are walked whole for it.
REFERENCE = pages()


@pytest.mark.parametrize("name", REFERENCE)
def test_generated_reference_is_current(name: str) -> None:
    assert REFERENCE[name] == (FOLDER / name).read_text(), "run `make reference`"


def test_every_dependency_has_a_sentence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    said = (ROOT / "docs" / "decisions" / "dependencies.md").read_text().lower()
    names = {re.split(r"[\[<>=~!]", text)[0].strip().lower() for text in wanted}
    own = str(project["name"])  # an extra may be made of another
    assert {name for name in names - {own} if f"| {name} |" not in said} == set()


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


INTERNALS = [
    page
    for page in PAGES
    if page.parent.name in ("internals", "decisions")
    or page.name in ("architecture.md", "rules.md", "glossary.md", "CONTRIBUTING.md")
]
#: Words in pages on the inside that look like names of ours, and are Kafka's, Python's, a file's.
FOREIGN_NAMES = frozenset(
    (
        "__cluster_metadata",
        "__consumer_offsets",
        "__remote_log_metadata",
        "__share_group_state",
        "__transaction_state",
        # How both halves of a pair are called.
        "x_fast",
    )
)


@cache
def sources() -> dict[str, ast.Module]:
    """Return every module of ours, parsed, by its path."""
    return {
        str(path.relative_to(ROOT)): tree_of(path)
        for folder in ("engine", "kctl", "tests", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if "tables" not in path.parts
    }


def named_in(tree: ast.AST) -> set[str]:
    """Return classes, functions, methods and names of a module's top, methods by their class."""
    found: set[str] = set()
    for node in getattr(tree, "body", []):
        if isinstance(node, ast.ClassDef):
            found |= {node.name, *(f"{node.name}.{name}" for name in named_in(node))}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """Return the classes of each name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for path in sources():
        for node in nodes_of(ROOT / path):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


@cache
def bases() -> dict[str, set[str]]:
    """Return the classes that each class is made from, by name."""
    return {
        name: {ast.unparse(base).split("[")[0] for node in nodes for base in node.bases}
        for name, nodes in classes().items()
    }


@cache
def all_names() -> frozenset[str]:
    return frozenset(name for tree in sources().values() for name in named_in(tree))


@cache
def attributes(class_name: str) -> frozenset[str]:
    """Return what objects of a class have besides methods: every `self.name` that is set."""
    return frozenset(
        inner.attr
        for node in classes().get(class_name, ())
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute)
        and isinstance(inner.value, ast.Name)
        and inner.value.id == "self"
    )


def is_member(class_name: str, member: str) -> bool:
    """Return whether a class, or one that it is made from, has a member."""
    name = f"{class_name}.{member}"
    if name in all_names() or member in attributes(class_name):
        return True
    return any(is_member(base, member) for base in bases().get(class_name, ()))


def is_in(tree: ast.Module, name: str) -> bool:
    """Return whether a module has a name, perhaps as a member of one of its classes."""
    names = named_in(tree)
    class_name, _, member = name.rpartition(".")
    if class_name:
        return name in names or (class_name in names and is_member(class_name, member))
    return name in names or any(known.endswith(f".{name}") for known in names)


@cache
def words_in_code() -> frozenset[str]:
    words: set[str] = set()
    for path in sources():
        words |= set(re.findall(r"\w+", (ROOT / path).read_text()))
    return frozenset(words)


@pytest.mark.parametrize("page", INTERNALS, ids=lambda p: p.name)
def test_what_pages_name_beside_a_file_is_in_it(page: Path) -> None:
    text = page.read_text()
    pairs = re.findall(r"`([\w./]+\.py)`(?: `| \(`)([A-Za-z_][\w.]*)`", text)
    pairs += [(file, name) for name, file in re.findall(r"`([\w.]+)` in `([\w./]+\.py)`", text)]
    missing = []
    for file, name in pairs:
        if file not in sources():
            missing.append(file)
        elif not is_in(sources()[file], name):
            missing.append(f"{file} {name}")
    assert missing == []


@pytest.mark.parametrize("page", INTERNALS, ids=lambda p: p.name)
def test_members_that_pages_name_exist(page: Path) -> None:
    named = re.findall(r"`([A-Z]\w+)\.(_?[a-z]\w*)(?:\(\))?`", page.read_text())
    missing = [
        f"{class_name}.{member}"
        for class_name, member in named
        if class_name in bases() and not is_member(class_name, member)
    ]
    strangers = [class_name for class_name, _ in named if class_name not in bases()]
    assert (missing, strangers) == ([], [])


@pytest.mark.parametrize("page", INTERNALS, ids=lambda p: p.name)
def test_names_on_pages_are_words_of_the_code(page: Path) -> None:
    """Classes, functions and constants, limits among them: what was renamed is not there."""
    named = re.findall(
        r"`(_*[a-z]+(?:_[a-z0-9]+)+|_?[A-Z]+(?:_[A-Z0-9]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)+)`",
        page.read_text(),
    )
    assert [n for n in named if n not in words_in_code() | FOREIGN_NAMES] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_modules_that_pages_name_exist(page: Path) -> None:
    for name in re.findall(r"`(engine(?:\.[a-z_]\w*)+)(?:\.[A-Z]\w*)?`", page.read_text()):
        path = ROOT.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").exists(), name


def test_the_table_of_rooms_is_the_contract_and_the_folders() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("| row | room |")[2].partition("\n\n")[0]
    rows = [
        set(re.findall(r"`engine/(\w+)(?:\.py)?`", line.split("|")[2]))
        for line in table.splitlines()[2:]
    ]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [set(re.findall(r"\w+", layer)) for layer in contracts["contracts"][0]["layers"]]
    assert layers == rows
    folder = ROOT / "engine"
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    rooms |= {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert rooms == set().union(*rows)


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=lambda p: p.name)
def test_make_targets_that_pages_name_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"\bmake ([a-z][\w-]+)", _code_of(page.read_text())))
    assert page is not README or {"demo", "test"} <= named
    assert page is not CONTRIBUTING or {"quick", "check"} <= named
    assert [t for t in named if not re.search(rf"^[\w ]*\b{t}\b.*:", makefile, re.M)] == []


def _code_of(text: str) -> str:
    """Return the code blocks and the inline code of a page, a line each."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", rest)])


def _calls_of(page: Path) -> Iterator[list[str]]:
    """Yield the words behind `kctl` of each command on a page, those behind pipes too."""
    for line in _code_of(page.read_text()).splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|;&<>")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            # A text in quotes that goes on in the next line.
            words = line.removeprefix("$ ").split()
        call: list[str] | None = None
        for word in [*words, ";"]:
            if set(word) <= set("|;&<>"):
                if call:
                    yield call
                call = None
            elif call is not None:
                call.append(word)
            elif word == "kctl":
                call = []


GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


@pytest.mark.parametrize("page", [README, CONTRIBUTING, *GUIDES], ids=lambda p: p.name)
def test_commands_on_pages_exist_with_their_options(page: Path) -> None:
    leaves = all_leaves()
    wrong = []
    for words in _calls_of(page):
        path = next((p for p in (" ".join(words[:2]), words[0]) if p in leaves), None)
        if path is None:
            is_noun = len(words) == 1 or words[1].startswith(("-", "<"))
            is_known = words[0] in NOUNS and is_noun
            wrong += [] if is_known or words[0].startswith("-") else [words]
            continue
        params = leaves[path].params
        known = {opt for param in params for opt in (*param.opts, *param.secondary_opts)}
        given = [word.partition("=")[0] for word in words if re.match("--[a-z]", word)]
        wrong += [[path, opt] for opt in given if opt not in known | {"--help", "--verbose"}]
    assert wrong == []


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        goal = page.parent / target if target else page
        assert anchor in _anchors(goal), f"{page.name}: {target}#{anchor}"


def _linked(page: Path) -> set[Path]:
    found = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    return {(page.parent / target).resolve() for target in found if target.endswith(".md")}


def test_every_page_is_at_most_two_links_from_the_readme() -> None:
    first = _linked(README)
    reached = {README, *first, *(page for one in first if one.exists() for page in _linked(one))}
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = folder / "README.md"
    assert _linked(index) >= {page for page in folder.glob("*.md") if page != index}
    named = set(re.findall(r"\bD\d+\b", index.read_text()))
    assert named == {f"D{number}" for number in range(1, 31)}


@pytest.mark.parametrize("page", WRAPPED, ids=lambda p: p.name)
def test_prose_is_wrapped(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    long = [line for line in prose.splitlines() if len(line) > PROSE_COLUMNS and line[0] != "|"]
    assert long == []


def test_a_term_of_the_glossary_has_one_row_and_its_code() -> None:
    """Source: D29."""
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.M)
    terms = [term for term, _, _ in rows if term not in ("term", "---")]
    assert [term for term in terms if terms.count(term) > 1] == []
    assert len(terms) > 30
    assert [term for term, _, code in rows if term in terms and not re.search("[`(]", code)] == []


def test_the_settings_that_need_no_restart_are_those_of_the_tables() -> None:
    text = (ROOT / "docs" / "internals" / "settings.md").read_text()
    section = text.partition("## What needs a restart\n")[2].partition("\n## ")[0]
    lists = [
        set(re.findall(r"[^\s,]+", block)) for block in re.findall(r"```\n(.*?)```", section, re.S)
    ]
    modes = (UpdateMode.CLUSTER_WIDE, UpdateMode.PER_BROKER, UpdateMode.DYNAMIC_ONLY)
    by_mode = {
        mode: {key.name for key in broker_keys().values() if key.update_mode is mode}
        for mode in UpdateMode
    }
    assert lists == [by_mode[mode] for mode in modes]
    read_only = by_mode[UpdateMode.READ_ONLY]
    requested = section.partition("So these need one")[2].partition("In an embedded cluster")[0]
    assert set(re.findall(r"`([a-z.]+)`", requested)) <= read_only
    numbers = f"{len(broker_keys())} keys of 3.9.1,\n{len(read_only)} do"
    assert numbers in section
