"""What `kctl broker` does."""

from __future__ import annotations

import os

from engine.cluster.run import log_to_stderr
from engine.cluster.run import run_broker as run
from engine.config.broker_config import BrokerConfig
from engine.config.java_properties import parse_properties
from engine.config.settings import BrokerSettings
from engine.errors import EngineError
from engine.host.real import RealFiles
from kctl import exits
from kctl.commands.setting_words import settings_of

_STORE = "znodes.sqlite"


class RemoteMetadata(EngineError):
    """A server.properties names a ZooKeeper ensemble."""

    hint = "add --set zookeeper.connect= to keep the broker's metadata beside its logs"

    def __init__(self, servers: str) -> None:
        super().__init__(
            f"zookeeper.connect={servers}: other processes' stores are not reached yet"
        )
        self.servers = servers


def run_broker(path: str, changes: list[str]) -> int:
    """Run one broker from a properties file until a signal."""
    files = RealFiles()
    static = parse_properties(files.read_bytes(path), path)
    static.update(settings_of(changes))
    servers = static.pop("zookeeper.connect", "").strip()
    if servers:
        raise RemoteMetadata(servers)
    settings = BrokerSettings(static)
    directory = os.path.abspath(BrokerConfig.of(settings).data_dirs[0])
    files.make_dir(directory)
    log_to_stderr()
    run(settings, f"{directory}/{_STORE}")
    return exits.OK
