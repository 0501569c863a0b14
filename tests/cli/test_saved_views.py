"""Views that `spark-sql` and `spark-shell` save: where they are kept, and who knows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kctl.saved_views import views_path
from tests.cli.shell import Shell
from tests.golden_cases import case_dir

LOGS = str(case_dir("plain") / "data")
BIG = "select topic, offset from records where value_size > 1000"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def _kept(shell: Shell) -> Path:
    return Path(shell.environment["XDG_CONFIG_HOME"], "kctl", "views.sql")


def test_a_saved_view_is_there_in_later_runs(shell: Shell) -> None:
    columns = json.loads(shell.ok("spark-sql", BIG, "--save", "big", "-o", "json"))
    assert ["topic", "offset"] == [row["col_name"] for row in columns]
    query = "select count(*) n from big"
    assert [{"n": 2}] == json.loads(shell.ok("spark-sql", query, LOGS, "-o", "json"))
    assert "big" in shell.ok("spark-sql", "show tables")
    assert "bigint" in shell.ok("spark-sql", "describe big")
    assert f"create view big as\n{BIG}\n;\n" == _kept(shell).read_text()
    done = shell.run("spark-sql", "drop view big")
    assert (0, f"removed view big in {_kept(shell)}\n") == (done.returncode, done.stderr)
    assert "no view big" in shell.run("spark-sql", query, LOGS).stderr


def test_with_logs_the_query_is_run_before_it_is_saved(shell: Shell) -> None:
    done = shell.run("spark-sql", BIG, LOGS, "--save", "big", "-o", "csv")
    assert (0, "topic,offset\nbulk,1\nbulk,4\n") == (done.returncode, done.stdout)
    failing = "select sum(9223372036854775807) n from records"
    assert 1 == shell.run("spark-sql", failing, LOGS, "--save", "fails").returncode
    assert "fails" not in _kept(shell).read_text()


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("select nosuch from records", "--save", "v"), 1, "the view v: no column nosuch"),
        (("create view v as select 1 from nosuch",), 1, "the view v: no view nosuch"),
        (("select 1 one", "--save", "records"), 2, "view records: a view of the logs"),
        (("drop view records", "--save", "v"), 2, "--save NAME takes a query"),
        (("create view v as drop table t",), 2, "DROP is no question"),
        (("create view v as select 1 x; select 2",), 2, "several statements"),
        (("drop view v",), 2, "no saved view v; saved are: none"),
        (("select 1 one",), 2, "at least one log directory"),
    ],
)
def test_a_wrong_view_is_an_error_in_two_lines_and_not_saved(
    shell: Shell, words: tuple[str, ...], code: int, error: str
) -> None:
    done = shell.run("spark-sql", *words)
    assert code == done.returncode
    assert error in done.stderr
    assert 2 >= done.stderr.count("\n")
    assert not _kept(shell).exists()


def test_the_shell_saves_and_removes_views(shell: Shell) -> None:
    lines = f"""create view big as {BIG};
        create view big as select 1;
        create or replace view big as {BIG} and offset < 4;
        select count(*) n from big;
        create view spare as select * from big; drop view spare;"""
    done = shell.run("spark-shell", LOGS, "-o", "json", stdin=lines)
    assert 1 == done.returncode  # of the second statement
    assert "there is a saved view big already" in done.stderr
    assert '"n": 1' in done.stdout
    assert ["create view big as"] == [
        line for line in _kept(shell).read_text().splitlines() if line.startswith("create")
    ]


def test_a_file_of_views_can_be_named(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "case.sql"
    path.write_text("-- of the ticket\ncreate view one as select 1 x;\n")
    assert "x\n1\n" == shell.ok(
        "spark-sql", "select * from one", LOGS, "--views", str(path), "-o", "csv"
    )
    path.write_text("select 1;")
    done = shell.run("spark-sql", "select 1 x", LOGS, "--views", str(path))
    assert 1 == done.returncode
    assert f"{path}: expected `create view NAME as …;`, not 'select 1'" in done.stderr


def test_where_views_are_kept() -> None:
    home = {"HOME": "/home/me"}
    assert "/home/me/.config/kctl/views.sql" == views_path(home)
    assert "/etc/xdg/kctl/views.sql" == views_path({**home, "XDG_CONFIG_HOME": "/etc/xdg"})
    assert "/mine" == views_path({**home, "KCTL_VIEWS": "/mine"})
    assert "/this" == views_path({**home, "KCTL_VIEWS": "/mine"}, "/this")
