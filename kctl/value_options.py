"""The options for decoding keys and values in queries and exports of log directories."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.analysis.statements import QueryResult
    from engine.analysis.value_decoding import ValueDecoding
    from engine.schemas.schema import SchemaSource

VALUES_HELP = (
    "raw, utf8, json or schema: adds decoded_key, decoded_value and decoding_problem to records;"
    " schema by default with --schema-registry or --schemas."
)
KEYS_HELP = (
    "text or schema: with schema decoded_key is a struct by the schemas that keys name, as"
    " decoded_value is; text by default: JSON of a key with a schema, the text of others."
)
KEY_SCHEMA_HELP = "All keys by FILE.avsc, FILE.json, FILE.proto:Message; goes with any --values."
REGISTRY_HELP = (
    "Decode Avro, Protobuf and JSON Schema by this registry; with --values schema"
    " $KCTL_SCHEMA_REGISTRY by default."
)
SCHEMAS_HELP = (
    "Decode by a folder of ID.avsc, ID.proto, ID.json; or all values by FILE.avsc,"
    " FILE.proto:Message."
)
#: Timeout of a request to the registry; only the planning process requests schemas.
_TIMEOUT_S = 30.0


class WantedValues(NamedTuple):
    """The requested format of keys and values, and where their schemas are."""

    value_format: str
    registry: str | None
    schemas: str | None
    shapes_keys: bool = False
    key_schema: str | None = None

    @property
    def by_schemas(self) -> bool:
        """Return True if keys or values are decoded by schemas.

        Spark's tasks then need the packages that read schemas.
        """
        return self.value_format == "schema" or self.key_schema is not None


def parse_wanted_values(
    values: str | None,
    registry: str | None,
    schemas: str | None,
    keys: str | None = None,
    key_schema: str | None = None,
) -> WantedValues | None:
    """Return how queries decode keys and values, None to leave them as bytes.

    The parameters are the values of --values, --schema-registry, --schemas, --keys and
    --key-schema.

    Errors: UnknownDecoding, UnreadableArgument.
    """
    from engine.analysis.value_decoding import VALUE_FORMATS, UnknownDecoding
    from kctl.arguments import UnreadableArgument

    if registry and schemas:
        raise UnreadableArgument("options that go together", "--schema-registry --schemas", "one")
    by_schema = registry or schemas or keys == "schema" or key_schema
    value_format = values or ("schema" if by_schema else "raw")
    if value_format not in VALUE_FORMATS:
        raise UnknownDecoding(value_format, f"expected one of {', '.join(VALUE_FORMATS)}")
    if value_format != "schema" and (registry or schemas):
        raise UnknownDecoding(
            value_format, "--schema-registry and --schemas are for --values schema"
        )
    if value_format == "schema" and not schemas:
        registry = registry or os.environ.get("KCTL_SCHEMA_REGISTRY")
        if not registry:
            rule = "--schema-registry or --schemas sets where schemas are"
            raise UnknownDecoding(
                value_format, f"{rule}; --values utf8 needs none" if key_schema else rule
            )
    shapes_keys = _shapes_keys(keys, value_format, schemas, key_schema)
    if value_format == "raw":
        return None
    return WantedValues(value_format, registry, schemas, shapes_keys, key_schema)


def _shapes_keys(
    keys: str | None, value_format: str, schemas: str | None, key_schema: str | None
) -> bool:
    """Return True if keys are decoded into structs by the options of `parse_wanted_values`.

    Errors: UnknownDecoding for options that do not go together.
    """
    from engine.analysis.value_decoding import UnknownDecoding

    if keys not in (None, "text", "schema"):
        raise UnknownDecoding(str(keys), "expected one of text, schema", "--keys")
    if key_schema is not None and (keys == "text" or value_format == "raw"):
        rule = "it makes decoded_key a struct, so not with --keys text or --values raw"
        raise UnknownDecoding(key_schema, rule, "--key-schema")
    if keys != "schema" or key_schema is not None:
        return key_schema is not None
    if value_format != "schema":
        raise UnknownDecoding(
            keys, f"it goes with --values schema, not with {value_format}", "--keys"
        )
    if schemas is not None and not os.path.isdir(schemas):
        raise UnknownDecoding(
            keys, f"{schemas} is for values; --key-schema FILE is for keys", "--keys"
        )
    return True


def create_decoding(
    wanted: WantedValues | None, execute: Callable[[str], QueryResult]
) -> ValueDecoding | None:
    """Return the decoding of keys and values for queries, with its schemas read; None for None.

    `execute` runs the query for the schema ids in the logs, whose schemas are fetched.

    Errors: UnusableSchema, StorageError, HttpUnreachable, RegistryRefused, those of `execute`.
    """
    from engine.analysis.value_decoding import (
        IDS_QUERY,
        ValueDecoding,
        by_one,
        fetch_schema_decoding,
        ids_in,
        with_keys_by_one,
    )
    from engine.host.real import RealFiles
    from engine.schemas.folder import read_schema_file

    if wanted is None:
        return None
    if wanted.value_format != "schema":
        decoding = ValueDecoding(wanted.value_format)
    elif wanted.schemas is not None and not os.path.isdir(wanted.schemas):
        decoding = by_one(read_schema_file(RealFiles(), wanted.schemas))
    else:
        of_values, of_keys = ids_in(execute(IDS_QUERY).rows)
        if wanted.key_schema is not None:
            of_keys = set()
        decoding = fetch_schema_decoding(
            _schema_source(wanted), of_values, of_keys, shapes_keys=wanted.shapes_keys
        )
    if wanted.key_schema is None:
        return decoding
    return with_keys_by_one(decoding, read_schema_file(RealFiles(), wanted.key_schema))


def _schema_source(wanted: WantedValues) -> SchemaSource:
    """Return where the schemas are looked up: in a folder, else in a registry."""
    if wanted.schemas is not None:
        from engine.host.real import RealFiles
        from engine.schemas.folder import SchemaFolder

        return SchemaFolder(RealFiles(), wanted.schemas)
    from engine.host.real_http import RealHttp
    from engine.schemas.registry import Registry

    assert wanted.registry is not None
    auth = os.environ.get("KCTL_SCHEMA_REGISTRY_AUTH")
    return Registry(RealHttp(), wanted.registry, auth=auth, timeout_s=_TIMEOUT_S)


class EmptyHashKey(EngineError):
    """The key file for hashing is empty."""

    exit_code = 2

    def __init__(self, path: str) -> None:
        super().__init__(f"--anonymise-key {path}: the file is empty")
        self.path = path


def read_hash_key(path: str) -> bytes:
    """Return the key for hashing records' contents from a file, without final newlines.

    Errors: EmptyHashKey.
    """
    from engine.host.real import RealFiles

    key = RealFiles().read_bytes(path).rstrip(b"\r\n")
    if not key:
        raise EmptyHashKey(path)
    return key
