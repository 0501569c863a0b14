"""A broken rule ends the process with its state in the log, wherever it is met."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import socket, struct, sys, threading
from engine.api.metadata import Metadata
from engine.cluster import run
from engine.cluster.data_directory import DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.errors import InvariantBroken
from engine.host.real import RealFiles
from engine.wire.codec import message_codec
from engine.wire.headers import encode_request_header
from engine.wire.structs import message_class

def breaks(*_arguments):
    raise InvariantBroken("a watermark went back")

def ask():
    body = message_codec("MetadataRequest", 9).encode(message_class("MetadataRequest")(topics=None))
    frame = encode_request_header(3, 9, 1, "tester") + body
    host, port = data.running().bootstrap_servers.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        connection.recv(1)

class Noted(run.Process):
    # The process that runs, for its timers.

    def __init__(self):
        super().__init__()
        Noted.latest = self

def ready():
    if where == "handler":
        threading.Thread(target=ask, daemon=True).start()
    else:
        Noted.latest.loop.call_at(0, breaks)

where, run.Process = sys.argv[2], Noted
if where == "handler":
    Metadata.handle = breaks
run.log_to_stderr()
data = DataDirectory(RealFiles(), sys.argv[1])
run.run_cluster(data, ClusterPlan(port=0), ready)
"""


def _run(path: Path, where: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(path), where],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("where", ["handler", "timer"])
def test_a_broken_rule_ends_the_process_and_reports_what_the_broker_believed(
    tmp_path: Path, where: str
) -> None:
    ended = _run(tmp_path / "data", where)
    assert ended.returncode == 70, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if "FATAL" in line]
    assert any("a watermark went back" in line for line in lines)
    assert any("broker 1, epoch" in line and "partitions" in line for line in lines)
    assert any("Metadata" in line for line in lines) == (where == "handler")
