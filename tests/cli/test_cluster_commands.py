"""Commands that talk to a cluster: which one, what when it is not there, what they import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kctl import exits
from tests.golden_dump import run_kctl

NOWHERE = "127.0.0.1:1"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    # An embedded cluster that runs elsewhere on this machine is none of this test's.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("KCTL_CONFIG", "KCTL_CONTEXT", "KCTL_BOOTSTRAP_SERVER"):
        monkeypatch.delenv(name, raising=False)

    def call(*args: str) -> tuple[int, str, str]:
        code, out, err = run_kctl(list(args), tmp_path)
        return code, out.decode(), err

    return call


ASKING = [
    ("topics", "list"),
    ("topics", "describe", "t"),
    ("topics", "create", "t"),
    ("topics", "alter", "t", "-p", "2"),
    ("topics", "delete", "t", "-y"),
    ("topics", "configs", "t"),
    ("configs", "describe", "--topic", "t"),
    ("configs", "set", "--topic", "t", "a=b"),
    ("configs", "unset", "--topic", "t", "a"),
    ("brokers", "list"),
    ("brokers", "describe"),
    ("brokers", "log-dirs"),
    ("brokers", "api-versions"),
    ("offsets", "get", "t"),
    ("records", "delete", "t", "--before", "end", "-y"),
    ("consume", "t"),
    ("produce", "t"),
]


@pytest.mark.parametrize("args", ASKING, ids=" ".join)
def test_a_cluster_that_is_not_there_is_exit_3(run: Run, args: tuple[str, ...]) -> None:
    code, out, err = run(*args, "-b", NOWHERE)
    assert (exits.UNREACHABLE, "") == (code, out)
    assert f"cannot reach {NOWHERE}: Connection refused" in err
    assert "hint: " in err


@pytest.mark.parametrize("args", ASKING, ids=" ".join)
def test_no_cluster_at_all_names_the_options(run: Run, args: tuple[str, ...]) -> None:
    code, _, err = run(*args)
    assert exits.USAGE == code
    assert "hint: start one: kctl cluster start; or give -b HOST:PORT" in err


@pytest.mark.parametrize(
    "args",
    [
        ("topics", "describe"),
        ("topics", "list", "--match", "("),
        ("topics", "create", "t", "-c", "novalue"),
        ("topics", "create", "t", "--replica-assignment", "1:x"),
        ("topics", "create", "t", "--replica-assignment", "1", "-p", "2"),
        ("topics", "alter", "t"),
        ("topics", "list", "-o", "xml"),
        ("configs", "describe"),
        ("configs", "set", "--topic", "t", "novalue"),
        ("configs", "unset", "--topic", "t", "a=b"),
        ("offsets", "get", "t:a"),
        ("offsets", "get", ":1"),
        ("offsets", "get", "t:5-1"),
        ("offsets", "get", "t", "--at", "noon"),
        ("consume", "t", "-f", "%z"),
        ("consume", "t", "-f", "\\q"),
        ("consume", "t", "-f", "%s", "-o", "json"),
        ("consume", "t", "-o", "name"),
        ("produce", "t", "-z", "zip"),
        ("produce", "t", "--acks", "2"),
        ("produce", "t", "--input", "xml"),
        ("produce", "t", "--input", "ndjson", "-k", ":"),
        ("produce", "t", "--keep-partitions"),
        ("produce", "t", "-H", "novalue"),
        ("context", "set", "c"),
        ("context", "use", "none"),
        ("topics", "list", "--timeout", "0"),
        ("cluster", "start", "--data", ""),
        ("cluster", "start", "--foreground", "-o", "xml"),
        ("znode", "ls", "--data", ""),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2_before_anything_is_asked(run: Run, args: tuple[str, ...]) -> None:
    where = () if args[0] in ("context", "cluster", "znode") else ("-b", NOWHERE)
    code, out, err = run(*args, *where)
    assert (exits.USAGE, "") == (code, out)
    assert "error: " in err


def test_properties_that_cannot_be_followed_are_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
    code, _, err = run("topics", "list", "-b", NOWHERE, "--command-config", str(path))
    assert exits.USAGE == code
    assert "supports PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in err


def test_a_missing_properties_file_is_named(run: Run) -> None:
    code, _, err = run("topics", "list", "-b", NOWHERE, "--command-config", "/none.properties")
    assert exits.FAILED == code
    assert "/none.properties: no such file" in err


class TestContext:
    def test_the_first_one_is_current_and_used(self, run: Run) -> None:
        assert 0 == run("context", "set", "local", "-b", NOWHERE)[0]
        code, _, err = run("topics", "list")
        assert exits.UNREACHABLE == code
        assert NOWHERE in err

    def test_what_is_given_goes_before_what_is_kept(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def decided_by() -> str:
            return str(json.loads(run("context", "show", "-o", "json")[1])["source"])

        run("context", "set", "one", "-b", "127.0.0.1:1")
        run("context", "set", "two", "-b", "127.0.0.1:2")
        assert "current context one" == decided_by()
        monkeypatch.setenv("KCTL_CONTEXT", "two")
        assert "KCTL_CONTEXT two" == decided_by()
        monkeypatch.setenv("KCTL_BOOTSTRAP_SERVER", "127.0.0.1:3")
        assert "KCTL_BOOTSTRAP_SERVER" == decided_by()
        assert "127.0.0.1:2" in run("topics", "list", "--context", "two")[2]
        assert "127.0.0.1:4" in run("topics", "list", "-b", "127.0.0.1:4", "--context", "two")[2]

    def test_a_flag_goes_before_the_file_and_the_file_before_all_else(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "client.properties"
        path.write_text("bootstrap.servers=127.0.0.1:5\n")
        run("context", "set", "two", "-b", "127.0.0.1:2")
        monkeypatch.setenv("KCTL_BOOTSTRAP_SERVER", "127.0.0.1:3")

        def decided(*words: str) -> str:
            code, _, err = run("topics", "list", "-v", "--command-config", str(path), *words)
            assert exits.UNREACHABLE == code
            return err.splitlines()[0]

        assert f"cluster: 127.0.0.1:5 (by bootstrap.servers in {path})" == decided()
        assert "cluster: 127.0.0.1:4 (by -b)" == decided("-b", "127.0.0.1:4")
        assert "cluster: 127.0.0.1:2 (by --context two)" == decided("--context", "two")
        path.write_text("client.id=me\n")
        assert "cluster: 127.0.0.1:3 (by KCTL_BOOTSTRAP_SERVER)" == decided()
        monkeypatch.delenv("KCTL_BOOTSTRAP_SERVER")
        assert "cluster: 127.0.0.1:2 (by current context two)" == decided()

    def test_a_file_that_says_where_the_cluster_is_makes_a_context(
        self, run: Run, tmp_path: Path
    ) -> None:
        path = tmp_path / "client.properties"
        path.write_text("bootstrap.servers=127.0.0.1:5\n")
        assert 0 == run("context", "set", "five", "--command-config", str(path))[0]
        assert "127.0.0.1:5" in run("context", "show", "five")[1]

    def test_without_v_nothing_is_printed(self, run: Run) -> None:
        assert "cluster: " in run("topics", "list", "-v", "-b", NOWHERE)[2]
        assert "cluster: " not in run("topics", "list", "-b", NOWHERE)[2]

    def test_addresses_given_directly_do_not_meet_the_current_contexts_secrets(
        self, run: Run, tmp_path: Path
    ) -> None:
        path = tmp_path / "client.properties"
        path.write_text("security.protocol=SSL\n")
        run("context", "set", "secret", "-b", "127.0.0.1:2", "--command-config", str(path))
        path.unlink()
        assert exits.UNREACHABLE == run("topics", "list", "-b", NOWHERE)[0]
        assert exits.FAILED == run("topics", "list", "-b", NOWHERE, "--context", "secret")[0]

    @pytest.mark.parametrize("words", [(b"\xff", "-b", "h:1"), ("a", "-b", b"h\xff:1")])
    def test_a_name_that_is_no_text_is_refused(
        self, run: Run, words: tuple[str | bytes, ...]
    ) -> None:
        code, _, err = run("context", "set", *(os.fsdecode(word) for word in words))
        assert (2, True) == (code, "in UTF-8" in err)
        assert "[]" == run("context", "list", "-o", "json")[1].strip()

    def test_a_context_can_be_changed_used_shown_and_forgotten(
        self, run: Run, tmp_path: Path
    ) -> None:
        run("context", "set", "one", "-b", "127.0.0.1:1")
        run("context", "set", "two", "-b", "127.0.0.1:2", "--use")
        run("context", "set", "two", "-b", "127.0.0.1:3")
        assert "one\ntwo\n" == run("context", "list", "-o", "name")[1]
        shown = json.loads(run("context", "show", "two", "-o", "json")[1])
        assert {
            "name": "two",
            "is_current": True,
            "bootstrap_servers": "127.0.0.1:3",
            "command_config": None,
            "is_protected": False,
            "is_read_only": False,
            "cluster_id": None,
        } == shown
        run("context", "use", "one")
        run("context", "delete", "two")
        kept = yaml.safe_load((tmp_path / "kctl" / "config.yaml").read_text())
        expected = {"current": "one", "contexts": {"one": {"bootstrap_servers": "127.0.0.1:1"}}}
        assert expected == kept
        run("context", "delete", "one")
        assert exits.USAGE == run("topics", "list")[0]

    @pytest.mark.parametrize(
        "text", ["- a", "contexts: [a]", "contexts: {a: {}}", "contexts: {a: 5}", "a: [", "\x00"]
    )
    def test_a_damaged_file_is_reported_and_left_alone(
        self, run: Run, tmp_path: Path, text: str
    ) -> None:
        path = tmp_path / "kctl" / "config.yaml"
        path.parent.mkdir()
        path.write_text(text)
        for args in (("topics", "list"), ("context", "set", "a", "-b", NOWHERE)):
            code, _, err = run(*args)
            assert exits.FAILED == code
            assert str(path) in err
        assert text == path.read_text()

    def test_properties_are_checked_before_they_are_kept(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "client.properties"
        path.write_text("security.protocol=TELEPATHY\n")
        args = ("context", "set", "a", "-b", NOWHERE, "--command-config", str(path))
        assert exits.USAGE == run(*args)[0]
        assert "" == run("context", "list", "-o", "name")[1]


def test_a_listing_imports_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys; from kctl.__main__ import main; main(sys.argv[1:]);"
        "print('\\n'.join(sys.modules))"
    )
    args = ["topics", "list", "-b", NOWHERE]
    found = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CONFIG_HOME": "/nonexistent"},
    )
    heavy = {"yaml", "rich", "asyncio", "ssl", "numpy", "cramjam", "fastcrc", "hashlib", "json"}
    assert set() == heavy & set(found.stdout.split())
