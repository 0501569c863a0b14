"""`kctl logs` from argv to exit code."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.golden_cases import case_dir
from tests.golden_dump import run_kctl

HERE = Path.cwd()


def logs(*args: str | Path, cwd: Path = HERE) -> tuple[int, str, str]:
    code, out, err = run_kctl(["logs", *(str(arg) for arg in args)], cwd)
    return code, out.decode(), err


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a log directory of two partitions, one of them with a torn tail."""
    source = case_dir("recovery-391") / "before"
    for name in ("r-tail-mid-record-0", "r-untouched-0"):
        shutil.copytree(source / name, tmp_path / "data" / name)
    for name in ("meta.properties", "replication-offset-checkpoint"):
        if (source / name).exists():
            shutil.copy(source / name, tmp_path / "data" / name)
    return tmp_path / "data"


def sizes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_clean_directory_verifies_with_exit_0() -> None:
    code, out, err = logs("verify", case_dir("plain") / "data")
    # A heading, and a line for each partition.
    assert (code, out.count("\n")) == (0, 8)
    assert err == "7 partitions, 73 batches: 0 problems\n"


def test_a_table_has_a_row_for_each_partition_with_its_worst_problem(damaged: Path) -> None:
    code, out, err = logs("verify", damaged)
    heading, *rows = out.splitlines()
    assert (code, heading.split()[0]) == (4, "PARTITION")
    shown = {row.split()[0]: row for row in rows}
    assert sorted(shown) == ["r-tail-mid-record-0", "r-untouched-0"]
    assert "torn-tail: 1420 bytes of a batch" in shown["r-tail-mid-record-0"]
    assert "torn-tail" not in shown["r-untouched-0"]
    assert err.endswith(
        "2 problems\nhint: --all shows each problem, -o json has them for scripts\n"
    )


def test_all_adds_a_row_for_each_problem(damaged: Path) -> None:
    code, out, err = logs("verify", damaged, "--all")
    summary, problems = out.split("\n\n")
    assert code == 4
    assert [2, 2] == [part.strip().count("\n") for part in (summary, problems)]
    assert problems.splitlines()[1].split()[:3] == ["warning", "torn-tail", "r-tail-mid-record-0"]
    assert "hint" not in err


def test_problems_are_rows_and_exit_4(damaged: Path) -> None:
    code, out, err = logs("verify", damaged, "-o", "json")
    assert code == 4
    row, short = json.loads(out)
    assert ("log-short", 121) == (short["code"], short["expected"])
    assert row == {
        "severity": "warning",
        "code": "torn-tail",
        "partition": "r-tail-mid-record-0",
        "file": "00000000000000000084.log",
        "position": 3501,
        "offset": None,
        "message": "1420 bytes of a batch that does not end in the file",
        "expected": None,
        "got": None,
        "path": f"{damaged}/r-tail-mid-record-0/00000000000000000084.log",
    }
    assert err.endswith("2 problems\n")


def test_every_output_format_has_the_same_rows(damaged: Path) -> None:
    def rows(output: str) -> str:
        return logs("verify", damaged, "--notes", "-o", output)[1]

    found = json.loads(rows("json"))
    assert len(found) == 4
    assert [json.loads(line) for line in rows("ndjson").splitlines()] == found
    assert yaml.safe_load(rows("yaml")) == found
    assert [row["code"] for row in csv.DictReader(io.StringIO(rows("csv")))] == [
        row["code"] for row in found
    ]
    assert rows("table").split("\n\n")[1].split()[:2] == ["SEVERITY", "CODE"]


def test_one_unreadable_path_fails_the_command_but_not_the_others(damaged: Path) -> None:
    code, out, err = logs("verify", damaged / "none", damaged, "-o", "ndjson")
    assert code == 1
    assert "none: no such file or directory" in err
    assert "torn-tail" in out


@pytest.mark.parametrize(
    "args",
    [
        ("verify",),
        ("verify", "x", "-o", "xml"),
        ("repair", "x"),
        ("repair", "x", "--in-place", "--to", "y"),
        ("repair", "x", "--in-place", "--index-interval-bytes", "-1"),
        ("none",),
    ],
)
def test_wrong_usage_is_exit_2(args: tuple[str, ...]) -> None:
    code, out, err = logs(*args)
    assert (code, out) == (2, "")
    assert err


def test_a_directory_with_nothing_of_kafkas_is_refused(tmp_path: Path) -> None:
    code, _, err = logs("verify", tmp_path)
    assert code == 1
    assert "no Kafka data here" in err
    assert "hint: give a directory with meta.properties" in err


def test_two_directories_of_one_broker_are_checked_together(damaged: Path) -> None:
    other = damaged.parent / "other"
    shutil.copytree(damaged / "r-untouched-0", other / "r-untouched-0")
    code, out, _ = logs("verify", damaged, other, "-o", "ndjson")
    assert code == 4
    assert out.count("partition-duplicate") == 2


