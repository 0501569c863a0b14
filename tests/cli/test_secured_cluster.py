"""`kctl cluster start --secure`: what it makes, uses again and removes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from tests.cli.shell import Shell


def contexts(shell: Shell) -> Any:
    return json.loads(shell.ok("context", "list", "-o", "json"))


def test_a_secured_cluster_is_used_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        servers = json.loads(shell.ok("cluster", "start", "--secure", "--port", "0", "-o", "json"))[
            "bootstrap_servers"
        ]
        security = tmp_path / "data" / "kctl" / "cluster" / "security"
        assert 0o700 == security.stat().st_mode & 0o777
        modes = {path.name: path.stat().st_mode & 0o077 for path in security.iterdir()}
        assert {"ca.pem"} == {name for name, mode in modes.items() if mode}
        shell.ok("topics", "create", "t")
        assert 1 == json.loads(shell.ok("cluster", "status", "-o", "json"))["controller_id"]
        # Nobody prunes the user that the command logs in as.
        (tmp_path / "state.yaml").write_text("version: 1\nusers: {}\n")
        prune = ("--prune", "--allow-delete", "-y")
        kept = shell.run("apply", "-f", str(tmp_path / "state.yaml"), *prune)
        assert 1 == kept.returncode
        assert "logs in as that user" in kept.stderr
        # Who is nobody is not let in.
        refused = shell.run("topics", "list", "-b", servers, "--timeout", "5")
        assert (3, "") == (refused.returncode, refused.stdout)
        before = {path.name: path.read_bytes() for path in security.iterdir()}
        shell.ok("cluster", "stop")
        shell.ok("cluster", "start", "--secure")
        assert before == {path.name: path.read_bytes() for path in security.iterdir()}
        assert "t\n" == shell.ok("topics", "list", "-o", "name", "--context", "embedded")
    finally:
        shell.ok("cluster", "destroy", "-y")
    assert not security.exists()
    assert [] == contexts(shell)


def test_the_certificate_is_for_the_host_that_is_advertised(tmp_path: Path) -> None:
    # Properties files name it, whose bytes are Latin-1.
    home = tmp_path / "jürgen"
    home.mkdir()
    shell = Shell(home)
    # Resolved on this machine without a name server.
    advertised = ("--advertise", "127.0.0.7")
    try:
        started = shell.ok("cluster", "start", "--secure", "--port", "0", *advertised, "-o", "json")
        assert json.loads(started)["bootstrap_servers"].startswith("127.0.0.7:")
        shell.ok("topics", "create", "t", "--context", "embedded")
        assert "t\n" == shell.ok("topics", "list", "-o", "name", "--context", "embedded")
    finally:
        shell.ok("cluster", "destroy", "-y")


def test_a_start_waits_for_no_login_at_brokers_that_do_not_run(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        brokers = ("--brokers", "3", "--processes")
        shell.ok("cluster", "start", "--secure", "--port", "0", *brokers)
        shell.ok("cluster", "kill", "2")
        shell.ok("cluster", "pause", "3")
        again = shell.ok("cluster", "start", "--timeout", "5", "-o", "json")
        assert "running" == json.loads(again)["state"]
    finally:
        shell.ok("cluster", "destroy", "-y")


def test_a_hanging_transaction_is_left_as_the_administrator(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        shell.ok("cluster", "start", "--secure", "--port", "0", "--data", str(tmp_path / "other"))
        shell.ok("topics", "create", "t", "--context", "other")
        forge = ("transactions", "forge-hanging", "t:0", "--data", str(tmp_path / "other"))
        assert 1 == json.loads(shell.ok(*forge, "-o", "json"))[0]["records"]
        # Who is given goes before the administrator.
        (tmp_path / "nobody.properties").write_text("client.id=nobody\n")
        nobody = ("--command-config", str(tmp_path / "nobody.properties"))
        assert 3 == shell.run(*forge, *nobody).returncode
    finally:
        shell.ok("cluster", "destroy", "-y", "--data", str(tmp_path / "other"))


def store_of(shell: Shell) -> str:
    """Return the address of the cluster's store."""
    return str(json.loads(shell.ok("cluster", "status", "-o", "json"))["zookeeper"])


def refused(store: str, path: str, change: str) -> bool:
    """Return whether a client without a login may not do something with a node."""
    client = KazooClient(store)
    client.start(10)
    try:
        {
            "read": lambda: client.get(path),
            "write": lambda: client.set(path, b"x"),
            "create": lambda: client.create(f"{path.rstrip('/')}/new"),
            "delete": lambda: client.delete(path),
            "acl": lambda: client.set_acls(path, OPEN_ACL_UNSAFE),
        }[change]()
    except NoAuthError:
        return True
    finally:
        client.stop()
        client.close()
    return False


