"""What the linters cannot say about this tree: lengths, banned calls, reasons, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parsed_sources import ONE_PROCESS, nodes_of, tree_of

pytestmark = ONE_PROCESS

ROOT = Path(__file__).parent.parent
# Tables of message fields are data, with any suffix.
SOURCES = sorted(
    p for top in ("engine", "kctl") for p in (ROOT / top).rglob("*.py") if p.parent.name != "tables"
)
LIMITS = ROOT / "engine" / "limits.py"
#: The wall; from 500 lines on a file is looked at, and is split by its ideas alone.
FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70

#: Names that hold named tuples wherever they stand, also where their type is not in sight.
NAMED_TUPLE_NAMES = frozenset(("info", "exchange"))

#: Calls that reach outside the process, allowed in engine/host alone.
BANNED = {
    "open": "Files.open",
    "time.time": "Clock.wall_ms",
    "time.monotonic": "Clock.monotonic_ms",
    "time.sleep": "waiting for a condition",
    "os.open": "Files.open",
    "os.write": "File.append",
    "os.pwrite": "File.append",
    "os.pread": "File.read_at",
    "os.fsync": "File.sync",
    "os.rename": "Files.rename",
    "os.replace": "Files.rename",
    "os.remove": "Files.remove",
    "os.unlink": "Files.remove",
    "os.urandom": "Entropy.random_bytes",
    "random.random": "Entropy",
    "uuid.uuid4": "Entropy",
    "socket.socket": "Network",
    "datetime.now": "Clock.wall_ms",
}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:] or body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_every_file_is_one_room() -> None:
    long = {_name(p): n for p in SOURCES if (n := len(p.read_text().splitlines())) > FILE_LINES_MAX}
    assert {} == long


def test_functions_are_short() -> None:
    long = {
        f"{_name(path)}:{node.name}": lines
        for path in SOURCES
        for node in _functions(path)
        if (lines := _body_lines(node)) > FUNCTION_LINES_MAX
    }
    assert {} == long


def test_most_functions_fit_on_a_screen() -> None:
    lengths = sorted(_body_lines(node) for path in SOURCES for node in _functions(path))
    assert lengths[len(lengths) // 2] <= 8
    assert lengths[len(lengths) * 9 // 10] <= 30


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if p.parts[-2] != "host" and p.relative_to(ROOT).parts[0] != "kctl"],
    ids=_name,
)
def test_only_the_host_reaches_outside(path: Path) -> None:
    found = {
        f"{ast.unparse(node.func)} at line {node.lineno}: use {BANNED[ast.unparse(node.func)]}"
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in BANNED
    }
    assert set() == found


def test_every_limit_has_a_reason() -> None:
    lines = LIMITS.read_text().splitlines()
    bare = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if re.match(r"[A-Z][A-Z0-9_]* *[:=]", line) and not before.startswith("#")
    ]
    assert [] == bare


def test_every_limit_stands_in_the_section_of_a_room_that_uses_it() -> None:
    sections: dict[str, str] = {}
    room = ""
    for line in LIMITS.read_text().splitlines():
        if head := re.match(r"# -- (\w+) -+$", line):
            room = head[1]
        elif limit := re.match(r"([A-Z][A-Z0-9_]*) *[:=]", line):
            sections[limit[1]] = room
    users: dict[str, set[str]] = {name: set() for name in sections}
    for path in SOURCES:
        parts = path.relative_to(ROOT).parts
        words = set(re.findall(r"[A-Z][A-Z0-9_]+", path.read_text()))
        for name in words & set(users) if path.name != "limits.py" else ():
            users[name].add(parts[1].removesuffix(".py") if parts[0] == "engine" else "kctl")
    # What other limits are made of belongs to them.
    parts_of_others = set(re.findall(r"\* ([A-Z][A-Z0-9_]*)$", LIMITS.read_text(), re.M))
    assert {} == {
        name: room
        for name, room in sections.items()
        if room not in users[name] and name not in parts_of_others
    }


def test_every_module_says_what_it_is() -> None:
    assert [] == [_name(p) for p in SOURCES if not ast.get_docstring(tree_of(p))]


def test_public_names_have_docstrings() -> None:
    bare = []
    for path in SOURCES:
        for node in _public(tree_of(path)):
            if not ast.get_docstring(node):
                bare.append(f"{_name(path)}:{node.name}")
    assert [] == bare


def _public(
    parent: ast.Module | ast.ClassDef,
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in parent.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _public(node)


def test_private_names_stay_in_their_module() -> None:
    crossing = [
        f"{_name(path)}: {alias.name}"
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("engine", "kctl"))
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert [] == crossing


def test_no_module_is_left_unused() -> None:
    used = set[str]()
    for path in [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]:
        text = path.read_text()
        # Of `from a.b import c as d` and `import a.b` the words a, b and c; texts of one word.
        for words, first in re.findall(r"(?:from|import) ([\w.]+)(?: import (\w+))?", text):
            used.update((*words.split("."), first))
        used.update(re.findall(r"\"(\w+)\"", text))
    dead = [
        _name(path)
        for path in SOURCES
        if path.stem not in ("__init__", "__main__") and path.stem not in used
    ]
    assert [] == dead


def test_a_class_name_has_one_owner() -> None:
    owners: dict[str, list[str]] = {}
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] != "engine":
            continue
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(_name(path))
    assert {} == {name: places for name, places in owners.items() if len(places) > 1}


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imports(body: list[ast.stmt], modules: set[str]) -> Iterator[str]:
    """Yield the modules of the project that statements import, at any depth."""
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_file_imports_one_that_imports_it() -> None:
    """Neither at the top, nor for types alone, nor within a function."""
    paths = {_module_name(path): path for path in SOURCES}
    left = {
        name: {it for it in _imports(tree_of(path).body, set(paths)) if it in paths and it != name}
        for name, path in paths.items()
        # These pick what to import by a name they are given.
        if name not in ("kctl.__main__", "kctl.app")
    }
    while True:
        leaves = {name for name, wanted in left.items() if not wanted & set(left)}
        if not leaves:
            break
        left = {name: wanted for name, wanted in left.items() if name not in leaves}
    assert {} == left


def test_named_tuples_are_made_past_their_constructor_in_one_way() -> None:
    model = ROOT / "engine" / "model.py"
    assert [model] == [p for p in SOURCES if "tuple.__new__" in p.read_text()]


def _named_tuples() -> frozenset[str]:
    return frozenset(
        node.name
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)
    )


def _class_names(annotation: ast.expr | None) -> frozenset[str]:
    """Return the classes of an annotation: `X`, `X | None`."""
    if isinstance(annotation, ast.Name):
        return frozenset((annotation.id,))
    if isinstance(annotation, ast.BinOp):
        return _class_names(annotation.left) | _class_names(annotation.right)
    return frozenset()


def _made_class(value: ast.expr | None) -> str | None:
    """Return the class whose instance `X(…)` or `new_tuple(X, …)` makes."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return None
    if value.func.id == "new_tuple" and isinstance(value.args[0], ast.Name):
        return value.args[0].id
    return value.func.id


def _names_of(function: ast.AST, classes: frozenset[str]) -> frozenset[str]:
    """Return the names in a function that hold named tuples, as far as its own text says."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and _class_names(node.annotation) & classes:
            names.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if _class_names(node.annotation) & classes:
                names.add(node.target.id)
        elif isinstance(node, ast.Assign) and _made_class(node.value) in classes:
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)


def _is_position(index: ast.expr) -> bool:
    if isinstance(index, ast.Slice):
        return True
    value = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def test_fields_of_named_tuples_are_named() -> None:
    classes = _named_tuples()
    numbered = [
        f"{_name(path)}:{node.lineno} {ast.unparse(node)}"
        for path in SOURCES
        for function in _functions(path)
        if (names := _names_of(function, classes) | NAMED_TUPLE_NAMES)
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
        and _is_position(node.slice)
    ]
    assert [] == sorted(set(numbered))


def test_pages_have_one_title() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    fenced = re.compile(r"^```.*?^```", re.M | re.S)
    wrong = [
        _name(p) for p in pages if len(re.findall(r"^# ", fenced.sub("", p.read_text()), re.M)) != 1
    ]
    assert [] == wrong
