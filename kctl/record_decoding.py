"""Decodes keys and values of records by their schemas; the bytes are kept beside the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.records.record_run import RecordRun
from engine.schemas.decoding import SchemaDecoder
from engine.schemas.schema import Schema, SchemaSource
from kctl.arguments import UnreadableArgument

#: Stands for bytes that were not decoded, since None is the decoded null.
NOTHING: Final = object()


class Decoded(NamedTuple):
    """The decoded keys and values of a run of records; NOTHING for those that were not decoded."""

    keys: Sequence[object]
    values: Sequence[object]

    def at_places(self, places: Sequence[int]) -> Decoded:
        """Return the decoded keys and values of the records at these positions in the run."""
        return Decoded([self.keys[n] for n in places], [self.values[n] for n in places])

    def first(self, count: int) -> Decoded:
        """Return the decoded keys and values of the first `count` records."""
        return Decoded(self.keys[:count], self.values[:count])

    def texts(self, run: RecordRun) -> RecordRun:
        """Return the run with JSON in place of those keys and values that were decoded."""
        return run._replace(
            keys=_json_column(self.keys, run.keys), values=_json_column(self.values, run.values)
        )

    def columns(self) -> dict[str, Sequence[object]]:
        """Return the decoded items as columns of output rows, `decoded_key` and `decoded_value`.

        They are None for items that were not decoded.
        """
        return {
            "decoded_key": [None if item is NOTHING else item for item in self.keys],
            "decoded_value": [None if item is NOTHING else item for item in self.values],
        }


def _json_column(decoded: Sequence[object], raw: Sequence[bytes | None]) -> Sequence[bytes | None]:
    """Return decoded keys or values as JSON, the raw bytes where nothing was decoded."""
    from engine.json_text import json_text

    return [
        content if item is NOTHING else json_text(item).encode()
        for item, content in zip(decoded, raw, strict=True)
    ]


class Decoders(NamedTuple):
    """The decoders of keys and of values."""

    keys: SchemaDecoder
    values: SchemaDecoder


class RecordDecoding:
    """Decodes runs of records; reports each error once, and leaves those bytes undecoded."""

    def __init__(self, decoders: Decoders, fail: Callable[[EngineError], None]) -> None:
        """Create the decoding; `fail` reports an error, once for each text of an error."""
        self._decoders = decoders
        self._fail = fail
        self._reported: set[str] = set()

    def decoded(self, run: RecordRun) -> Decoded:
        """Return the decoded keys and values of a run of records."""
        return Decoded(
            [self._one(self._decoders.keys, raw) for raw in run.keys],
            [self._one(self._decoders.values, raw) for raw in run.values],
        )

    def _one(self, decoder: SchemaDecoder, raw: bytes | None) -> object:
        """Return a decoded key or value, NOTHING if it has no schema or cannot be decoded."""
        if raw is None or not decoder.decodes(raw):
            return NOTHING
        try:
            return decoder.value(raw)
        except EngineError as error:
            if str(error) not in self._reported:
                self._reported.add(str(error))
                self._fail(error)
            return NOTHING


def create_decoders(
    registry: str | None,
    schemas: str | None,
    key_schema: str | None,
    environment: Mapping[str, str],
    timeout_s: float,
) -> Decoders | None:
    """Return the decoders of keys and values by the schema options; None without any.

    `registry` is a URL, `schemas` a file or a folder, `key_schema` a file; `timeout_s` is for a
    request to the registry.

    The schemas of a registry or a folder decode keys and values; a single file decodes values only.
    `--schemas` takes precedence over a registry that the environment names.
    Errors: UnreadableArgument, UnusableSchema, SchemaPackageMissing.
    """
    if schemas and registry == environment.get("KCTL_SCHEMA_REGISTRY"):
        registry = None
    if registry and schemas:
        raise UnreadableArgument("options that go together", "--schema-registry --schemas", "one")
    if not (registry or schemas or key_schema):
        return None
    if schemas and not os.path.isdir(schemas):
        keys, values = SchemaDecoder(None), SchemaDecoder(None, _one(schemas))
    else:
        keys = values = SchemaDecoder(_schema_source(registry, schemas, environment, timeout_s))
    return Decoders(SchemaDecoder(None, _one(key_schema)) if key_schema else keys, values)


def _one(path: str) -> Schema:
    from engine.schemas.folder import read_schema_file

    return read_schema_file(RealFiles(), path)


def _schema_source(
    registry: str | None, folder: str | None, environment: Mapping[str, str], timeout_s: float
) -> SchemaSource | None:
    """Return where schemas are looked up by id: a registry, or a folder; None without either."""
    if registry:
        from engine.host.real_http import RealHttp
        from engine.schemas.registry import Registry

        auth = environment.get("KCTL_SCHEMA_REGISTRY_AUTH")
        return Registry(RealHttp(), registry, auth=auth, timeout_s=timeout_s)
    if folder is None:
        return None
    from engine.schemas.folder import SchemaFolder

    return SchemaFolder(RealFiles(), folder)