def test_nobody_but_the_brokers_changes_the_nodes_of_a_secured_cluster(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        # Nodes that were there when everybody could change them are protected, too.
        shell.ok("cluster", "start", "--port", "0")
        shell.ok("topics", "create", "before")
        shell.ok("cluster", "stop")
        shell.ok("cluster", "start", "--secure")
        shell.ok("topics", "create", "after")
        for _ in range(2):
            _check_store(shell)
            shell.ok("cluster", "stop")
            shell.ok("cluster", "start", "--secure")
        login = tmp_path / "data" / "kctl" / "cluster" / "security" / "store.jaas"
        assert 0o600 == login.stat().st_mode & 0o777
        (secret,) = set(re.findall(r'"(\w{20,})"', login.read_text()))
        logs = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
        assert [login] == [path for path in logs if secret.encode() in path.read_bytes()]
        assert secret not in shell.ok("configs", "describe", "--broker", "1", "-o", "json")
    finally:
        shell.ok("cluster", "destroy", "-y")
    assert not login.exists()


def _check_store(shell: Shell) -> None:
    store = store_of(shell)
    state = "/brokers/topics/before/partitions/0/state"
    for path in (state, "/brokers/topics/after", "/config/topics/before", "/cluster/id"):
        assert not refused(store, path, "read")
        assert all(refused(store, path, each) for each in ("write", "create", "delete", "acl"))
    assert refused(store, "/config/users/admin", "read")
    assert refused(store, "/config/users/admin", "write")
    assert refused(store, "/controller", "delete")
    assert refused(store, "/", "create")
    # Commands log in by themselves, to the store of that cluster.
    assert "SCRAM-SHA-512" in shell.ok("znode", "get", "/config/users/admin")
    assert "SCRAM-SHA-512" in shell.ok("znode", "get", "/config/users/admin", "-z", store)
    shell.ok("znode", "create", "/mine", "x")
    shell.ok("znode", "delete", "/mine", "-y")
    shown = shell.run("compat", "zookeeper-shell", store, "get", "/config/users/admin")
    assert "SCRAM-SHA-512" in shown.stdout


def test_a_login_to_the_store_that_a_cluster_has_stays(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    jaas = tmp_path / "own.jaas"
    jaas.write_text(
        f'Client {{ {module} username="own" password="pw"; }};\n'
        f'Server {{ {module} user_own="pw"; }};\n'
    )
    given = ("--set", "zookeeper.set.acl=true", "--set", f"java.security.auth.login.config={jaas}")
    try:
        shell.ok("cluster", "start", "--secure", "--port", "0", *given)
        shell.ok("cluster", "stop")
        shell.ok("cluster", "start", "--secure")
        assert "SCRAM-SHA-512" in shell.ok("znode", "get", "/config/users/admin")
        assert refused(store_of(shell), "/config/users/admin", "read")
    finally:
        shell.ok("cluster", "destroy", "-y")


def test_a_context_of_another_cluster_is_left(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("context", "set", "embedded", "-b", "127.0.0.1:1")
    done = shell.run("cluster", "start", "--secure", "--port", "0")
    assert 2 == done.returncode
    assert "context embedded is there" in done.stderr
    assert "127.0.0.1:1" == contexts(shell)[0]["bootstrap_servers"]
    assert not (tmp_path / "data").exists()


def test_a_cluster_that_runs_without_security_stays_as_it_is(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        shell.ok("cluster", "start", "--port", "0")
        assert 0 != shell.run("cluster", "start", "--secure").returncode
        shell.ok("topics", "list")
        assert [] == contexts(shell)
        # Stopped, it can be secured.
        shell.ok("cluster", "stop")
        shell.ok("cluster", "start", "--secure")
        shell.ok("topics", "list", "--context", "embedded")
    finally:
        shell.ok("cluster", "destroy", "-y")
    assert not (tmp_path / "data" / "kctl" / "cluster").exists()


def test_the_administrator_is_created_beside_the_cluster(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("cluster", "start", "--secure", "--foreground")
    assert 2 == done.returncode
    assert "--foreground" in done.stderr


def test_the_demos_run_with_the_rules_of_their_jobs_alone(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        shell.ok("cluster", "start", "--secure", "--port", "0")
        password, admin = tmp_path / "demo.password", tmp_path / "data" / "kctl" / "cluster"
        shell.ok("users", "create", "demo", "--generate", "--out", str(password))
        text = (admin / "security" / "admin.properties").read_text().replace('"admin"', '"demo"')
        properties = tmp_path / "demo.properties"
        properties.write_text(
            re.sub('password="[^"]*"', f'password="{password.read_text().strip()}"', text)
        )
        demo = ("demo", "produce-consume", "sync", "--records", "3", "--topic", "jobs")
        demo += ("-b", shell.status()["bootstrap_servers"], "--command-config", str(properties))
        refused = shell.run(*demo)
        assert 1 == refused.returncode
        assert "jobs" in refused.stderr
        assert "TOPIC_AUTHORIZATION_FAILED" in refused.stderr
        shell.ok("topics", "create", "jobs")
        allow = ("acls", "create", "--allow", "demo")
        shell.ok(*allow, "--for", "producer", "--topic", "jobs")
        shell.ok(*allow, "--operation", "read", "--topic", "jobs")
        shell.ok(*allow, "--operation", "read", "--group", "jobs-", "--pattern", "prefixed")
        assert "3 records produced and 3 consumed" in shell.run(*demo).stderr
    finally:
        shell.ok("cluster", "destroy", "-y")
