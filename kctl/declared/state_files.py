"""Select the files, and the documents in them, that apply to a cluster.

A folder counts with all its files that end in .yaml, .yml or .json, at any depth, hidden ones and
those in hidden folders left out. A document with `contexts` counts only for these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.declared.resources import DeclaredState
from engine.host.input_file import read_input
from engine.host.real import RealFiles
from kctl.declared.state_sections import declared_state, document_contexts
from kctl.declared.yaml_nodes import BadStateFile, YamlValue, yaml_documents

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_STDIN: Final = "-"
# A file of every topic of the largest clusters has a tenth of it.
_FILE_BYTES_MAX: Final = 64 << 20
# The root of a machine has more, and no folder of states.
_ENTRIES_MAX: Final = 20_000


class ReadState(NamedTuple):
    """The declared state for a cluster, and the documents for other clusters."""

    state: DeclaredState
    passed_over: Sequence[str]


def read_state_files(
    paths: Sequence[str], context: str | None, environment: Mapping[str, str]
) -> ReadState:
    """Return the state that files and folders declare for a context; None is no context.

    Errors: BadStateFile, those of files.
    """
    counting: list[YamlValue] = []
    passed_over: list[str] = []
    for path in dict.fromkeys(file for named in paths for file in _files(named)):
        for document in yaml_documents(_content(path), path, environment):
            names = document_contexts(document)
            if names is None or context in names:
                counting.append(document)
            elif context is None:
                hint = f"name the cluster by its context: --context {names[0]}"
                reason = f"the document is for contexts only ({', '.join(names)}), and none is used"
                raise document.fault(reason, hint)
            else:
                passed_over.append(f"{document.where} is for {', '.join(names)}")
    if not counting:
        names_of = ", ".join(paths)
        reason = f"no document is for context {context}" if passed_over else "nothing is declared"
        raise BadStateFile(names_of, reason)
    return ReadState(declared_state(counting), passed_over)


def _files(path: str) -> Iterator[str]:
    """Yield the path, or a folder's state files sorted; raises BadStateFile without any."""
    if path == _STDIN or not RealFiles().is_dir(path):
        yield path
        return
    found = []
    for entries, file in enumerate(_below(path), 1):
        if entries > _ENTRIES_MAX:
            reason = f"the folder has more than {_ENTRIES_MAX} files: is it the right one?"
            raise BadStateFile(path, reason)
        if file is not None:
            found.append(file)
    found.sort()
    if not found:
        raise BadStateFile(path, f"the folder has no file that ends in {', '.join(_SUFFIXES)}")
    yield from found


def _below(folder: str) -> Iterator[str | None]:
    """Yield the files of a folder that count, and None for each other one."""
    files = RealFiles()
    for name in files.list_dir(folder):
        path = f"{folder.rstrip('/')}/{name}"
        if name.startswith("."):
            continue
        if files.is_dir(path):
            yield from _below(path)
        else:
            yield path if name.endswith(_SUFFIXES) else None


def _content(path: str) -> bytes:
    """Return the content of a file or of stdin; raises BadStateFile if it is too large."""
    if path == _STDIN:
        content = sys.stdin.buffer.read(_FILE_BYTES_MAX + 1)
    else:
        content = read_input(path, _FILE_BYTES_MAX)
    if len(content) > _FILE_BYTES_MAX:
        raise BadStateFile(path, f"has more than {_FILE_BYTES_MAX} bytes")
    return content
