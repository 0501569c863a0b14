"""Copies of log directories in tar archives and in an object store read as directories do."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.sources import NoPathMatches, find_log_dirs_in, find_log_dirs_of
from engine.analysis.splits import Selection, Split, plan_reading, plan_splits
from engine.host import object_files
from engine.host.archive_files import ArchiveDamaged
from engine.host.object_files import is_object_path
from engine.host.ports import FileMissing, FileRefused
from engine.host.source_files import SourceFiles
from engine.log.directory.log_dir import NoLogDirectory
from tests.golden_cases import case_dir

QUERIES = (
    "select topic, partition, offset, key, value from records",
    "select topic, position, crc, crcValid from batches",
    "select topic, partition, kind, entry, indexedOffset, problem from indexes",
    "select topic, kind, checkpointOffset from checkpoints",
)


def _rows(splits: list[Split]) -> list[list[str]]:
    results = [run_local_query(q, splits, control=True, max_rows=0).rows for q in QUERIES]
    return [sorted(map(repr, rows)) for rows in results]


def _packed(folder: Path, target: Path, mode: Any, inner: str = ".") -> Path:
    with tarfile.open(target, mode) as archive:
        archive.add(folder, inner)
    return target


@pytest.fixture(scope="module")
def expected() -> list[list[str]]:
    folder = str(case_dir("plain") / "data")
    rows = _rows(plan_splits(SourceFiles(), [folder], Selection()))
    assert all(rows)
    return rows


@pytest.mark.parametrize(
    ("name", "mode"), [("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz")]
)
@pytest.mark.parametrize("inner", [".", "data", "var/lib/kafka"])
def test_an_archive_reads_as_its_directory(
    name: str, mode: str, inner: str, tmp_path: Path, expected: list[list[str]]
) -> None:
    archive = _packed(case_dir("plain") / "data", tmp_path / name, mode, inner)
    files = SourceFiles()
    (found,) = find_log_dirs_of(files, str(archive))
    assert expected == _rows(plan_splits(files, [found], Selection()))


def test_an_archive_may_have_the_directories_of_several_brokers(tmp_path: Path) -> None:
    archive = _packed(case_dir("epochs") / "divergent", tmp_path / "a.tar", "w")
    files = SourceFiles()
    found = find_log_dirs_of(files, str(archive))
    assert [f"{archive}/broker{n}" for n in (1, 2, 3)] == found
    plan = plan_reading(files, found, Selection())
    assert {"diverged", "replica"} == {problem.code for problem in plan.problems}


def test_an_archive_without_logs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "text").write_text("none")
    archive = _packed(tmp_path / "folder", tmp_path / "a.tar", "w")
    with pytest.raises(NoLogDirectory):
        find_log_dirs_of(SourceFiles(), str(archive))


@pytest.mark.parametrize("left", [0, 100, 512, 5000, -2000])
@pytest.mark.parametrize("name", ["a.tar", "a.tgz"])
def test_an_archive_that_ends_too_early_is_refused(name: str, left: int, tmp_path: Path) -> None:
    mode = "w:gz" if name.endswith("gz") else "w"
    archive = _packed(case_dir("plain") / "data", tmp_path / name, mode)
    content = archive.read_bytes()
    if name == "a.tar" and left < 0:
        # Behind the last member an archive has some 10 KB of zeros.
        left = len(content.rstrip(b"\0")) - 1000
    archive.write_bytes(content[:left])
    with pytest.raises(ArchiveDamaged):
        SourceFiles().list_dir(str(archive))


def test_a_file_that_is_no_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tgz"
    path.write_bytes(b"no archive at all" * 100)
    with pytest.raises(ArchiveDamaged):
        SourceFiles().list_dir(str(path))
    path.write_bytes(gzip.compress(b"no archive at all" * 100))
    with pytest.raises(ArchiveDamaged):
        SourceFiles().list_dir(str(path))


def test_nothing_is_written_into_an_archive(tmp_path: Path) -> None:
    archive = _packed(case_dir("plain") / "data", tmp_path / "a.tar", "w")
    files = SourceFiles()
    with pytest.raises(FileRefused):
        files.open(f"{archive}/new", write=True, create=True)
    with pytest.raises(FileMissing):
        files.open(f"{archive}/gone")


def test_a_directory_that_is_called_like_an_archive_is_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "a.tar"
    folder.mkdir()
    (folder / "x").write_bytes(b"1")
    assert ["x"] == SourceFiles().list_dir(str(folder))


@pytest.fixture(scope="module")
def store() -> Iterator[list[tuple[str, str, str | None]]]:
    """Run an object store on loopback with the plain logs in it; yields its requests."""
    from moto.server import ThreadedMotoServer

    requests: list[tuple[str, str, str | None]] = []
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    object_files._bucket_store.cache_clear()
    _fill(host, port)
    application = server._server.app

    def noted(environ: dict[str, Any], respond: Any) -> Any:
        requests.append(
            (environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE"))
        )
        return application(environ, respond)

    server._server.app = noted
    yield requests
    server.stop()
    object_files._bucket_store.cache_clear()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def _fill(host: str, port: int) -> None:
    # One plain request a file: Arrow's client would make three.
    connection = HTTPConnection(host, port)
    folder = case_dir("plain") / "data"
    contents = {
        f"/copies/b1/{path.relative_to(folder)}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    for path, content in {"/copies": b"", **contents}.items():
        connection.request("PUT", path, content)
        response = connection.getresponse()
        assert 200 == response.status, response.read()
        response.read()
    connection.close()


def test_an_object_store_reads_as_a_directory(store: Any, expected: list[list[str]]) -> None:
    files = SourceFiles()
    (found,) = find_log_dirs_of(files, "s3://copies/b1")
    assert expected == _rows(plan_splits(files, [found], Selection()))


def test_an_object_store_is_only_read_and_by_ranges(store: Any) -> None:
    store.clear()
    splits = plan_splits(SourceFiles(), ["s3://copies/b1/clicks-0"], Selection())
    query = "select max(offset) n from records where offset >= 390"
    (row,) = run_local_query(query, splits, control=False, max_rows=0).rows
    assert 399 == row["n"]
    assert {method for method, _, _ in store} <= {"GET", "HEAD"}
    logs = [wanted for method, path, wanted in store if method == "GET" and path.endswith(".log")]
    assert logs
    assert all(wanted and wanted.startswith("bytes=") for wanted in logs)
    assert {path for method, path, _ in store if path.endswith(".log") and method == "GET"} < {
        f"/copies/b1/clicks-0/{Path(split.path).name}" for split in splits
    }


def test_keys_that_are_not_in_the_store_are_reported(store: Any) -> None:
    with pytest.raises(FileMissing):
        SourceFiles().list_dir("s3://copies/none/at/all")
    with pytest.raises(FileRefused):
        SourceFiles().open("s3://copies/new", write=True, create=True)


@pytest.mark.parametrize(
    ("path", "is_address"),
    [
        ("s3://copies/b1", True),
        ("s3:/copies/b1", True),
        ("gs://copies/b1", True),
        ("abfs://copies@account.dfs.core.windows.net/b1", True),
        ("abfss://copies@account.dfs.core.windows.net/b1", True),
        ("hdfs://namenode:8020/b1", True),
        ("hdfs:///b1", True),
        ("s3:", False),
        ("s3://", False),
        ("/s3://copies", False),
        ("file:///copies", False),
        ("logs/hdfs:copies", False),
    ],
)
def test_addresses_of_stores_differ_from_paths(path: str, is_address: bool) -> None:
    assert is_address == is_object_path(path)


@pytest.mark.parametrize(
    ("path", "store", "key"),
    [
        ("gs://copies/b1/t-0/", "gcs", "copies/b1/t-0"),
        ("abfs://copies@account.dfs.core.windows.net/b1", "abfs", "copies/b1"),
        ("abfss://copies@account.dfs.core.chinacloudapi.cn/b1", "abfs", "copies/b1"),
        ("abfs://account@127.0.0.1:10000/copies/b1", "abfs", "copies/b1"),
    ],
)
def test_an_address_names_its_store_and_what_is_in_it(path: str, store: str, key: str) -> None:
    found, key_in_it = object_files._locate(path)
    assert (store, key) == (found.type_name, key_in_it)


def test_a_store_whose_client_is_not_there_is_refused_with_its_reason() -> None:
    with pytest.raises(FileRefused, match="Unable to load lib"):
        SourceFiles().list_dir("hdfs://127.0.0.1:1/b1")


def _folders(tmp_path: Path, *names: str) -> list[str]:
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    return [str(tmp_path / name) for name in names]


def test_a_pattern_stands_for_the_directories_and_archives_that_match(tmp_path: Path) -> None:
    first, second, _, _ = _folders(tmp_path, "a/kafka", "b/kafka", "c/other", ".d/kafka")
    archive = _packed(case_dir("plain") / "data", tmp_path / "x.tar", "w")
    (tmp_path / "x.txt").write_text("no directory")
    files = SourceFiles()
    assert [first, second] == find_log_dirs_in(files, [f"{tmp_path}/*/kafka"])
    assert [first] == find_log_dirs_in(files, [f"{tmp_path}/[ax]/k*a"])
    assert [f"{tmp_path}/.d/kafka"] == find_log_dirs_in(files, [f"{tmp_path}/.?/kafka"])
    assert [str(archive)] == find_log_dirs_in(files, [f"{tmp_path}/x.*"])


def test_a_list_stands_for_each_of_its_parts_once(tmp_path: Path) -> None:
    first, second = _folders(tmp_path, "a/kafka", "b/kafka")
    given = [f"{second}, {tmp_path}/*/kafka,", first]
    assert [second, first] == find_log_dirs_in(SourceFiles(), given)


def test_a_directory_with_signs_in_its_name_stands_for_itself(tmp_path: Path) -> None:
    odd, _ = _folders(tmp_path, "a*,b", "axx,b")
    assert [odd] == find_log_dirs_in(SourceFiles(), [odd])


@pytest.mark.parametrize("pattern", ["*/none", "none/*", "x?", "a/kafka/deeper/*"])
def test_a_pattern_without_a_match_is_refused(pattern: str, tmp_path: Path) -> None:
    _folders(tmp_path, "a/kafka")
    with pytest.raises(NoPathMatches, match="no directory and no archive"):
        find_log_dirs_in(SourceFiles(), [f"{tmp_path}/{pattern}"])


def test_a_list_may_have_addresses_of_an_object_store(store: Any, tmp_path: Path) -> None:
    (folder,) = _folders(tmp_path, "a")
    given = f"s3://copies/b1,s3://copies/b?,{folder}"
    assert ["s3://copies/b1", folder] == find_log_dirs_in(SourceFiles(), [given])


def test_what_cannot_be_a_key_is_refused(store: Any) -> None:
    files = SourceFiles()
    assert not files.exists("s3://copies/a//b")
    with pytest.raises(FileRefused, match="cannot list"):
        files.list_dir("s3://user:password@copies/b1")


def test_a_file_that_was_removed_since_its_folder_was_listed_is_missing(store: Any) -> None:
    bucket, files = "s3://copies/b1/solo-0", SourceFiles()
    names = files.list_dir(bucket)
    store_of_bucket, key = object_files._locate(bucket)
    assert key
    path = f"{key}/{names[0]}"
    with store_of_bucket.open_input_file(path) as file:
        content = file.read()
    store_of_bucket.delete_file(path)
    try:
        with pytest.raises(FileMissing):
            files.open(f"{bucket}/{names[0]}")
    finally:
        with store_of_bucket.open_output_stream(path) as stream:
            stream.write(content)


def test_patterns_match_in_an_object_store(store: Any) -> None:
    assert ["s3://copies/b1"] == find_log_dirs_in(SourceFiles(), ["s3://copies/b?"])
    with pytest.raises(NoPathMatches):
        find_log_dirs_in(SourceFiles(), ["s3://copies/c*"])
