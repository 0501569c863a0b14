"""The help of `kctl dump-log`: options in groups, with examples."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typer.core import TyperOption

_WIDTH = 88
_COLUMN = 32

#: Options by group; options of Kafka's tool are in no group.
_GROUPS: dict[str, tuple[str, ...]] = {
    "Which records (beyond Kafka's tool)": (
        "from_offset", "to_offset", "from_timestamp", "to_timestamp", "max_records", "key",
        "key_regex", "value_regex", "header", "producer_id", "headers_only",
    ),
    "In which form": ("output", "kafka_version", "check"),
}  # fmt: skip
_KAFKA = "Options of kafka-dump-log"

_EXAMPLES = """\
Examples:
  kctl dump-log --print-data-log --files orders-0/00000000000000000000.log
  kctl dump-log orders-0 --from-timestamp 2026-01-31T12:00 --key 4711 -o ndjson
  kctl dump-log __consumer_offsets-7 --offsets-decoder -o ndjson
  kctl dump-log orders-0 --headers-only --check        exit 4 if a CRC is wrong
"""


def help_text(command: Any) -> str:
    """Return the complete help of `kctl dump-log`, with Kafka's options apart from others.

    `command` is its Typer command.
    """
    grouped = {name for names in _GROUPS.values() for name in names}
    options = {p.name: p for p in command.params if p.name != "paths"}
    lines = ["Usage: kctl dump-log [OPTIONS] [PATHS]...", ""]
    for paragraph in command.help.split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), _WIDTH), ""]
    lines += _help_lines("PATHS", "Segment files, or partition directories read as one log.")
    others = tuple(name for name in options if name not in grouped)
    for title, names in {_KAFKA: others, **_GROUPS}.items():
        lines += ["", f"{title}:"]
        for name in names:
            lines += _help_lines(_option_names(options[name]), _option_help(options[name]))
    lines += _help_lines(
        "-h, --help", "This help: -h on stdout, --help as Kafka does (stderr, exit 1)."
    )
    return "\n".join([*lines, "", _EXAMPLES, command.epilog, ""])


def _option_names(option: TyperOption) -> str:
    """Return the names of an option and, unless it is a flag, a placeholder for its value."""
    names = ", ".join(option.opts)
    return names if option.is_flag else f"{names} {'N' if option.type.name == 'int' else 'TEXT'}"


def _option_help(option: TyperOption) -> str:
    """Return the help of a Typer option, with its default if that is neither None nor False."""
    shown = option.show_default and option.default not in (None, False)
    return f"{option.help} [{option.default}]" if shown else str(option.help)


def _help_lines(names: str, meaning: str) -> list[str]:
    """Return the help lines of an option: names on the left, wrapped meaning on the right."""
    lines = textwrap.wrap(meaning, _WIDTH - _COLUMN)
    first = f"  {names}"
    if len(first) > _COLUMN - 2:
        return [first, *(" " * _COLUMN + line for line in lines)]
    return [first.ljust(_COLUMN) + lines[0], *(" " * _COLUMN + line for line in lines[1:])]
