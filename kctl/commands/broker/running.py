"""Implementation of `kctl broker`."""

from __future__ import annotations

import os

from engine.cluster.plan import unauthenticated_listeners
from engine.cluster.run import log_to_stderr
from engine.cluster.run import run_broker as run
from engine.config.broker_config import BrokerConfig
from engine.config.java_properties import parse_properties
from engine.config.settings import BrokerSettings
from engine.host.real import RealFiles
from engine.naming import STORE_FILE
from engine.znode.login import system_properties
from kctl import exits
from kctl.console import notify
from kctl.setting_arguments import settings_of
from kctl.zookeeper_login import JVM_OPTIONS


def run_broker(path: str, changes: list[str]) -> int:
    """Run one broker from a server.properties file until a signal; returns the exit code.

    `changes` are the `NAME=VALUE` texts of `--set`. Metadata is in the ZooKeeper of
    `zookeeper.connect`, else in a file of the first log directory. As in Kafka, KAFKA_OPTS may hold
    the login for ZooKeeper; the file and `--set` override it.
    """
    files = RealFiles()
    static = system_properties(os.environ.get(JVM_OPTIONS, ""))
    static.update(parse_properties(files.read_bytes(path), path))
    static.update(settings_of(changes))
    is_remote = bool(static.get("zookeeper.connect", "").strip())
    if not is_remote:
        static.pop("zookeeper.connect", None)
    settings = BrokerSettings(static)
    directory = os.path.abspath(BrokerConfig.parse(settings).data_dirs[0])
    files.make_dir(directory)
    for listener in unauthenticated_listeners(static):
        notify(f"warning: {listener} takes everybody who reaches it, without authentication")
    log_to_stderr()
    run(settings, None if is_remote else f"{directory}/{STORE_FILE}")
    return exits.OK
