"""tabulate for markup, without the imports that most tables do not need; widths of texts.

| tabulate imports | for | here |
|---|---|---|
| wcwidth | characters that are not one column wide | imported for the first text beyond ASCII |
| importlib.metadata | its own version | never imported; the version is not used |

Both take longer to import than a short table takes otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_METADATA = "importlib.metadata"
_WIDTHS = "wcwidth"


def align_table(
    cells: Sequence[Sequence[str]], headings: Sequence[str], **options: str | Sequence[str] | None
) -> str:
    """Return a table as tabulate makes it; `options` are those of tabulate."""
    tabulate = _import_tabulate()
    is_ascii = all(text.isascii() for line in (headings, *cells) for text in line)
    if not is_ascii and tabulate.wcwidth is None:
        import wcwidth

        tabulate.wcwidth = wcwidth
        tabulate.WIDE_CHARS_MODE = True
    return str(
        tabulate.tabulate(
            cells, list(headings), disable_numparse=True, preserve_whitespace=True, **options
        )
    )


def width_of(text: str) -> int:
    """Return the number of terminal columns that a text without control characters takes."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return int(wcswidth(text))


def _import_tabulate() -> Any:
    """Import tabulate without the slow modules that it imports, or normally if that fails."""
    if "tabulate" not in sys.modules:
        try:
            with _stand_ins():
                import tabulate
        except ImportError:
            # This release of tabulate needs more of the modules than the stand-ins have.
            pass
    import tabulate

    return tabulate


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Replace wcwidth and importlib.metadata for the block, in which tabulate is imported.

    Importing these takes longer than tabulate itself, which needs them for other texts only.
    """
    metadata = ModuleType(_METADATA)
    vars(metadata).update(version=lambda _name: "unknown", PackageNotFoundError=ImportError)
    stand_ins = {_WIDTHS: None, _METADATA: metadata}
    stand_ins = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    sys.modules.update(stand_ins)  # type: ignore[arg-type]  # None: there is no such module
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]
