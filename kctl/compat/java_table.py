"""Tables of Kafka's newer tools: padded cells, each followed by a tab.

Source: ToolsUtils.prettyPrintTable.
"""

from __future__ import annotations

from collections.abc import Sequence


def java_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, each column as wide as its widest cell and followed by a tab."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) + "\n"
        for row in (heads, *rows)
    )
