"""Keys and values in the columns that their schemas give them, in queries and exports."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.analysis.anonymise import WrongAnonymising, parse_anonymised_columns
from engine.analysis.export_task import ExportJob, ExportShape, TaskReport, run_export_task
from engine.analysis.local_query import run_local_query
from engine.analysis.parquet_export import ExportPlan, export_with
from engine.analysis.row_condition import splits_to_read, translate_condition
from engine.analysis.splits import Selection, Split, plan_splits
from engine.analysis.value_decoding import (
    IDS_QUERY,
    ValueDecoding,
    by_one,
    fetch_schema_decoding,
    ids_in,
    views_of,
    with_keys_by_one,
)
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from engine.records.builder import BatchBuilder
from engine.schemas import decoding as decoding_of_schemas
from engine.schemas.decoding import SchemaPackageMissing
from engine.schemas.schema import Schema, SchemaKind
from tests.unit.analysis.schema_logs import (
    PROTO,
    SCHEMAS,
    SchemaTable,
    write_fields_log,
    write_keyed_log,
    write_log,
)
from tests.unit.log.logs import TIME_MS, name_of


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> list[Split]:
    folder = write_log(tmp_path_factory.mktemp("logs"))
    return plan_splits(RealFiles(), [str(folder)], Selection())


@pytest.fixture(scope="module")
def decoding(splits: list[Split]) -> ValueDecoding:
    rows = run_local_query(IDS_QUERY, splits, control=False, max_rows=0).rows
    of_values, of_keys = ids_in(rows)
    assert ({1, 2, 3, 9}, {1}) == (of_values, of_keys)
    return fetch_schema_decoding(SchemaTable(), of_values, of_keys)


def _ask(query: str, splits: list[Split], decoding: ValueDecoding) -> list[dict[str, Any]]:
    return run_local_query(query, splits, control=False, max_rows=0, decoding=decoding).rows


def test_values_of_several_schemas_have_one_struct(
    splits: list[Split], decoding: ValueDecoding
) -> None:
    rows = _ask("select offset, decoded_value v, decoding_problem p from records", splits, decoding)
    by_offset = {row["offset"]: row for row in rows}
    assert {"id": 7, "name": "Ann", "tags": ["a"], "user": {"age": 41}} == {
        name: value for name, value in by_offset[0]["v"].items() if value is not None
    }
    assert (8, 12) == (by_offset[1]["v"]["id"], by_offset[1]["v"]["total"])
    # Protobuf leaves out what is zero, and writes 64 bits as text.
    assert (0, 1 << 40) == (by_offset[2]["v"]["id"], by_offset[2]["v"]["total"])
    assert all(by_offset[n]["p"] is None for n in range(3))


def test_what_is_not_of_its_schema_is_null_and_says_why(
    splits: list[Split], decoding: ValueDecoding
) -> None:
    query = "select offset, decoding_problem p from records where decoded_value is null"
    problems = {row["offset"]: row["p"] for row in _ask(query, splits, decoding)}
    assert {3, 4, 5, 6, 7} == problems.keys()
    assert "no schema 9" in problems[3]
    assert "value: schema 1: not of this Avro schema" in problems[4]
    assert "value: no schema" == problems[5]
    assert problems[6] is None  # a tombstone


def test_fields_are_columns_of_a_query(splits: list[Split], decoding: ValueDecoding) -> None:
    query = (
        "select decoded_value.user.age a, r.decoded_value.name n, decoded_key k from records r"
        " where decoded_value.id = 7"
    )
    (row,) = _ask(query, splits, decoding)
    assert (41, "Ann", 1) == (row["a"], row["n"], json.loads(row["k"])["id"])
    (row,) = _ask("select sum(decoded_value.id) s from records", splits, decoding)
    assert 15 == row["s"]


@pytest.mark.parametrize(("way", "good"), [("utf8", {5, 7}), ("json", {7})])
def test_texts_and_json_need_no_schema(way: str, good: set[int], splits: list[Split]) -> None:
    rows = _ask("select * from records", splits, ValueDecoding(way))
    assert good <= {row["offset"] for row in rows if row["decoded_value"] is not None}
    for row in rows:
        if row["value"] is not None and row["decoded_value"] is None:
            assert "value: " in row["decoding_problem"]
    (found,) = [row for row in rows if row["offset"] == 7]
    assert {"x": 1} == json.loads(found["decoded_value"])


def test_one_schema_is_for_all_values(splits: list[Split]) -> None:
    schema = Schema(SchemaKind.JSON, '{"type": "object", "properties": {"x": {"type": "number"}}}')
    rows = _ask("select decoded_value.x from records where offset = 7", splits, by_one(schema))
    assert [{"x": 1.0}] == rows


def test_describe_has_the_columns_of_values(splits: list[Split], decoding: ValueDecoding) -> None:
    rows = _ask("describe records", splits, decoding)
    types = {row["col_name"]: row["data_type"] for row in rows}
    assert "struct<`id`:bigint," in types["decoded_value"]


def test_keys_are_structs_if_wanted(splits: list[Split], tmp_path: Path) -> None:
    decoding = fetch_schema_decoding(SchemaTable(), {1, 2, 3, 9}, {1, 9}, shapes_keys=True)
    query = (
        "select offset, decoded_key.id i, decoded_key.user.age a, decoding_problem p,"
        " decoded_value.id v from records where offset in (0, 7) order by offset"
    )
    first, last = _ask(query, splits, decoding)
    assert (1, None, None, 7) == (first["i"], first["a"], first["p"], first["v"])
    # A key without a schema is no struct.
    assert (None, "key: no schema; value: no schema") == (last["i"], last["p"])
    columns = views_of(decoding)["records"]
    with pytest.raises(WrongAnonymising, match="anonymise key as well"):
        parse_anonymised_columns(["decoded_key.name=hash"], columns)
    entries = parse_anonymised_columns(["decoded_key.id=drop", "key=drop"], columns)
    rows = _export(tmp_path / "out", splits, ExportShape(anonymised=entries, decoding=decoding))
    assert [None, []] == [rows[0]["decoded_key"][name] for name in ("id", "tags")]


@pytest.mark.parametrize(
    ("condition", "offsets"),
    [
        ("decoded_value.offset = 101", [1]),
        ("r.decoded_value.partition >= 53", [3]),
        ("decoded_value.topic in ('x1', 'x2')", [1, 2]),
        ("decoded_value.topic = 'x1' or decoded_value.topic = 'x3'", [1, 3]),
        ("decoded_value.timestampMs = 2 and offset < 3", [2]),
        ("if(decoded_value.offset < 103, decoded_value.topic = 'x2', r.offset = 3)", [2, 3]),
    ],
)
def test_fields_with_the_names_of_columns_narrow_nothing(
    condition: str, offsets: list[int], tmp_path: Path
) -> None:
    decoding = write_fields_log(tmp_path)
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    query = f"select offset, timestampMs, topic from records r where {condition} order by offset"
    rows = _ask(query, splits, decoding)
    assert offsets == [row["offset"] for row in rows]
    assert {"orders"} == {row["topic"] for row in rows}
    assert offsets == [row["timestampMs"] - TIME_MS for row in rows]
    where = translate_condition(condition.replace("r.", ""), views_of(decoding))
    assert splits == splits_to_read(splits, where, views_of(decoding))


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> list[Split]:
    folder = write_keyed_log(tmp_path_factory.mktemp("keyed"))
    return plan_splits(RealFiles(), [str(folder)], Selection())


def test_keys_of_several_schemas_have_one_struct(keyed: list[Split]) -> None:
    rows = run_local_query(IDS_QUERY, keyed, control=False, max_rows=0).rows
    assert (set(), {1, 2, 3, 9}) == ids_in(rows)
    decoding = fetch_schema_decoding(SchemaTable(), *ids_in(rows), shapes_keys=True)
    query = "select offset, decoded_key k, decoding_problem p from records order by offset"
    found = _ask(query, keyed, decoding)
    assert {"id": 7, "name": "Ann", "tags": ["a"], "user": {"age": 41}} == {
        name: value for name, value in found[0]["k"].items() if value is not None
    }
    assert [(8, 12), (0, 1 << 40)] == [(r["k"]["id"], r["k"]["total"]) for r in found[1:3]]
    assert [None] * 5 == [row["k"] for row in found[3:]]
    assert "key: the source of schemas has no schema 9" in found[3]["p"]
    assert "key: schema 1: not of this Avro schema" in found[4]["p"]
    assert "key: no schema" in found[5]["p"]
    # A record without a key lacks no schema of one.
    assert "value: no schema" == found[6]["p"]
    by_field = _ask("select offset from records where decoded_key.total > 100", keyed, decoding)
    assert [{"offset": 2}] == by_field


@pytest.mark.parametrize(
    ("kind", "text", "key", "said"),
    [
        (SchemaKind.AVRO, '"long"', b"\x0e", 7),
        (SchemaKind.JSON, '{"type": "string"}', b'"seven"', "seven"),
        (SchemaKind.PROTOBUF, PROTO, b"\0\x08\x07", {"id": 7, "total": 0}),
    ],
)
def test_keys_that_are_one_value_are_no_structs(
    kind: SchemaKind, text: str, key: bytes, said: object, tmp_path: Path
) -> None:
    for name, keys in (("enveloped-0", b"\0\0\0\0\x05" + key), ("bare-0", key.lstrip(b"\0"))):
        builder = BatchBuilder()
        builder.append(TIME_MS, keys, b"text")
        (tmp_path / name).mkdir()
        (tmp_path / name / name_of(0)).write_bytes(builder.build())
    schema = Schema(kind, text)
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    for topic, decoding in (
        ("enveloped", fetch_schema_decoding(OneSchema(schema), set(), {5}, shapes_keys=True)),
        ("bare", with_keys_by_one(ValueDecoding("utf8"), schema)),
    ):
        query = f"select decoded_key k, decoded_value v from records where topic = '{topic}'"
        (row,) = _ask(query, splits, decoding)
        assert said == row["k"]
    assert "text" == row["v"]


class OneSchema:
    """A source of one schema, for all ids."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def schema(self, schema_id: int) -> Schema:
        return self._schema


