"""Logins of brokers to their store, and what a store of ours must know of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster.ensemble import Ensemble
from engine.cluster.plan import ClusterPlan, check_plan
from engine.cluster.store_security import StoreSecurity, store_login, store_security
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.host.event_loop import EventLoop
from engine.host.memory import ManualClock
from engine.host.real import RealEntropy
from engine.znode.login import JAAS_FILE, ZookeeperLogin

_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_CLIENT = f'Client {{ {_MODULE} required username="kafka" password="secret"; }};\n'
_SERVER = f'Server {{ {_MODULE} required user_kafka="secret" user_a="b"; }};\n'
_ACL = {"zookeeper.set.acl": "true"}


class _Files:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "jaas.conf"

    def settings(self, text: str, **more: str) -> BrokerSettings:
        self._path.write_text(text)
        return BrokerSettings({JAAS_FILE: str(self._path), **more})


@pytest.fixture
def files(tmp_path: Path) -> _Files:
    return _Files(tmp_path)


def test_a_broker_logs_in_where_it_can_and_protects_where_it_is_told(files: _Files) -> None:
    login = ZookeeperLogin("kafka", "secret")
    assert store_login(files.settings(_CLIENT)) == (login, False)
    assert store_login(files.settings(_CLIENT, **_ACL)) == (login, True)
    assert store_login(BrokerSettings({})) == (None, False)


def test_protection_without_a_login_stops_the_start(files: _Files) -> None:
    with pytest.raises(ConfigError, match="needs a section Client"):
        store_login(files.settings(_SERVER, **_ACL))
    with pytest.raises(ConfigError, match="needs a section Client"):
        Ensemble(BrokerSettings(_ACL), ManualClock(), EventLoop(), RealEntropy())


def test_a_store_knows_its_users_and_the_creator_of_its_nodes(files: _Files) -> None:
    users = {"kafka": "secret", "a": "b"}
    both = files.settings(_CLIENT + _SERVER, **_ACL)
    assert store_security(both, listens=True) == StoreSecurity(users, ("sasl", "kafka"))
    assert "secret" not in repr(store_security(both, listens=True))
    open_nodes = files.settings(_CLIENT + _SERVER)
    assert store_security(open_nodes, listens=True) == StoreSecurity(users, None)
    assert store_security(files.settings(_SERVER), listens=True) == StoreSecurity(users, None)
    assert store_security(BrokerSettings({}), listens=True) == StoreSecurity({}, None)


@pytest.mark.parametrize(
    "text", [_CLIENT, _CLIENT + _SERVER.replace("secret", "other"), _CLIENT + "Server {};"]
)
def test_a_store_that_listens_must_know_its_own_brokers(files: _Files, text: str) -> None:
    settings = files.settings(text, **_ACL)
    with pytest.raises(ConfigError, match="Server must have kafka of Client") as refused:
        store_security(settings, listens=True)
    assert "secret" not in str(refused.value)
    with pytest.raises(ConfigError, match="Server must have kafka of Client"):
        check_plan(ClusterPlan(settings=settings.static))
    # Nobody else reaches the store of a single broker.
    assert store_security(settings, listens=False).creator == ("sasl", "kafka")
