"""Decode a record's key or value by its schema.

| bytes | result |
|---|---|
| null | null |
| an envelope with the id of a schema | the value decoded by that schema |
| other bytes, if there is one schema for all | the value decoded by that schema |
| other bytes without such a schema | not decoded |
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from engine.errors import EngineError
from engine.json_text import TOO_DEEP, json_text, read_json
from engine.schemas.envelope import open_envelope
from engine.schemas.schema import Schema, SchemaKind, SchemaSource

_PACKAGES = {SchemaKind.AVRO: "fastavro", SchemaKind.PROTOBUF: "grpc_tools"}


class SchemaPackageMissing(EngineError):
    """The Python package for a kind of schema is not installed."""

    hint = "pip install 'kctl-kafka[schemas]'"

    def __init__(self, kind: SchemaKind) -> None:
        super().__init__(f"{kind.value} values need {_PACKAGES[kind]}")
        self.kind = kind


class Undecodable(EngineError):
    """A value does not fit its schema."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


class _PassingFailure:
    """A temporary failure to get a schema, and the number of values that needed it."""

    def __init__(self, error: EngineError) -> None:
        self.error = error
        self.use_count = 1


class SchemaDecoder:
    """Decodes keys and values; each schema is loaded once, even if it is unusable.

    After a temporary failure, such as a registry's status 503, the schema is requested again for
    the second value that needs it, then the fourth, the eighth and so on.
    """

    def __init__(
        self, source: SchemaSource | None, one: Schema | None = None, *, with_defaults: bool = False
    ) -> None:
        """Use schemas by id from `source`, and `one` for all bytes without an envelope.

        With `with_defaults` Protobuf's fields with default values are in the result, too.
        """
        self._source = source
        self._with_defaults = with_defaults
        #: Decodes all bytes without an envelope; None: only bytes with an envelope are decoded.
        self._one = None
        if one is not None:
            self._one = make_reader(
                one, "the schema", is_enveloped=False, with_defaults=with_defaults
            )
        #: The reader of each schema id, or the error that made the schema unusable.
        self._readers: dict[int, Callable[[bytes], object] | EngineError] = {}
        #: Failures that may pass, by schema id, with the count of values until the next request.
        self._passing: dict[int, _PassingFailure] = {}

    def decodes(self, raw: bytes | None) -> bool:
        """Return True if these bytes are to be decoded by a schema.

        They are if one schema is given for all values, or if they begin with the envelope of a
        schema id. A null value is not.
        """
        if raw is None:
            return False
        return self._one is not None or (
            self._source is not None and open_envelope(raw) is not None
        )

    def value(self, raw: bytes) -> object:
        """Return the value of bytes for which `decodes` returned True, in JSON's types.

        Raises EngineError if the schema is unusable or the bytes do not fit it.
        """
        if self._one is not None:
            return _read_value(self._one, raw, "the schema")
        envelope = open_envelope(raw)
        assert envelope is not None
        what = f"schema {envelope.schema_id}"
        return _read_value(self._find_reader(envelope.schema_id, what), envelope.content, what)

    def _find_reader(self, schema_id: int, what: str) -> Callable[[bytes], object]:
        """Return the cached function that decodes values of a schema.

        Raises the error that made the schema unusable.
        """
        reader = self._readers.get(schema_id)
        if reader is None:
            reader = self._make_reader(schema_id, what)
        if isinstance(reader, EngineError):
            raise reader
        return reader

    def _make_reader(self, schema_id: int, what: str) -> Callable[[bytes], object] | EngineError:
        """Request a schema; return a function that decodes its values, or why it is unusable.

        A failure that may be temporary is kept only for a number of values, then the schema is
        requested again.
        """
        failure = self._passing.get(schema_id)
        if failure is not None:
            failure.use_count += 1
            # Retry at each power of two, so that an unavailable source is not asked each time.
            if failure.use_count & (failure.use_count - 1):
                return failure.error
        assert self._source is not None
        for is_last in (False, True):
            try:
                schema = self._source.schema(schema_id)
                reader = make_reader(
                    schema, what, is_enveloped=True, with_defaults=self._with_defaults
                )
            except EngineError as error:
                if not getattr(error, "may_pass", False):
                    self._readers[schema_id] = error
                    return error
                if is_last:
                    if failure is None:
                        self._passing[schema_id] = _PassingFailure(error)
                    else:
                        failure.error = error
                    return error
            else:
                self._readers[schema_id] = reader
                return reader
        raise AssertionError("the last try returns")


def _read_value(reader: Callable[[bytes], object], content: bytes, what: str) -> object:
    """Return the value that `reader` decodes; raises Undecodable for invalid bytes or deep nesting.

    A value without a JSON text is invalid as well.
    """
    try:
        value = reader(content)
        # Raises here the errors that output would raise later.
        json_text(value)
        return value
    except ValueError as error:
        raise Undecodable(what, str(error)) from error
    except RecursionError as error:
        raise Undecodable(what, TOO_DEEP) from error


def require_package(schema: Schema) -> None:
    """Raise SchemaPackageMissing if the Python package for the schema's kind is not installed.

    Compiled descriptors need no package.
    """
    package = _PACKAGES.get(schema.kind)
    if package is not None and schema.descriptors is None and find_spec(package) is None:
        raise SchemaPackageMissing(schema.kind)


def make_reader(
    schema: Schema, what: str, *, is_enveloped: bool, with_defaults: bool = False
) -> Callable[[bytes], object]:
    """Return a function that decodes values of a schema; it raises ValueError for invalid bytes.

    `what` names the schema in errors; `is_enveloped` is True if values follow a schema id;
    `with_defaults` adds missing fields of Protobuf. Raises UnusableSchema, SchemaPackageMissing.
    """
    require_package(schema)
    if schema.kind is SchemaKind.AVRO:
        from engine.schemas.avro import make_avro_reader

        return make_avro_reader(schema, what, is_enveloped=is_enveloped)
    if schema.kind is SchemaKind.PROTOBUF:
        from engine.schemas.protobuf import make_protobuf_reader

        return make_protobuf_reader(
            schema, what, is_enveloped=is_enveloped, with_defaults=with_defaults
        )
    return read_json
