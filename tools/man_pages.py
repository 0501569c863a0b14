"""Writes the manual pages of all commands: kctl.1, kctl-topics.1, kctl-topics-list.1 and so on.

    python -m tools.man_pages FOLDER

Differs: click-man reads commands of the package Click; Typer brings its own copy of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from engine import __version__
from tools.command_tree import CommandEntry, all_commands, parameter_words

EXIT_CODES = {
    "0": "done",
    "1": "failed; the message has the cause and what to do next",
    "2": "wrong usage",
    "3": "a cluster, a broker or a coordinator was not reached",
    "4": "a check found something",
    "5": "changes are pending",
    "70": "a bug of kctl",
    "130": "interrupted by Ctrl-C",
    "143": "ended by SIGTERM",
}


def escaped(text: str) -> str:
    """Return text that roff prints as it is: ASCII, hyphens to copy, no requests."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    safe = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in safe)
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in safe.split("\n"))


def page_name(path: str) -> str:
    """Return the name of a command's page, without its section."""
    return path.replace(" ", "-")


def manual_page(entry: CommandEntry) -> str:
    """Return the page of a command as roff."""
    summary, *details = (entry.command.help or "").strip().split("\n\n")
    arguments = [p for p in entry.options if p.param_type_name == "argument"]
    words = " ".join(["[OPTIONS]" if entry.options else "", *map(parameter_words, arguments)])
    lines = _head(entry.path, " ".join(summary.split()).rstrip("."))
    lines += [".SH SYNOPSIS", f".B {escaped(entry.path)}"]
    lines.append(escaped("COMMAND" if entry.children else words.strip()))
    if details:
        lines.append(".SH DESCRIPTION")
        lines += _paragraphs(details)
    lines += _options(entry)
    lines += _commands({f"{entry.path} {name}": _first_line(c) for name, c in _shown(entry)})
    if entry.command.epilog:
        lines.append(".SH EXAMPLES")
        lines += _examples(entry.command.epilog)
    return "\n".join(lines + _tail(entry.path)) + "\n"


def top_page(nouns: dict[str, str]) -> str:
    """Return the page of kctl itself; `nouns` are its commands with their summaries."""
    lines = _head("kctl", "the toolkit for operators of Apache Kafka")
    lines += [".SH SYNOPSIS", ".B kctl", escaped("COMMAND [ARGS]...")]
    lines += _commands({f"kctl {name}": summary for name, summary in nouns.items()})
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", escaped(meaning)]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Return every page by the name of its file."""
    from kctl.app import NOUNS

    found = {"kctl.1": top_page({name: noun.summary for name, noun in NOUNS.items()})}
    for entry in all_commands():
        found[f"{page_name(entry.path)}.1"] = manual_page(entry)
    return found


def _head(path: str, summary: str) -> list[str]:
    name = page_name(path)
    title = f'.TH "{name.upper()}" "1" "" "kctl {__version__}" "kctl"'
    return [title, ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}"]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for text in texts:
        lines += [".PP", escaped(" ".join(text.split()))]
    return lines


def _options(entry: CommandEntry) -> list[str]:
    lines = [".SH OPTIONS"] if entry.options else []
    for parameter in entry.options:
        text = " ".join((parameter.help or "").split())
        lines += [".TP", f".B {escaped(parameter_words(parameter))}", escaped(text)]
    return lines


def _shown(entry: CommandEntry) -> list[tuple[str, object]]:
    return [(name, child) for name, child in entry.children.items() if not child.hidden]


def _first_line(command: object) -> str:
    return " ".join((getattr(command, "help", None) or "").strip().split("\n\n")[0].split())


def _commands(summaries: dict[str, str]) -> list[str]:
    lines = [".SH COMMANDS"] if summaries else []
    for path, summary in summaries.items():
        lines += [".TP", f".BR {escaped(page_name(path))} (1)", escaped(summary)]
    return lines


def _examples(epilog: str) -> list[str]:
    lines: list[str] = []
    for example in " ".join(epilog.split()).removeprefix("Examples:").split(" · "):
        lines += [".PP", ".RS 4", escaped(example.strip()), ".RE"]
    return lines


def _tail(path: str) -> list[str]:
    parent = path.rpartition(" ")[0]
    return [".SH SEE ALSO", f".BR {escaped(page_name(parent))} (1)"]


def write(folder: Path) -> int:
    """Write all pages into a folder; return how many."""
    folder.mkdir(parents=True, exist_ok=True)
    written = pages()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return len(written)


def main(folder: str) -> int:
    """Write the pages."""
    sys.stdout.write(f"{folder}: {write(Path(folder))} pages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
