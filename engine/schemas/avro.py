"""Decode Avro values to plain ones, with fastavro."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import isfinite, isnan

from engine.errors import EngineError
from engine.json_text import JsonObject
from engine.limits import DECIMAL_BYTES_MAX
from engine.records.varint import write_varint
from engine.schemas.avro_nesting import check_nesting, is_recursive
from engine.schemas.schema import Schema, UnusableSchema

_FIELD = "value"


def parse_avro(schema: Schema, what: str) -> tuple[object, dict[str, JsonObject]]:
    """Return the parsed schema with full names, and its named types by full name.

    `what` names the schema in the error. Raises UnusableSchema if it is no Avro schema.
    """
    from fastavro.schema import SchemaParseException, UnknownType

    named: dict[str, JsonObject] = {}
    try:
        try:
            return _parse(schema.text, named), named
        except UnknownType:
            # Parse references only if needed: a folder may contain unrelated, invalid schemas.
            named = _parse_types([text for _, text in schema.references])
            return _parse(schema.text, named), named
    except (
        SchemaParseException,
        UnknownType,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ) as error:
        raise UnusableSchema(what, f"it is no Avro schema: {error}") from error


def _parse_types(texts: list[str]) -> dict[str, JsonObject]:
    """Return the named types of schemas in any order, by full name.

    Schemas that refer to types which none of them defines are left out.
    """
    from fastavro.schema import UnknownType

    named: dict[str, JsonObject] = {}
    while texts:
        # The files are in no order: a schema with unknown types is retried in the next round.
        left = []
        for text in texts:
            try:
                _parse(text, named)
            except UnknownType:
                left.append(text)
        if len(left) == len(texts):
            break
        texts = left
    # One whose fields could not all be read has no name yet.
    return {name: of for name, of in named.items() if "name" in of}


def _parse(text: str, named: dict[str, JsonObject]) -> object:
    """Parse a schema, and add its types to `named`, where later schemas find them."""
    import json

    import fastavro

    return fastavro.parse_schema(json.loads(text), named_schemas=named)


def make_avro_reader(schema: Schema, what: str, *, is_enveloped: bool) -> Callable[[bytes], object]:
    """Return a function that decodes Avro values of a schema; raises UnusableSchema.

    The function raises ValueError for bytes that are no value of the schema. `is_enveloped` is True
    for values that follow a schema id, whose bytes may lack a length.

    Source: Confluent's KafkaAvroSerializer, which writes a value of type bytes without its length
    after an envelope.

    """
    from io import BytesIO

    import fastavro

    _bound_decimals()
    parsed, named = parse_avro(schema, what)
    may_be_deep = is_recursive(named)
    kind = parsed
    while isinstance(kind, dict):
        kind = kind.get("type")
    lacks_length = is_enveloped and kind == "bytes"
    is_alone = not schema.references or kind in ("record", "error")
    readable = parsed if is_alone else _wrap_in_record(schema.text, named)

    def read(content: bytes) -> object:
        """Decode one value; raises ValueError if bytes do not fit the schema or are left over."""
        if lacks_length:
            content = _with_length(content)
        if may_be_deep:
            check_nesting(content, parsed, named)
        stream = BytesIO(content)
        try:
            value = fastavro.schemaless_reader(stream, readable, None)
        except EngineError:
            raise
        except EOFError as error:
            # Its text may have the address of the stream: the same problem reads the same.
            raise ValueError("not of this Avro schema: the bytes end too early") from error
        except UnicodeDecodeError as error:
            # Its representation has all of the text.
            raise ValueError(f"not of this Avro schema: {error}") from error
        except Exception as error:
            # The reader of arbitrary bytes raises any exception of its parts.
            raise ValueError(f"not of this Avro schema: {error!r}") from error
        if stream.read(1):
            raise ValueError("not of this Avro schema: there are bytes after the value")
        return to_json_value(value if is_alone else value[_FIELD])

    return read


@cache
def _bound_decimals() -> None:
    """Make fastavro raise ValueError for very long decimals, in the complete process.

    Their conversion takes time quadratic in the number of bytes.
    """
    from fastavro.read import LOGICAL_READERS

    for name in ("bytes-decimal", "fixed-decimal"):
        LOGICAL_READERS[name] = partial(_decode_bounded, LOGICAL_READERS[name])


def _decode_bounded(read: Callable[..., object], content: bytes, *schemas: object) -> object:
    """Decode a decimal with the reader `read` of fastavro.

    Raises ValueError for more than DECIMAL_BYTES_MAX bytes.
    """
    if len(content) > DECIMAL_BYTES_MAX:
        raise ValueError(f"a decimal has {len(content)} bytes")
    return read(content, *schemas)


def _wrap_in_record(text: str, named: dict[str, JsonObject]) -> object:
    """Return a record schema with one field of this schema, whose values are the same bytes.

    fastavro keeps the named types of a schema only within a record.
    """
    import json

    import fastavro

    field = {"name": _FIELD, "type": json.loads(text)}
    record = {"type": "record", "name": "KctlRecord", "fields": [field]}
    return fastavro.parse_schema(record, named_schemas=dict(named))


def _with_length(content: bytes) -> bytes:
    """Return bytes in the encoding of Avro's type bytes: their length, then the bytes."""
    out = bytearray()
    write_varint(out, len(content))
    return bytes(out) + content


def to_json_value(value: object) -> object:
    """Return a decoded value in JSON's types.

    Times become ISO 8601, bytes text or base64, and NaN or infinity text, as in Protobuf's JSON.
    """
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            from base64 import b64encode

            return b64encode(value).decode()
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