def test_tasks_need_no_compiler_of_protobuf(
    keyed: list[Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = OneSchema(SCHEMAS[3])
    wrong = OneSchema(Schema(SchemaKind.PROTOBUF, "nonsense"))
    by_ids = fetch_schema_decoding(source, set(), {3}, shapes_keys=True)
    unusable = fetch_schema_decoding(wrong, set(), {3}, shapes_keys=True)
    one = with_keys_by_one(ValueDecoding("utf8"), SCHEMAS[3])
    of_values = by_one(SCHEMAS[3])
    # As in a Python that has what Spark was sent.
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    query = "select decoded_key k, decoding_problem p from records where offset = 2"
    for decoding in map(pickle.loads, map(pickle.dumps, (by_ids, one, of_values, unusable))):
        (row,) = _ask(query, keyed, decoding)
        assert "grpc_tools" not in row["p"]
    assert "key: schema 3: it is no protobuf schema: " in row["p"]
    (row,) = _ask(query, keyed, by_ids)
    assert {"id": 0, "total": 1 << 40} == row["k"]


def test_a_package_that_is_not_installed_is_named_before_logs_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decoding_of_schemas, "find_spec", lambda name: None)
    for schema in (SCHEMAS[1], SCHEMAS[3]):
        with pytest.raises(SchemaPackageMissing):
            fetch_schema_decoding(OneSchema(schema), set(), {3})
        with pytest.raises(SchemaPackageMissing):
            with_keys_by_one(ValueDecoding("utf8"), schema)


def _export(out: Path, splits: list[Split], shape: ExportShape) -> list[dict[str, Any]]:
    names = tuple(column.name for column in shape.records)
    plan = ExportPlan(splits, str(out), names, shape=shape)

    def run(job: ExportJob) -> list[TaskReport]:
        return [run_export_task(job, splits, "part-00000")]

    export_with(run, RealHeldFiles(), plan, "job")
    rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    return rows


def test_exports_have_fields_and_conditions_on_them(
    splits: list[Split], decoding: ValueDecoding, tmp_path: Path
) -> None:
    condition = translate_condition("decoded_value.user.age > 40", views_of(decoding))
    rows = _export(tmp_path / "out", splits, ExportShape(condition, decoding=decoding))
    assert ["Ann"] == [row["decoded_value"]["name"] for row in rows]


def test_fields_are_anonymised_by_name(
    splits: list[Split], decoding: ValueDecoding, tmp_path: Path
) -> None:
    columns = views_of(decoding)["records"]
    texts = ["decoded_value.name=hash", "decoded_value.user.age=drop", "value=drop"]
    shape = ExportShape(
        anonymised=parse_anonymised_columns(texts, columns), decoding=decoding, hash_key=b"secret"
    )
    first = _export(tmp_path / "out", splits, shape)[0]
    assert {"value", "value_hash"}.isdisjoint(first)
    assert (64, None) == (
        len(first["decoded_value"]["name"]), first["decoded_value"]["user"]["age"],
    )  # fmt: skip
    other = _export(tmp_path / "two", splits, shape._replace(hash_key=b"other"))[0]
    assert first["decoded_value"]["name"] != other["decoded_value"]["name"]
    assert b"secret" not in (tmp_path / "out" / "_kctl_manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["decoded_value.name=hash"], "anonymise value as well"),
        (["decoded_value.nosuch=drop", "value=drop"], "no field 'nosuch'"),
        (["decoded_value.id=hash", "value=drop"], "only drop fits"),
        (["decoded_key=mask"], "anonymise key as well"),
    ],
)
def test_fields_that_would_leak_are_refused(
    texts: list[str], reason: str, decoding: ValueDecoding
) -> None:
    with pytest.raises(WrongAnonymising, match=reason):
        parse_anonymised_columns(texts, views_of(decoding)["records"])


def test_an_anonymised_value_takes_its_decoded_columns_along(
    splits: list[Split], decoding: ValueDecoding, tmp_path: Path
) -> None:
    shape = ExportShape(anonymised=parse_anonymised_columns(["value=mask"]), decoding=decoding)
    rows = _export(tmp_path / "out", splits, shape)
    assert {None} == {row["decoded_value"] for row in rows}
    assert {None} == {row["decoding_problem"] for row in rows}
