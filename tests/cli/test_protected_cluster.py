"""A cluster whose znodes belong to its brokers: who logs in, and who is kept out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell

_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_CLIENT = f'Client {{ {_MODULE} required username="kafka" password="pass-of-kafka"; }};\n'
_SERVER = f'Server {{ {_MODULE} required user_kafka="pass-of-kafka" user_other="o"; }};\n'
_FILE = "java.security.auth.login.config"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("cluster", "stop")


def _login(folder: Path, text: str) -> str:
    path = folder / "jaas.conf"
    path.write_text(text)
    return f"{_FILE}={path}"


@pytest.mark.parametrize("brokers", [("--brokers", "1"), ("--brokers", "2", "--processes")])
def test_znodes_are_the_brokers_own(shell: Shell, tmp_path: Path, brokers: tuple[str, ...]) -> None:
    login = _login(tmp_path, _CLIENT + _SERVER)
    sets = ("--set", "zookeeper.set.acl=true", "--set", login)
    shell.ok("cluster", "start", "--port", "0", *brokers, *sets)
    shell.ok("topics", "create", "t")
    # By the login of its cluster, which kctl finds by the store's address.
    shell.ok("znode", "ls", "/config/users")

    stranger = Shell(tmp_path / "elsewhere")
    store = ("-z", shell.status()["zookeeper"])
    names = stranger.ok("znode", "ls", "/brokers/topics", "-o", "name", *store)
    assert "/brokers/topics/t" in names
    refused = stranger.run("znode", "ls", "/config/users", *store)
    assert (refused.returncode, "NoAuthError" in refused.stderr) == (1, True)
    assert f"KAFKA_OPTS=-D{_FILE}=FILE logs in" in refused.stderr
    assert stranger.run("znode", "set", "/controller", "x", *store).returncode == 1

    stranger.environment["KAFKA_OPTS"] = f"-Xmx1g -D{login}"
    stranger.ok("znode", "ls", "/config/users", *store)
    told = shell.ok("compat", "zookeeper-shell", shell.status()["zookeeper"], "getAcl", "/config")
    assert "SaslAuthenticated" in told
    assert told.endswith("'sasl,'kafka\n: cdrwa\n'world,'anyone\n: r\n")
    told = shell.ok("cluster", "status", "-o", "json") + shell.ok("cluster", "logs")
    assert "pass-of-kafka" not in told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Server {};", "needs a section Client"),
        (_CLIENT, "Server must have kafka of Client"),
        (_CLIENT + _SERVER.replace("pass-of-kafka", "x"), "Server must have kafka of Client"),
    ],
    ids=["no client", "no server", "another password"],
)
def test_a_cluster_that_could_not_log_in_does_not_start(
    shell: Shell, tmp_path: Path, text: str, said: str
) -> None:
    sets = ("--set", "zookeeper.set.acl=true", "--set", _login(tmp_path, text))
    refused = shell.run("cluster", "start", "--port", "0", *sets)
    assert refused.returncode == 1
    assert said in refused.stderr
    assert "pass-of-kafka" not in refused.stderr
