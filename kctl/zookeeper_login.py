"""The login of commands to a ZooKeeper: where Kafka's tools take it from, KAFKA_OPTS."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from engine.znode.kazoo_reader import ZnodeReader

    R = TypeVar("R", bound=ZnodeReader)

#: Options of Kafka's JVMs, which kctl reads for the login to ZooKeeper alone.
JVM_OPTIONS: Final = "KAFKA_OPTS"


def logging_in(session: R) -> R:
    """Return a session that will log in if the environment has a login; raises ConfigError."""
    options = os.environ.get(JVM_OPTIONS)
    if not options:
        return session
    # Commands without a login, nearly all, import none of it.
    from engine.host.input_file import read_input
    from engine.host.real import RealEntropy
    from engine.znode.login import client_login, system_properties

    login = client_login(system_properties(options), read_input)
    if login is not None:
        session.log_in_as(login, RealEntropy())
    return session
