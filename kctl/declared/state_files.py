"""Selects the files, and the documents in them, that apply to a cluster.

Of a folder, all files at any depth that end in .yaml, .yml or .json are read; hidden files and
folders are not. A document with `contexts` applies only to those contexts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.declared.resources import DeclaredState
from engine.host.input_file import read_input
from engine.host.real import RealFiles
from kctl.declared.state_sections import document_contexts, parse_declared_state
from kctl.declared.yaml_nodes import BadStateFile, YamlValue, yaml_documents

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_STDIN: Final = "-"
# A file with every topic of the largest clusters has a tenth of this.
_FILE_BYTES_MAX: Final = 64 << 20
# A folder of state files has fewer, the root of a machine more.
_ENTRIES_MAX: Final = 20_000


class ReadState(NamedTuple):
    """The declared state for a cluster, and the places of documents for other clusters."""

    state: DeclaredState
    passed_over: Sequence[str]


def read_state_files(
    paths: Sequence[str], context: str | None, environment: Mapping[str, str]
) -> ReadState:
    """Return the state that files and folders declare for a context, None for no context.

    Documents for other contexts are passed over. `environment` has the variables that files refer
    to. Errors: BadStateFile, those of reading files.
    """
    counting: list[YamlValue] = []
    passed_over: list[str] = []
    for path in dict.fromkeys(file for named in paths for file in _state_files(named)):
        for document in yaml_documents(_read_content(path), path, environment):
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
    return ReadState(parse_declared_state(counting), passed_over)


def _state_files(path: str) -> Iterator[str]:
    """Yield a file, or the state files of a folder in order; raises BadStateFile if it has none."""
    if path == _STDIN or not RealFiles().is_dir(path):
        yield path
        return
    found = []
    for entries, file in enumerate(_walk_folder(path), 1):
        if entries > _ENTRIES_MAX:
            reason = f"the folder has more than {_ENTRIES_MAX} files: is it the right one?"
            raise BadStateFile(path, reason)
        if file is not None:
            found.append(file)
    found.sort()
    if not found:
        raise BadStateFile(path, f"the folder has no file that ends in {', '.join(_SUFFIXES)}")
    yield from found


def _walk_folder(folder: str) -> Iterator[str | None]:
    """Yield the path of each state file in a folder, at any depth, and None for each other file.

    The None let the caller stop in a folder of very many files.
    """
    files = RealFiles()
    for name in files.list_dir(folder):
        path = f"{folder.rstrip('/')}/{name}"
        if name.startswith("."):
            continue
        if files.is_dir(path):
            yield from _walk_folder(path)
        else:
            yield path if name.endswith(_SUFFIXES) else None


def _read_content(path: str) -> bytes:
    """Return the content of a file or of stdin; raises BadStateFile if it is too large."""
    if path == _STDIN:
        content = sys.stdin.buffer.read(_FILE_BYTES_MAX + 1)
    else:
        content = read_input(path, _FILE_BYTES_MAX)
    if len(content) > _FILE_BYTES_MAX:
        raise BadStateFile(path, f"has more than {_FILE_BYTES_MAX} bytes")
    return content
