"""Schemas, and the interface of their sources."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from engine.errors import EngineError


class SchemaKind(Enum):
    """The schema types, by the registry's name for them."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


class Schema(NamedTuple):
    """A schema's text, and the schemas that it references by name, in order of dependency.

    `message` is the full name of a protobuf message if it is not stated by the value itself.
    `descriptors` are the output of Protobuf's compiler, for processes without a compiler.
    """

    kind: SchemaKind
    text: str
    references: tuple[tuple[str, str], ...] = ()
    message: str | None = None
    descriptors: bytes | None = None


class NoSuchSchema(EngineError):
    """A source lacks a schema."""

    def __init__(self, schema_id: int, where: str) -> None:
        super().__init__(f"{where} has no schema {schema_id}")
        self.schema_id = schema_id
        self.where = where


class UnusableSchema(EngineError):
    """A schema exists, but cannot be used."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


class SchemaSource(Protocol):
    """A source of schemas."""

    def schema(self, schema_id: int) -> Schema:
        """Return a schema; raises NoSuchSchema, UnusableSchema, HttpUnreachable."""
        ...
