"""Authentication of brokers to their metadata store.

| section of the JAAS file | used by |
|---|---|
| Client | a broker, for any store |
| Server | a store that listens: it must have the user of its cluster's brokers |

Source: KafkaServer.initZkClient.
Differs: a ZooKeeper without that user starts, and rejects the brokers' logins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.host.input_file import read_input
from engine.znode.login import (
    JAAS_FILE,
    LOGIN_KEYS,
    ZookeeperLogin,
    read_client_login,
    read_server_users,
)
from engine.znode.permissions import SASL

_SET_ACL = "zookeeper.set.acl"


class StoreSecurity(NamedTuple):
    """The users of an embedded store; passwords are not in the repr."""

    #: Passwords by user.
    users: Mapping[str, str]
    #: Scheme and id of the brokers in this process, if they protect nodes with ACLs.
    creator: tuple[str, str] | None

    def __repr__(self) -> str:
        return f"StoreSecurity({sorted(self.users)}, {self.creator})"


def store_security(settings: BrokerSettings, *, listens: bool) -> StoreSecurity:
    """Return the users and creator of a cluster's own store; raises ConfigError.

    With `listens`, other processes connect to the store: the brokers' login must be a user.
    """
    login, protects = store_login(settings)
    if login is None:
        return StoreSecurity(_server_users(settings), None)
    users = _server_users(settings)
    if listens and users.get(login.username) != login.password:
        rule = f"its section Server must have {login.username} of Client, with the same password"
        raise ConfigError(JAAS_FILE, settings.static[JAAS_FILE], rule)
    return StoreSecurity(users, (SASL, login.username) if protects else None)


def store_login(settings: BrokerSettings) -> tuple[ZookeeperLogin | None, bool]:
    """Return a broker's login to its store, and whether it sets ACLs on nodes.

    Raises ConfigError, also for ACLs without a login.
    """
    login = read_client_login(_login_settings(settings), read_input)
    protects = bool(settings.value(_SET_ACL))
    if protects and login is None:
        raise ConfigError(_SET_ACL, "true", f"needs a section Client in the file of {JAAS_FILE}")
    return login, protects


def _server_users(settings: BrokerSettings) -> dict[str, str]:
    """Return the passwords of the users in the JAAS file's section Server."""
    return read_server_users(_login_settings(settings), read_input)


def _login_settings(settings: BrokerSettings) -> dict[str, str]:
    """Return the configured settings for store logins, by name."""
    return {name: settings.static[name] for name in LOGIN_KEYS if name in settings.static}
