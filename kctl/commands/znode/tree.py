"""Print a tree of nodes: drawn on a terminal, indented elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from engine.znode.kazoo_reader import TreeNode
from engine.znode.names import name_of

if TYPE_CHECKING:
    from rich.tree import Tree

_INDENT = "  "


def write_tree(nodes: Iterable[TreeNode], stream: TextIO) -> None:
    """Write an indented line for each node, in colours on a terminal.

    `nodes` has parents before children.
    """
    if stream.isatty() and not os.environ.get("NO_COLOR"):
        _write_coloured(nodes, stream)
        return
    for node in nodes:
        stream.write(f"{_INDENT * node.depth}{_label(node)}{_note(node)}\n")


def _label(node: TreeNode) -> str:
    """Return a node's name in the tree; the root has its complete path."""
    return node.path if node.depth == 0 else name_of(node.path)


def _note(node: TreeNode) -> str:
    """Return the text after a node's name: size, and whether it is ephemeral."""
    notes = [f"{node.stat.data_length_bytes} bytes"] if node.stat.data_length_bytes else []
    if node.stat.ephemeral_owner:
        notes.append("ephemeral")
    return f"  ({', '.join(notes)})" if notes else ""


def _write_coloured(nodes: Iterable[TreeNode], stream: TextIO) -> None:
    """Write nodes as a tree drawn by rich; `nodes` has parents before children."""
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    branches: list[Tree] = []
    for node in nodes:
        line = Text(_label(node)).append(_note(node), style="dim")
        branch = Tree(line) if not branches else branches[node.depth - 1].add(line)
        branches[node.depth :] = [branch]
    Console(file=stream, markup=False, highlight=False).print(branches[0])
