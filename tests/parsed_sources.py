"""Modules of the project as syntax trees, parsed once for all tests that read them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

#: All tests that walk the trees run in one process, which has them once.
ONE_PROCESS = pytest.mark.xdist_group("sources")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a module's syntax tree. It has no garbage, and looking for some costs the most."""
    with _nothing_collected():
        return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax tree, walked once for all tests that look at each."""
    with _nothing_collected():
        return tuple(ast.walk(tree_of(path)))


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Have what is made meanwhile looked through by no collection, now or later."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
