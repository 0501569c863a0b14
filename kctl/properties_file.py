"""Properties files that a command line or a context names.

A pipe, which shells give for `<(command)`, is read once and kept, since the cluster's addresses,
the client's settings and the command's own settings are looked up separately.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.host.ports import Files

_read_once: dict[str, Mapping[str, str]] = {}


def read_properties(files: Files, path: str) -> dict[str, str]:
    """Return the properties of a file, or of a pipe, which is read only the first time.

    Errors: FileMissing, FileRefused, and those of `parse_properties`.
    """
    from engine.config.java_properties import parse_properties
    from engine.host.input_file import is_read_once, read_input

    if path in _read_once:
        return dict(_read_once[path])
    if not is_read_once(path):
        return parse_properties(files.read_bytes(path), path)
    properties = _read_once[path] = parse_properties(read_input(path), path)
    return dict(properties)
