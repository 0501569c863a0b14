"""Which of `--set`, `--secure` and `--config` of `kctl cluster start` counts for a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster.data_directory import DataDirectory
from engine.host.real import RealFiles
from kctl.commands.cluster.lifecycle import StartRequest, settings_to_start

_FILE = """\
ssl.keystore.type=JKS
super.users=User:other
log.retention.ms=1000
num.partitions=2
"""


def test_set_overrides_secure_and_secure_overrides_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "config.yaml"))
    path = tmp_path / "server.properties"
    path.write_text(_FILE)
    request = StartRequest(
        data=None,
        brokers=None,
        port=None,
        zookeeper_port=None,
        settings=["super.users=User:mine", "num.partitions=3"],
        unset=[],
        foreground=False,
        timeout_s=1.0,
        output="table",
        config=str(path),
        secure=True,
    )
    data = DataDirectory(RealFiles(), str(tmp_path / "data"))

    found = settings_to_start(data, request)

    # Set by the file and --secure.
    assert "PEM" == found["ssl.keystore.type"]
    # Set by all three.
    assert "User:mine" == found["super.users"]
    # Set by the file and --set.
    assert "3" == found["num.partitions"]
    # Set by the file alone.
    assert "1000" == found["log.retention.ms"]
