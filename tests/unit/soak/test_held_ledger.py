"""The ledger of the soaks finds in this process what a broker must not hold."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.held_ledger import HeldLedger

ME = {"me": os.getpid()}


@pytest.fixture
def ledger(tmp_path: Path) -> HeldLedger:
    # What other tests have left in this process must not end between two looks.
    gc.collect()
    made = HeldLedger([tmp_path], rss_mib_max=1 << 20)
    made.begin(ME)
    return made


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(b"records")
    with path.open("rb"):
        yield path


def test_the_file_of_a_live_segment_may_be_open_once(ledger: HeldLedger, log: Path) -> None:
    assert [] == ledger.findings(ME)
    with log.open("rb"):
        (found,) = ledger.findings(ME)
    assert f"open 2 times: {log}" in found


def test_a_file_that_is_deleted_may_not_be_open(ledger: HeldLedger, log: Path) -> None:
    renamed = log.rename(f"{log}.deleted")
    (found,) = ledger.findings(ME)
    assert f"open, and deleted: {renamed}" in found
    renamed.unlink()
    (found,) = ledger.findings(ME)
    assert f"open, and deleted: {renamed} (deleted)" in found


def test_the_middle_of_a_change_may_not_be_left(ledger: HeldLedger, log: Path) -> None:
    (log.parent / "5.log.cleaned").touch()
    (log.parent / "5.index.swap").touch()
    (log.parent.parent / "recovery-point-offset-checkpoint.tmp").touch()
    assert 3 == len(ledger.findings(ME))


def test_descriptors_are_where_they_began(ledger: HeldLedger) -> None:
    first, second = os.pipe()
    (found,) = ledger.findings(ME)
    assert "descriptors at first" in found
    for descriptor in (first, second):
        os.close(descriptor)
    assert [] == ledger.findings(ME)


def test_a_socket_has_another_end(ledger: HeldLedger) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        taken, _ = server.accept()
        with taken:
            assert [] == ledger.findings(ME)
            client.close()
            taken.recv(1)
            (found,) = ledger.findings(ME)
    assert "a socket to nobody" in found


def test_a_child_process_is_found(ledger: HeldLedger) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        found = ledger.findings(ME)
        child.communicate()
    assert any(f"a child: {child.pid} cat" in each for each in found)


def test_memory_has_a_bound(tmp_path: Path) -> None:
    (found,) = HeldLedger([tmp_path], rss_mib_max=1).findings(ME)
    assert "MiB of memory, 1 at most" in found


def test_what_is_held_is_waited_for_and_said_after_the_deadline(
    ledger: HeldLedger, log: Path
) -> None:
    ledger.check(ME)
    log.unlink()
    with pytest.raises(AssertionError, match="open, and deleted"):
        ledger.check(ME, deadline_s=0)
