"""`spark-sql` and `spark-report` as commands: where a query comes from, and what they write."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kctl.__main__ import main
from tests.golden_cases import case_dir
from tests.unit.analysis.schema_logs import AVRO, write_keyed_log, write_log
from tests.unit.log.logs import name_of
from tests.unit.log.writing import sent

LOGS = str(case_dir("plain") / "data")


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_query_can_come_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "query.sql"
    path.write_text("-- how many\nselect count(*) n from records;\n")
    code, out, _ = _run(capsys, "spark-sql", "-f", str(path), LOGS, "-o", "json")
    assert (0, [{"n": 1186}]) == (code, json.loads(out))


@pytest.mark.parametrize(("output", "mark"), [("markdown", "|:----|"), ("html", "<table>")])
def test_rows_can_be_a_table_for_a_ticket(
    capsys: pytest.CaptureFixture[str], output: str, mark: str
) -> None:
    code, out, _ = _run(capsys, "spark-sql", "select 1 n from records", LOGS, "-o", output)
    assert 0 == code
    assert mark in out


def test_a_query_without_a_directory_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = _run(capsys, "spark-sql", "select 1")
    assert 2 == code
    assert "at least one log directory" in err


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.outside: list[str] = []
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        self.outside += [v for k, v in attrs if k in ("src", "href") and v and v[0] != "#"]

    def handle_data(self, data: str) -> None:
        if self._tag == "h2" and data.strip():
            self.headings.append(data.strip())


def test_reports_make_a_page_that_needs_nothing_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from engine.analysis.reports import REPORTS

    path = tmp_path / "page.html"
    code, out, _ = _run(capsys, "spark-report", "all", LOGS, "--html", str(path))
    assert (0, "") == (code, out)
    page = _Page()
    page.feed(path.read_text())
    assert [report.title for report in REPORTS] == page.headings
    assert [] == page.outside
    assert "<script" not in path.read_text()


def test_what_records_hold_is_no_markup_of_the_page(tmp_path: Path) -> None:
    from engine.analysis.problem import Problem
    from engine.analysis.reports import report_named
    from engine.analysis.statements import QueryResult
    from kctl.commands.spark_report.page import report_page

    result = QueryResult(["key", "bytes"], [{"key": b"<script>x</script>", "bytes": 3}], False)
    problem = Problem("t", 0, "<b>", 0, 0, "bad_crc", "<i>")
    page = report_page([(report_named("keys"), result)], [problem], ["<u>"], "<s>")
    assert not any(tag in page for tag in ("<script>", "<b>", "<i>", "<u>", "<s>"))


def test_a_page_is_never_written_into_the_logs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = _run(capsys, "spark-report", "topics", LOGS, "--html", f"{LOGS}/page.html")
    assert 2 == code
    assert "lies inside" in err


def test_values_are_read_by_a_folder_of_schemas(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "1.avsc").write_text(AVRO)
    logs = str(write_log(tmp_path / "logs"))
    query = "select decoded_value.name n from records where decoded_value.user.age > 40"
    schemas = ("--schemas", str(tmp_path / "schemas"))
    code, out, _ = _run(capsys, "spark-sql", query, logs, *schemas, "-o", "json")
    assert (0, [{"n": "Ann"}]) == (code, json.loads(out))
    query = "select decoded_key.id i, decoded_key.user u from records where offset = 0"
    code, out, _ = _run(
        capsys, "spark-sql", query, logs, *schemas, "--keys", "schema", "-o", "json"
    )
    assert (0, [{"i": 1, "u": None}]) == (code, json.loads(out))


def test_keys_are_read_by_a_file_of_their_schema(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    logs = str(write_keyed_log(tmp_path / "logs"))
    key_schema, value_schema = tmp_path / "key.json", tmp_path / "value.json"
    key_schema.write_text('{"type": "object", "properties": {"x": {"type": "integer"}}}')
    value_schema.write_text(key_schema.read_text())
    words = ("--key-schema", str(key_schema), "-o", "json")
    query = "select decoded_key.x kx, {} vx from records where offset = 7"
    for way, field in (
        (("--schemas", str(value_schema)), "decoded_value.x"),
        (("--values", "json"), "cast(get_json_object(decoded_value, '$.x') as int)"),
    ):
        code, out, err = _run(capsys, "spark-sql", query.format(field), logs, *way, *words)
        assert (0, [{"kx": 1, "vx": 7}]) == (code, json.loads(out)), err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--values", "xml"), "expected one of raw, utf8, json, schema"),
        (("--values", "json", "--schemas", "x"), "are for --values schema"),
        (("--values", "schema"), "sets where schemas are"),
        (("--keys", "schema"), "sets where schemas are"),
        (("--keys", "xml"), "--keys xml: expected one of text, schema"),
        (("--keys", "schema", "--values", "json"), "it goes with --values schema"),
        (("--keys", "schema", "--schemas", "x.avsc"), "--key-schema FILE is for keys"),
        (("--key-schema", "x.avsc"), "--values utf8 needs none"),
        (("--key-schema", "x.avsc", "--values", "raw"), "not with --keys text or --values raw"),
        (
            ("--key-schema", "x.avsc", "--values", "utf8", "--keys", "text"),
            "--key-schema x.avsc: it makes",
        ),
    ],
)
def test_a_wrong_way_to_read_values_is_refused(
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KCTL_SCHEMA_REGISTRY", raising=False)
    code, _, err = _run(capsys, "spark-sql", "select 1 n", LOGS, *words)
    assert 2 == code
    assert reason in err


def _damaged(home: Path) -> str:
    """Write a log of 50 records with a batch of ten whose bytes are wrong, one cut off."""
    content = bytearray()
    for base_offset in range(0, 50, 10):
        batch = bytearray(sent(10))
        batch[:8] = base_offset.to_bytes(8, "big")
        if base_offset == 10:
            batch[-1] ^= 1
        content += batch
    (home / "t-0").mkdir()
    (home / "t-0" / name_of(0)).write_bytes(content[:-5])
    return str(home)


_TOLD = (
    "1 damaged batch (251 bytes), 10 offsets missing, 1 unfinished last write (246 bytes) in t-0"
)


@pytest.mark.parametrize("way", ["sql", "report", "shell"])
def test_damage_that_was_passed_over_is_told_beside_the_rows(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = _damaged(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("select count(value) n from records"))
    words = {
        "sql": ("spark-sql", "select count(value) n from records", logs),
        "report": ("spark-report", "sizes", logs),
        "shell": ("spark-shell", logs),
    }[way]
    code, out, err = _run(capsys, *words, "-o", "json")
    (row,) = json.loads(out)
    assert (0, 30) == (code, row["n" if way != "report" else "records"])
    assert [
        f"warning: the logs that were read have {_TOLD}",
        "hint: `kctl logs verify` shows each place; rows with `not crcValid` of the view batches"
        " are whole batches whose bytes are wrong",
    ] == err.splitlines()
    code, out, err = _run(capsys, *words, "-o", "json", "--strict")
    if way == "shell":
        monkeypatch.setattr("sys.stdin", io.StringIO("select count(value) n from records"))
        code, out, err = _run(capsys, *words, "-o", "json", "--strict")
    assert (4 if way != "shell" else 1, "") == (code, out)
    assert err.startswith("error: 2 problems with the data, the first: ")


def test_a_count_by_headers_tells_what_headers_tell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    logs = _damaged(tmp_path)
    path = tmp_path / "t-0" / name_of(0)
    path.write_bytes(path.read_bytes()[:-246])
    count = ("spark-sql", "select count(*) n from records", logs, "-o", "json")
    assert (0, [{"n": 40}], "") == _loaded(_run(capsys, *count))
    code, out, err = _run(capsys, *count, "--strict")
    assert (4, "") == (code, out)
    assert "the stored CRC is" in err
    content = path.read_bytes()
    path.write_bytes(content[:251] + content[502:])
    code, rows, err = _loaded(_run(capsys, *count))
    assert (0, [{"n": 30}]) == (code, rows)
    assert "warning: the logs that were read have 10 offsets missing in t-0\n" in err


def _loaded(done: tuple[int, str, str]) -> tuple[int, object, str]:
    return done[0], json.loads(done[1]), done[2]


def test_a_page_begins_with_the_damage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    logs, page = _damaged(tmp_path / "logs"), tmp_path / "page.html"
    code, out, err = _run(capsys, "spark-report", "all", logs, "--html", str(page))
    assert (0, "", 1) == (code, out, err.count("warning: "))
    assert page.read_text().index(_TOLD) < page.read_text().index("<h2")
    page.unlink()
    code, _, _ = _run(capsys, "spark-report", "all", logs, "--html", str(page), "--strict")
    assert (4, False) == (code, page.exists())


def test_an_unfinished_last_write_is_no_damage(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / name_of(0)).write_bytes(sent(10)[:-1])
    query = ("spark-sql", "select count(value) n from records", str(tmp_path), "-o", "csv")
    for words in ((), ("--strict",)):
        code, out, err = _run(capsys, *query, *words)
        assert (0, "n\n0\n") == (code, out)
        assert (
            "note: the logs that were read have 1 unfinished last write (250 bytes) in t-0\n" == err
        )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("spark-report", "topics", LOGS, "--html", "{}/none/page.html"), "No such file"),
        (("spark-report", "topics", LOGS, "--html", "{}/file/page.html"), "Not a directory"),
        (("spark-report", "topics", LOGS, "--html", "{}"), "it is a directory"),
        (("spark-export", LOGS, "--out", "{}/file/out"), "Not a directory"),
        (("spark-export", LOGS, "--out", "/proc/none/out"), "No such file"),
        (("spark-export", LOGS, "--out", "{}/link"), "No such file"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("kctl.spark_input.Inputs.plan", start)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("/proc/none/out")
    code, out, err = _run(capsys, *(word.format(tmp_path) for word in words))
    assert (1, "") == (code, out)
    assert "cannot be written: " in err
    assert reason in err
    assert ["file", "link"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("spark-report", "al", LOGS), "no report 'al'; most like it: all"),
        (("spark-report", "all", LOGS, "-o", "csv"), "-o csv is of one report; all of them go"),
        (("spark-sql", "select 1", LOGS, "--partitions", "7"), "none of its 7 is selected"),
    ],
)
def test_what_is_wrong_is_named(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    _, out, err = _run(capsys, *words)
    assert "" == out
    assert reason in err


def test_floats_of_reports_have_twelve_digits() -> None:
    from engine.analysis.reports.report import rounded
    from engine.analysis.statements import QueryResult

    row = {"mean": 847050.0000000001, "none": None, "count": 12345678901234567, "text": "1.5"}
    result = rounded(QueryResult(list(row), [row], False))
    assert [{**row, "mean": 847050.0}] == result.rows
