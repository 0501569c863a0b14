"""Decoded keys and values: three additional columns of the view `records`.

| format | decoded_key, decoded_value | decoding_problem |
|---|---|---|
| raw | no such columns | |
| utf8 | the text | invalid UTF-8 |
| json | the JSON in normalized form | invalid JSON |
| schema | a key's JSON or text; columns for the fields of values | no schema, or an unfit one |
| schema, of keys too | columns for the fields of both | the same; a key without a schema |
| any, one schema for keys | columns for the fields of keys | a key that does not fit the schema |

The columns of values have the merged shape of all schemas that values refer to
(`engine/schemas/shape.py`), the columns of keys that of all schemas that keys refer to. The ids of
these schemas are collected from the logs before a query, and the driver fetches each schema once.
Tasks get the schemas, Protobuf's in compiled form, and contact no registry. A key or value that
cannot be decoded is null, with a problem.

Transaction markers are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.column_types import arrow_type
from engine.analysis.columns import RECORDS, VIEWS
from engine.analysis.view_column import ViewColumn
from engine.errors import EngineError
from engine.json_text import json_text, read_json
from engine.schemas.decoding import SchemaDecoder, require_package
from engine.schemas.envelope import open_envelope
from engine.schemas.schema import NoSuchSchema, Schema, SchemaKind, SchemaSource, UnusableSchema
from engine.schemas.shape import JSON, TEXT, Shape, fit_to_shape, merged
from engine.schemas.shape_of import shape_of

if TYPE_CHECKING:
    import pyarrow as pa

#: The formats by which keys and values can be decoded.
VALUE_FORMATS = ("raw", "utf8", "json", "schema")
KEY, VALUE, PROBLEM = "decoded_key", "decoded_value", "decoding_problem"
_READ = ("key", "value", "isControl")

#: Query of the schema ids in values and keys, for both engines; a key's id is in hex digits.
IDS_QUERY = """
    select distinct schema_id,
           case when key_size >= 5 and hex(key) like '00%' then substring(hex(key), 3, 8) end key_id
    from records where not isControl and (schema_id is not null or hex(key) like '00%')"""


class ValueDecoding(NamedTuple):
    """The formats and schemas by which keys and values are decoded; it is pickled for the tasks.

    `schemas` are the usable schemas by id, `unusable` the (name, problem) of the others. `one` is
    the schema for all values without an envelope, `key_one` for all keys without one. `key_shape`
    is the merged shape of keys; with None keys are texts.
    """

    value_format: str
    schemas: Mapping[int, Schema] = {}
    one: Schema | None = None
    shape: Shape = TEXT
    key_shape: Shape | None = None
    key_one: Schema | None = None
    unusable: Mapping[int, tuple[str, str]] = {}

    @property
    def columns(self) -> tuple[ViewColumn, ...]:
        """Return the columns that decoding adds to the view `records`: key, value and problem."""
        return (
            ViewColumn(KEY, self.key_shape or "string", True, f"the key as {self._key_format}"),
            ViewColumn(VALUE, self.shape, True, f"the value as {self.value_format}"),
            ViewColumn(PROBLEM, "string", True, "why the key or the value is not decoded"),
        )

    @property
    def _key_format(self) -> str:
        """Return the format of keys: `schema` with a schema for keys, else the format of values."""
        return self.value_format if self.key_one is None else "schema"


class UnknownDecoding(EngineError):
    """The text of an option for decoding keys or values is not understood."""

    exit_code = 2

    def __init__(self, text: str, rule: str, option: str = "--values") -> None:
        super().__init__(f"{option} {text}: {rule}")
        self.text = text


def views_of(decoding: ValueDecoding | None) -> Mapping[str, tuple[ViewColumn, ...]]:
    """Return the columns of all views, with the decoded columns if there is a decoding."""
    if decoding is None:
        return VIEWS
    return {**VIEWS, "records": (*RECORDS, *decoding.columns)}


def ids_in(rows: Iterable[Mapping[str, object]]) -> tuple[set[int], set[int]]:
    """Return the schema ids of values, and those of keys, that the rows of IDS_QUERY have."""
    of_values, of_keys = set(), set()
    for row in rows:
        if isinstance(value_id := row["schema_id"], int):
            of_values.add(value_id)
        if isinstance(key_id := row["key_id"], str):
            of_keys.add(int.from_bytes(bytes.fromhex(key_id), "big", signed=True))
    return of_values, of_keys


def fetch_schema_decoding(
    source: SchemaSource, of_values: set[int], of_keys: set[int], *, shapes_keys: bool = False
) -> ValueDecoding:
    """Fetch the schemas with these ids; return a decoding by them.

    `shapes_keys` also makes columns of keys' fields. A missing or unusable schema becomes a problem
    of its records; other errors are raised.
    """
    schemas: dict[int, Schema] = {}
    unusable: dict[int, tuple[str, str]] = {}
    of_ids: dict[int, Shape] = {}
    for schema_id in sorted(of_values | of_keys):
        try:
            schema = _make_portable(source.schema(schema_id), what := f"schema {schema_id}")
            of_ids[schema_id] = shape_of(schema, what, is_enveloped=True)
            schemas[schema_id] = schema
        except NoSuchSchema:
            continue
        except UnusableSchema as error:
            unusable[schema_id] = (error.what, error.reason)
    shape = merged(of for schema_id, of in of_ids.items() if schema_id in of_values)
    key_shape = merged(of for schema_id, of in of_ids.items() if schema_id in of_keys)
    return ValueDecoding(
        "schema", schemas, None, shape, key_shape if shapes_keys else None, unusable=unusable
    )


def by_one(schema: Schema) -> ValueDecoding:
    """Return a decoding of all values by one schema, without ids in them; raises UnusableSchema."""
    schema = _make_portable(schema, what := "the schema")
    return ValueDecoding("schema", {}, schema, shape_of(schema, what, is_enveloped=False))


def with_keys_by_one(decoding: ValueDecoding, schema: Schema) -> ValueDecoding:
    """Return the decoding, with all keys decoded by one schema; raises UnusableSchema."""
    schema = _make_portable(schema, what := "the schema of keys")
    return decoding._replace(key_one=schema, key_shape=shape_of(schema, what, is_enveloped=False))


def _make_portable(schema: Schema, what: str) -> Schema:
    """Return a schema that tasks can use without Protobuf's compiler.

    Raises SchemaPackageMissing, UnusableSchema.
    """
    require_package(schema)
    if schema.kind is not SchemaKind.PROTOBUF:
        return schema
    from engine.schemas.protobuf import compiled

    return compiled(schema, what)


class _Known:
    """A schema source with the schemas of a decoding, for tasks."""

    def __init__(self, decoding: ValueDecoding) -> None:
        self._decoding = decoding

    def schema(self, schema_id: int) -> Schema:
        """Return a schema by id; raises UnusableSchema or NoSuchSchema."""
        if schema_id in self._decoding.unusable:
            raise UnusableSchema(*self._decoding.unusable[schema_id])
        if schema_id not in self._decoding.schemas:
            raise NoSuchSchema(schema_id, "the source of schemas")
        return self._decoding.schemas[schema_id]


class ValueDecoder:
    """Decodes keys and values of Arrow batches into columns."""

    def __init__(self, decoding: ValueDecoding, columns: tuple[ViewColumn, ...]) -> None:
        """Prepare to decode keys and values for those of `columns` that `decoding` adds."""
        self._columns = columns
        #: Names of the wanted columns that decoding adds.
        self._own = {column.name for column in decoding.columns} & {c.name for c in columns}
        #: Functions that decode a column of keys, and of values.
        self._of_key, self._of_value = (
            _text_decoder(decoding.value_format),
            _text_decoder(decoding.value_format),
        )
        if decoding.value_format == "schema" or decoding.key_one is not None:
            keys = SchemaDecoder(_Known(decoding), decoding.key_one, with_defaults=True)
            if decoding.key_shape is None:
                self._of_key = _text_or(_schema_decoder(keys, JSON))
            else:
                self._of_key = _schema_decoder(keys, decoding.key_shape)
        if decoding.value_format == "schema":
            values = SchemaDecoder(_Known(decoding), decoding.one, with_defaults=True)
            self._of_value = _schema_decoder(values, decoding.shape)

    @property
    def read(self) -> tuple[ViewColumn, ...]:
        """Return the columns of `records` that must be read to get the wanted columns."""
        wanted = {column.name for column in self._columns} - self._own
        wanted |= set(_READ) if self._own else set()
        return tuple(column for column in RECORDS if column.name in wanted)

    def decode_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return an Arrow batch with the decoded columns added and unwanted columns removed.

        Without any decoded column the batch is returned as it is.
        """
        import pyarrow as pa

        if not self._own:
            return batch
        made: dict[str, list[object]] = {KEY: [], VALUE: [], PROBLEM: []}
        # The column of problems reports those of both.
        with_key, with_value = (bool({name, PROBLEM} & set(self._own)) for name in (KEY, VALUE))
        keys, values, controls = (batch.column(name).to_pylist() for name in _READ)
        for key, value, is_control in zip(keys, values, controls, strict=True):
            contents = (key if with_key else None, value if with_value else None)
            key_content, value_content, problem = (
                (None, None, None) if is_control else self._decode_row(*contents)
            )
            made[KEY].append(key_content)
            made[VALUE].append(value_content)
            made[PROBLEM].append(problem)
        arrays = [
            pa.array(made[c.name], arrow_type(c.type)) if c.name in self._own
            else batch.column(c.name)
            for c in self._columns
        ]  # fmt: skip
        fields = [pa.field(c.name, arrow_type(c.type), c.nullable) for c in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _decode_row(
        self, key: bytes | None, value: bytes | None
    ) -> tuple[object, object, str | None]:
        """Decode one key and value; return both, and their problems as one text.

        Each is None if it is not decoded; the text is None without a problem.
        """
        problems = []
        contents: list[object] = [None, None]
        for number, (name, raw, read) in enumerate(
            (("key", key, self._of_key), ("value", value, self._of_value))
        ):
            if raw is None:
                continue
            try:
                contents[number] = read(raw)
            except (EngineError, ValueError) as error:
                problems.append(f"{name}: {error}")
        return contents[0], contents[1], "; ".join(problems) or None


def _text_decoder(value_format: str) -> Callable[[bytes], object]:
    """Return a function that decodes bytes of the format `utf8` or `json` to text.

    It raises ValueError for invalid bytes.
    """
    return (
        (lambda raw: raw.decode())
        if value_format == "utf8"
        else lambda raw: json_text(read_json(raw))
    )


def _text_or(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Return a function that decodes keys: by `read` with a schema id, as UTF-8 without one."""
    return lambda raw: raw.decode() if open_envelope(raw) is None else read(raw)


def _schema_decoder(decoder: SchemaDecoder, shape: Shape) -> Callable[[bytes], object]:
    """Return a function that decodes bytes by their schema, adapted to the column's `shape`.

    It raises ValueError for bytes without a schema.
    """

    def read(raw: bytes) -> object:
        """Return a value adapted to the columns' shape; raises ValueError without a schema."""
        if not decoder.decodes(raw):
            raise ValueError("no schema")
        return fit_to_shape(shape, decoder.value(raw))

    return read
