"""No port of the engine is silent by default: what nobody is told of would vanish."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.parsed_sources import ONE_PROCESS, nodes_of

pytestmark = ONE_PROCESS

ROOT = Path(__file__).parent.parent


def _defaults(path: Path) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the fields of classes and the parameters of functions, with their defaults."""
    for node in nodes_of(path):
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield f"{node.name}.{field.target.id}", field.value
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            named = arguments.posonlyargs + arguments.args
            for argument, default in zip(
                reversed(named), reversed(arguments.defaults), strict=False
            ):
                yield f"{node.name}({argument.arg})", default
            for argument, keyword in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
                yield f"{node.name}({argument.arg})", keyword


def _silent(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {name}"
        for name, default in _defaults(path)
        if isinstance(default, ast.Lambda) and isinstance(default.body, ast.Constant)
    ]


def test_no_port_has_a_default_that_does_nothing() -> None:
    paths = sorted((ROOT / "engine").rglob("*.py"))
    assert [] == [name for path in paths for name in _silent(path)]
