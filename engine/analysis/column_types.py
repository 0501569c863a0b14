"""Names of column types in Arrow, Spark and DuckDB.

A type is a word, or the shape of values that schemas decode: structs, lists and maps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.schemas.shape import Shape, ShapeKind

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.analysis.view_column import ColumnType

_SPARK_TYPES = {"long": "bigint", "headers": "array<struct<key:string,value:binary>>"}
_DUCKDB_TYPES = {
    "binary": "BLOB", "string": "VARCHAR", "int": "INTEGER", "long": "BIGINT",
    "boolean": "BOOLEAN", "timestamp": "TIMESTAMP", "double": "DOUBLE", "json": "VARCHAR",
    "headers": 'STRUCT("key" VARCHAR, "value" BLOB)[]',
}  # fmt: skip
#: Spark's names of Arrow's types, for the types whose names differ.
_OF_ARROW = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "bool": "boolean",
    "date32[day]": "date", "null": "void", "large_string": "string", "large_binary": "binary",
}  # fmt: skip


def type_name(kind: ColumnType) -> str:
    """Return a column type's name for documentation: the word, or Spark's name of a shape."""
    return kind if isinstance(kind, str) else spark_type(kind)


def spark_type(kind: ColumnType) -> str:
    """Return Spark's name of a column type, such as `array<string>`."""
    if isinstance(kind, str):
        return _SPARK_TYPES.get(kind, kind)
    if kind.kind is ShapeKind.STRUCT:
        fields = (f"`{name.replace('`', '``')}`:{spark_type(of)}" for name, of in kind.fields)
        return f"struct<{','.join(fields)}>"
    if kind.item is not None:
        item = spark_type(kind.item)
        return f"array<{item}>" if kind.kind is ShapeKind.LIST else f"map<string,{item}>"
    return "string" if kind.kind is ShapeKind.JSON else spark_type(kind.kind.value)


def duckdb_type(kind: ColumnType) -> str:
    """Return DuckDB's name of a column type, such as `VARCHAR[]`."""
    if isinstance(kind, str):
        return _DUCKDB_TYPES[kind]
    if kind.kind is ShapeKind.STRUCT:
        fields = (f'"{name.replace(chr(34), chr(34) * 2)}" {duckdb_type(of)}'
                  for name, of in kind.fields)  # fmt: skip
        return f"STRUCT({', '.join(fields)})"
    if kind.item is not None:
        item = duckdb_type(kind.item)
        return f"{item}[]" if kind.kind is ShapeKind.LIST else f"MAP(VARCHAR, {item})"
    return duckdb_type(kind.kind.value)


def arrow_type(kind: ColumnType, zone: str | None = "UTC") -> pa.DataType:
    """Return Arrow's type of a column type.

    Timestamps have the time zone `zone`, with None no time zone.
    """
    import pyarrow as pa

    if isinstance(kind, str):
        header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        types = {
            "binary": pa.binary(),
            "string": pa.string(),
            "int": pa.int32(),
            "long": pa.int64(),
            "double": pa.float64(),
            "boolean": pa.bool_(),
            "timestamp": pa.timestamp("us", tz=zone),
            "headers": pa.list_(pa.field("element", header)),
        }
        return types[kind]
    return _shape_type(kind)


def _shape_type(shape: Shape) -> pa.DataType:
    """Return the Arrow type of a shape; keys of maps are strings, JSON is a string."""
    import pyarrow as pa

    if shape.kind is ShapeKind.STRUCT:
        return pa.struct([pa.field(name, _shape_type(of)) for name, of in shape.fields])
    if shape.item is not None:
        item = _shape_type(shape.item)
        if shape.kind is ShapeKind.LIST:
            return pa.list_(pa.field("element", item))
        return pa.map_(pa.string(), item)
    return arrow_type("string" if shape.kind is ShapeKind.JSON else shape.kind.value)


def spark_type_of(kind: pa.DataType) -> str:
    """Return Spark's name of the Arrow type of a result column."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{spark_type_of(f.type)}' for f in kind)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_type_of(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type_of(kind.key_type)},{spark_type_of(kind.item_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _OF_ARROW.get(str(kind), str(kind))