def test_a_directory_that_waits_for_its_removal_is_not_checked(damaged: Path) -> None:
    gone = damaged / f"r-tail-mid-record-0.{'0' * 32}-delete"
    (damaged / "r-tail-mid-record-0").rename(gone)
    code, out, err = logs("verify", damaged, "--notes", "-o", "ndjson")
    assert code == 0
    assert "partition-deleted" in out
    assert err.startswith("1 partition, ")


def test_dirs_lists_partitions() -> None:
    code, out, _ = logs("dirs", case_dir("plain") / "data", "-o", "json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["clicks-0"]["log_end_offset"] == 400
    assert rows["clicks-0"]["segments"] == 4
    assert rows["solo-1"]["size_bytes"] == 0
    assert logs("dirs", case_dir("plain") / "data", "-o", "name")[1].split()[0] == "bulk-0"


def test_dirs_reports_damaged_checkpoints(damaged: Path) -> None:
    (damaged / "meta.properties").write_bytes(b"version=9\n")
    code, _, err = logs("dirs", damaged)
    assert code == 0
    assert "expected version 0 or 1, got 9" in err


def test_a_dry_run_shows_and_changes_nothing(damaged: Path) -> None:
    before = sizes(damaged)
    code, out, err = logs("repair", damaged, "--dry-run", "--output", "json")
    assert (code, sizes(damaged)) == (5, before)
    actions = [(row["action"], row["file"]) for row in json.loads(out)]
    assert ("cut", "00000000000000000084.log") in actions
    assert "r-tail-mid-record-0: ends at offset 111; 1420 bytes from there on are cut" in err


def test_a_dry_run_of_a_clean_directory_is_exit_0() -> None:
    code, _, err = logs("repair", case_dir("plain") / "data", "--dry-run")
    assert (code, err) == (0, "7 partitions, 0 actions\n")


def test_records_are_not_cut_without_a_yes(damaged: Path) -> None:
    before = sizes(damaged)
    code, _, err = logs("repair", damaged, "--in-place")
    assert (code, sizes(damaged)) == (2, before)
    assert "nothing was changed" in err


def test_a_repair_in_place_makes_the_directory_clean(damaged: Path) -> None:
    code, _, err = logs("repair", damaged, "--in-place", "--yes")
    assert code == 0
    assert "kept" in err
    assert logs("verify", damaged)[0] == 0
    assert logs("repair", damaged, "--dry-run")[0] == 0
    backup = damaged / "r-tail-mid-record-0" / "00000000000000000084.log.before-repair"
    assert backup.stat().st_size == 4921


def test_no_backup_keeps_nothing(damaged: Path) -> None:
    assert logs("repair", damaged, "--in-place", "-y", "--no-backup")[0] == 0
    assert not [name for name in sizes(damaged) if "before-repair" in name]


def test_a_repaired_copy_has_the_whole_log_directory(damaged: Path, tmp_path: Path) -> None:
    before = sizes(damaged)
    code, _, _ = logs("repair", damaged, "--to", tmp_path / "copy")
    assert (code, sizes(damaged)) == (0, before)
    assert logs("verify", tmp_path / "copy")[0] == 0
    assert (tmp_path / "copy" / "meta.properties").exists()
    code, _, err = logs("repair", damaged, "--to", tmp_path / "copy")
    assert code == 1
    assert "is not empty" in err


def test_a_repaired_copy_of_one_partition_is_that_partition(damaged: Path, tmp_path: Path) -> None:
    target = tmp_path / "r-tail-mid-record-0"
    assert logs("repair", damaged / "r-tail-mid-record-0", "--to", target)[0] == 0
    assert (target / "00000000000000000084.log").stat().st_size == 3501


_HOLDER = """
import fcntl, sys
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


def test_a_directory_in_use_is_not_repaired(damaged: Path) -> None:
    lock = damaged / ".lock"
    lock.touch()
    script = (
        "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,2); print(); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    holder.stdout.readline()
    code, _, err = logs("repair", damaged, "--in-place", "-y")
    holder.communicate("")
    assert code == 1
    assert "holds the lock" in err
    assert logs("repair", damaged, "--in-place", "-y")[0] == 0


def test_the_recovery_point_bounds_what_is_checked() -> None:
    path = case_dir("recovery-430") / "before" / "r-crc-old-segment-0"
    assert logs("repair", path, "--dry-run", "--from-recovery-point")[0] == 0
    assert logs("repair", path, "--dry-run")[0] == 5


def test_diff_shows_the_first_divergent_offset() -> None:
    root = case_dir("epochs") / "divergent"
    code, out, _ = logs("diff", root / "broker1/routes-0", root / "broker2/routes-0", "-o", "json")
    (row,) = json.loads(out)
    assert (code, row["kind"], row["offset"]) == (4, "epoch", 87)
    assert row["left_batch"]["leader_epoch"] != row["right_batch"]["leader_epoch"]
    code, out, _ = logs("diff", root / "broker1/routes-0", root / "broker1/routes-0", "-o", "name")
    assert (code, out) == (0, "same\n")


def test_diff_takes_partitions_only() -> None:
    code, _, err = logs("diff", case_dir("plain") / "data", case_dir("plain") / "data")
    assert code == 2
    assert "holds 7 partitions, expected one" in err


def test_a_path_may_be_the_current_directory() -> None:
    folder = case_dir("plain") / "data"
    assert logs("verify", ".", cwd=folder)[2].startswith("7 partitions")
    assert logs("verify", "orders-0", cwd=folder)[2].startswith("1 partition, ")
    assert logs("dirs", ".", "-o", "name", cwd=folder / "orders-0")[0] == 0


def test_diff_refuses_copies_of_unlike_topics() -> None:
    data = case_dir("plain") / "data"
    paths = (data / "clicks-0", data / "orders-0")
    code, out, err = logs("diff", *paths)
    assert (code, out) == (2, "")
    assert "clicks-0 and orders-0 are different partitions" in err
    assert logs("diff", *paths, "--force")[0] == 4


def test_diff_refuses_copies_with_unlike_topic_ids(tmp_path: Path) -> None:
    data = case_dir("plain") / "data" / "clicks-0"
    shutil.copytree(data, tmp_path / "clicks-0")
    (tmp_path / "clicks-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {'C' * 21}A")
    code, _, err = logs("diff", data, tmp_path / "clicks-0")
    assert code == 2
    assert "their topic ids are" in err


def test_diff_reports_damage_after_the_others_end(tmp_path: Path) -> None:
    data = case_dir("plain") / "data" / "clicks-0"
    for name in ("short", "long"):
        shutil.copytree(data, tmp_path / name / "clicks-0")
    last = sorted((tmp_path / "short" / "clicks-0").glob("*.log"))[-1]
    base = int(last.stem)
    for path in last.parent.glob(f"{last.stem}.*"):
        path.unlink()
    with (tmp_path / "long" / "clicks-0" / last.name).open("r+b") as log:
        log.seek(70)
        log.write(b"\xff")
    code, out, err = logs(
        "diff", tmp_path / "short" / "clicks-0", tmp_path / "long" / "clicks-0", "-o", "json"
    )
    assert code == 4
    (row,) = json.loads(out)
    assert (row["kind"], row["left_end_offset"]) == ("damage", base)
    assert f"wrong checksum at offset {base}, after the end of the other copy, {base}" in err


def test_a_copy_inside_its_source_is_refused(damaged: Path) -> None:
    before = sizes(damaged)
    for target in (damaged, damaged / "out", damaged / "r-untouched-0" / "x"):
        code, _, err = logs("repair", damaged, "--to", target)
        assert code == 2
        assert "lies inside" in err
    link = damaged.parent / "link"
    link.symlink_to(damaged)
    assert logs("repair", damaged, "--to", link / "out")[0] == 2
    assert before == sizes(damaged)


def test_a_repair_can_cut_overlaps(damaged: Path) -> None:
    log = sorted((damaged / "r-untouched-0").glob("*.log"))[-1]
    first_batch_size = 12 + int.from_bytes(log.read_bytes()[8:12], "big")
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + log.read_bytes()[:first_batch_size])
    code, out, _ = logs(
        "repair", log.parent, "--dry-run", "--cut-overlaps", "-o", "json",
        "--index-interval-bytes", "1000000",
    )  # fmt: skip
    assert code == 5
    (cut,) = [row for row in json.loads(out) if row["action"] == "cut"]
    assert cut["size_bytes"] == size
    _, _, err = logs("repair", log.parent, "--dry-run", "--index-interval-bytes", "1000000")
    assert "1 batches with offsets that were there before stay" in err


def test_a_file_is_no_log_directory(damaged: Path) -> None:
    code, _, err = logs("verify", damaged / "meta.properties")
    assert code == 1
    assert "is a file, not a directory" in err


def test_the_log_directories_in_a_folder_are_named(damaged: Path) -> None:
    (damaged / "meta.properties").touch()
    code, _, err = logs("dirs", damaged.parent)
    assert code == 1
    assert "hint: the log directories in it: data" in err


def test_a_directory_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    code, out, err = logs("verify", tmp_path / "none", "-o", "csv")
    assert (1, f"error: {tmp_path}/none: no such file or directory") == (code, err.splitlines()[0])
    assert "partition" not in err
    assert out.count("\n") == 1
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").touch()
    _, _, err = logs("verify", tmp_path / "none", tmp_path / "t-0")
    assert "1 partition, 0 batches: 0 problems\n" == err[err.index("1 part") :]
