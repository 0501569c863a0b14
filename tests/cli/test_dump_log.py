"""`kctl dump-log` beyond Kafka's tool: rows, bounds, filters, decoders, exit codes."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from engine.records.builder import BatchBuilder
from tests.golden_cases import case_dir, truth_files, truth_rows
from tests.golden_dump import run_kctl

CLICKS = "data/clicks-0"


def _dump(*args: str, folder: Path | None = None) -> tuple[int, str, str]:
    code, out, err = run_kctl(["dump-log", *args], folder or case_dir("plain"))
    return code, out.decode(), err


def _rows(*args: str, folder: Path | None = None) -> list[dict[str, Any]]:
    code, out, err = _dump(*args, "-o", "ndjson", folder=folder)
    assert (0, "") == (code, err)
    return [json.loads(line) for line in out.split("\n")[:-1]]


def _truth(topic: str, partition: int = 0) -> list[dict[str, Any]]:
    path = next(p for p in truth_files("plain") if p.name.startswith(f"{topic}."))
    return [row for row in truth_rows(path) if row["partition"] == partition]


def test_rows_of_a_partition_are_the_clients_records() -> None:
    rows = _rows(CLICKS)
    got = [(r["offset"], r["timestamp_ms"], r["key_base64"], r["value_base64"]) for r in rows]
    assert [(t["offset"], t["timestamp"], t["key"], t["value"]) for t in _truth("clicks")] == got


def test_text_forms_lose_nothing() -> None:
    for row in _rows(CLICKS):
        for field in ("key", "value"):
            text, encoding, packed = (row[f"{field}{e}"] for e in ("", "_encoding", "_base64"))
            if encoding is None:
                assert (None, None) == (text, packed)
                continue
            raw = base64.b64decode(packed)
            if encoding == "escaped":
                assert raw == _unescaped(text)
            else:
                assert raw == text.encode()


def _unescaped(text: str) -> bytes:
    out, at = b"", 0
    while at < len(text):
        if text[at] != "\\":
            out += text[at].encode()
            at += 1
        elif text[at + 1] == "\\":
            out += b"\\"
            at += 2
        else:
            out += bytes([int(text[at + 2 : at + 4], 16)])
            at += 4
    return out


def test_json_and_ndjson_hold_the_same_rows() -> None:
    _, out, _ = _dump(CLICKS, "-o", "json")
    assert _rows(CLICKS) == json.loads(out)


def test_csv_has_a_column_for_each_key() -> None:
    _, out, _ = _dump(CLICKS, "-o", "csv")
    table = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [str(row["offset"]) for row in _rows(CLICKS)] == [row["offset"] for row in table]


@pytest.mark.parametrize(("first", "end"), [(0, 1), (24, 25), (100, 300), (364, 400), (399, 999)])
def test_offset_bounds_are_first_inclusive_end_exclusive(first: int, end: int) -> None:
    rows = _rows(CLICKS, "--from-offset", str(first), "--to-offset", str(end))
    assert [r["offset"] for r in rows] == list(range(first, min(end, 400)))


def test_bounds_find_the_same_without_indexes(tmp_path: Path) -> None:
    folder = tmp_path / "clicks-0"
    folder.mkdir()
    for log in (case_dir("plain") / CLICKS).glob("*.log"):
        (folder / log.name).write_bytes(log.read_bytes())
    args = ("--from-offset", "130", "--from-timestamp", "1767225650000", "--to-offset", "380")
    with_indexes = [r["offset"] for r in _rows(CLICKS, *args)]
    assert with_indexes == [r["offset"] for r in _rows("clicks-0", *args, folder=tmp_path)]
    assert with_indexes


def test_time_bounds_select_by_record_time() -> None:
    start, end = 1767225650000, 1767225700000
    rows = _rows(CLICKS, "--from-timestamp", str(start), "--to-timestamp", "2026-01-01T00:01:40Z")
    wanted = [t["offset"] for t in _truth("clicks") if start <= t["timestamp"] < end]
    assert wanted == [r["offset"] for r in rows]


def test_keys_and_values_are_filtered_by_bytes() -> None:
    truth = _truth("clicks")
    by_key = _rows(CLICKS, "--key", "quarry-1")
    assert [t["offset"] for t in truth if t["key"] == "cXVhcnJ5LTE="] == [
        r["offset"] for r in by_key
    ]
    by_value = _rows(CLICKS, "--value-regex", "zenith|jetty")
    wanted = [
        t["offset"]
        for t in truth
        if t["value"] and any(w in base64.b64decode(t["value"]) for w in (b"zenith", b"jetty"))
    ]
    assert wanted == [r["offset"] for r in by_value]


def test_headers_are_filtered_by_name() -> None:
    wanted = [t["offset"] for t in _truth("clicks") if any(n == "dup" for n, _ in t["headers"])]
    assert wanted == [r["offset"] for r in _rows(CLICKS, "--header", "dup")]


def test_filters_work_on_kafkas_lines_too() -> None:
    code, out, _ = _dump(CLICKS, "--key", "quarry-1", "--print-data-log")
    lines = [line for line in out.splitlines() if line.startswith("| ")]
    assert 0 == code
    assert lines
    assert all(" key: quarry-1 payload: " in line for line in lines)


def test_max_records_counts_over_all_files() -> None:
    assert list(range(130)) == [r["offset"] for r in _rows(CLICKS, "--max-records", "130")]


def test_headers_only_rows_are_batches_with_their_crc_check() -> None:
    rows = _rows("data/clicks-0/00000000000000000000.log", "--headers-only")
    assert [0, 1831] == [row["position"] for row in rows[:2]]
    assert all(row["is_crc_valid"] for row in rows)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("hex", "6b6579"),
        ("string", "key"),
        ("json", "key"),
        ("bytes", "[B@"),
    ],
)
def test_decoders_have_short_names(name: str, shown: str, tmp_path: Path) -> None:
    _write(tmp_path, b"key", b"v")
    _, out, _ = _dump(
        "00000000000000000000.log", "--key-decoder-class", name, "--print-data-log", folder=tmp_path
    )
    assert f" key: {shown}" in out


def _write(folder: Path, key: bytes, value: bytes) -> None:
    builder = BatchBuilder()
    builder.append(1_700_000_000_000, key, value)
    (folder / "00000000000000000000.log").write_bytes(builder.build())


def test_a_schema_envelope_shows_its_id(tmp_path: Path) -> None:
    _write(tmp_path, b"k", b"\x00\x00\x00\x00\x2aabc")
    _, out, _ = _dump(
        "00000000000000000000.log", "--value-decoder-class", "schema-id", folder=tmp_path
    )
    assert "payload: schema 42, 3 bytes: 616263" in out


def test_a_value_that_cannot_be_decoded_is_shown_and_the_next_record_follows(
    tmp_path: Path,
) -> None:
    builder = BatchBuilder()
    for value in (b"short", b"\x00\x00\x00\x00\x2aabc"):
        builder.append(1_700_000_000_000, None, value)
    (tmp_path / "00000000000000000000.log").write_bytes(builder.build())
    words = ("00000000000000000000.log", "--value-decoder-class", "schema-id")
    code, out, _ = _dump(*words, folder=tmp_path)
    reason = "undecodable: the first byte is 115, not the 0 of a schema envelope: 73686f7274"
    assert (1, True) == (code, f"payload: {reason}" in out)
    assert "payload: schema 42, 3 bytes: 616263" in out
    code, out, _ = _dump(*words, "-o", "json", folder=tmp_path)
    assert [reason, "schema 42, 3 bytes: 616263"] == [
        row["decoded_value"] for row in json.loads(out)
    ]
    assert 1 == code


def test_internal_topics_are_decoded_into_rows() -> None:
    segment = "data/__consumer_offsets-0/00000000000000000000.log"
    rows = _rows(segment, "--offsets-decoder", folder=case_dir("groups"))
    assert {"type", "data"} == set(rows[0]["decoded_key"])


def test_check_turns_findings_into_exit_code_4() -> None:
    folder = case_dir("corrupt")
    segment = "v2/body-bit/00000000000000000125.log"
    assert 0 == _dump(segment, folder=folder)[0]
    assert 4 == _dump(segment, "--check", folder=folder)[0]
    assert 4 == _dump(segment, "--check", "--headers-only", "-o", "json", folder=folder)[0]
    assert 0 == _dump(CLICKS, "--check")[0]


@pytest.mark.parametrize(
    "args",
    [
        ["-o", "xml", CLICKS],
        ["--kafka-version", "2.0", CLICKS],
        ["--key-regex", "(", CLICKS],
        ["--from-timestamp", "yesterday-ish", CLICKS],
        ["data"],
        ["--files", "data/clicks-0/none.log"],
    ],
)
def test_wrong_input_is_a_clear_error(args: list[str]) -> None:
    code, _, err = _dump(*args)
    assert code in (1, 2)
    assert err.startswith("error: ")
    assert "Traceback" not in err


def test_a_dump_of_a_file_leaves_no_trace(tmp_path: Path) -> None:
    _write(tmp_path, b"k", b"v")
    _dump("--files", "00000000000000000000.index", folder=tmp_path)
    assert ["00000000000000000000.log"] == [p.name for p in tmp_path.iterdir()]


def test_help_goes_to_stdout_when_asked_shortly() -> None:
    code, out, _ = _dump("-h")
    assert 0 == code
    assert out.startswith("Usage: kctl dump-log")


def test_quick_reading_knows_the_same_options_as_typer() -> None:
    from typer.main import get_command

    from kctl.commands.dump_log.app import parse_simple_options
    from kctl.commands.dump_log.options import app

    command = get_command(app)
    defaults = {p.name: p.default for p in command.params if p.name != "paths"}
    quick = parse_simple_options([])
    assert quick is not None
    assert {**defaults, "paths": []} == quick


@pytest.mark.parametrize(
    "args",
    [["--no-such"], ["--files"], ["--files", "-x"], ["--files", "a", "--files", "b"], ["-x"],
     ["--max-records", "x"], ["--print_data_log"], ["--files=a"]],
)  # fmt: skip
def test_quick_reading_leaves_what_it_does_not_know(args: list[str]) -> None:
    from kctl.commands.dump_log.app import parse_simple_options

    assert parse_simple_options(args) is None


@pytest.mark.parametrize("count", [0, 1, 130])
def test_max_records_counts_the_same_in_lines_and_rows(count: int) -> None:
    args = ("--max-records", str(count))
    _, out, _ = _dump(CLICKS, *args)
    assert count == sum(line.startswith("| ") for line in out.splitlines())
    assert count == len(_rows(CLICKS, *args))


@pytest.mark.parametrize("count", [0, 1, 14])
def test_max_records_counts_batches_where_only_headers_are_shown(count: int) -> None:
    args = ("--max-records", str(count), "--headers-only")
    _, out, _ = _dump(CLICKS, *args)
    assert count == sum(line.startswith("baseOffset") for line in out.splitlines())
    assert count == len(_rows(CLICKS, *args))


def test_a_missing_file_is_no_such_file() -> None:
    for args in (["data/none.log"], ["--files", "data/none.log"], ["data/none", "-o", "json"]):
        code, _, err = _dump(*args)
        assert code == 1
        assert "no such file or directory" in err


def test_a_folder_of_partitions_is_listed() -> None:
    code, out, err = _dump("data")
    assert (code, out) == (2, "")
    assert "data: holds 7 partitions, expected one: bulk-0, clicks-0" in err
    assert "hint: name one, such as data/bulk-0" in err


def test_times_are_those_of_every_command() -> None:
    assert [] == _rows(CLICKS, "--from-timestamp", "now")
    rows = _rows(CLICKS, "--from-timestamp", "-5000w", "--to-timestamp", "now")
    assert len(_truth("clicks")) == len(rows)
