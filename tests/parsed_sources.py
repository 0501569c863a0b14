"""Modules of the project as syntax trees, parsed once for all tests that read them."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import pytest

#: All tests that walk the trees run in one process, which has them once.
ONE_PROCESS = pytest.mark.xdist_group("sources")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a module's syntax tree. It has no garbage, and looking for some costs the most."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if was_enabled:
            gc.enable()


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax tree, walked once for all tests that look at each."""
    return tuple(ast.walk(tree_of(path)))
