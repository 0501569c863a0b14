"""A thousand connections that do not get past their handshakes, and one client that does.

    make soak-handshakes MINUTES=10 SEED=7     or: python -m tests.soak.hostile_handshakes

A quarter each says nothing, sends all but a byte of the largest frame, sends one byte a second, and begins
a TLS handshake that it does not finish; others come and go, with frames that are random or nearly right.

What is checked:

1. a client that logs in by SASL, and one that connects by TLS, is served within a second all the time;
2. the broker takes little more than the 512 KiB of its frame for a connection;
3. every connection is closed by its deadline, and the broker says nothing is wrong with it.
"""  # noqa: E501 - prose

from __future__ import annotations

import argparse
import socket
import ssl
import struct
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

from tests.cluster.raw_client import RawClient
from tests.compat.secured.brokers import SecuredBroker
from tests.compat.secured.certificates import AUTHORITY, write_certificates
from tests.compat.secured.log_in import log_in
from tests.soak.held_ledger import rss_kib
from tests.unit.broker.handshake_storm import hostile_frame

_CONNECTIONS: Final = 1000
_IDLE_S: Final = 20
_SERVED_S_MAX: Final = 1.0
#: A quarter of them holds a frame of 512 KiB.
_KIB_EACH_MAX: Final = 170
_FRAME_BYTES_MAX: Final = 524_288
#: The head of a TLS record of 512 bytes, and a few of these.
_BEGUN_TLS: Final = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60)
_GUESTS_EACH_TURN: Final = 20
_FAULTS: Final = ("Traceback", "was not served", " CRITICAL ")


class Hostility:
    """Connections that stay in their handshakes, and guests that come and go."""

    def __init__(self, broker: SecuredBroker, seed: int) -> None:
        self._broker = broker
        self._rng = Random(seed)
        self.held: list[socket.socket] = []
        self._slow: list[socket.socket] = []

    def fill(self) -> None:
        """Begin as many connections as there should be."""
        for number in range(_CONNECTIONS):
            kind = number % 4
            found = self._connect("SSL" if kind == 3 else "SASL")
            if kind == 1:
                found.sendall(struct.pack(">i", _FRAME_BYTES_MAX) + bytes(_FRAME_BYTES_MAX - 1))
            elif kind == 2:
                found.sendall(b"\0\0\0\x40")
                self._slow.append(found)
            elif kind == 3:
                found.sendall(_BEGUN_TLS)
            self.held.append(found)

    def go_on(self) -> None:
        """Send a byte on each slow connection, and frames of guests."""
        for found in self._slow:
            _send(found, b"\0")
        for _ in range(_GUESTS_EACH_TURN):
            guest = self._connect(self._rng.choice(("SASL", "REAUTH", "SSL", "SASLSSL")))
            for _ in range(self._rng.randint(1, 5)):
                frame = hostile_frame(self._rng)
                _send(guest, struct.pack(">i", len(frame)) + frame)
            guest.close()

    def open_count(self) -> int:
        """Return how many of those that were held the broker has not closed."""
        return sum(not _is_closed(found) for found in self.held)

    def close(self) -> None:
        """Close all that is left."""
        for found in self.held:
            found.close()

    def _connect(self, listener: str) -> socket.socket:
        return socket.create_connection(("localhost", self._broker.ports[listener]), 10)


def served_s(broker: SecuredBroker, certificates: Path) -> float:
    """Return how long a client takes from its connection to a response, by SASL and by TLS."""
    began_s = time.monotonic()
    with RawClient(broker.address("SASL")) as client:
        log_in(client.socket, "alice")
        client.ask("Metadata", 9, topics=[])
    by_sasl_s = time.monotonic() - began_s
    context = ssl.create_default_context(cafile=str(certificates / AUTHORITY))
    began_s = time.monotonic()
    with RawClient(broker.address("SSL")) as client:
        client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
        client.ask("Metadata", 9, topics=[])
    return max(by_sasl_s, time.monotonic() - began_s)


def main() -> int:
    """Run; returns 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        certificates = Path(scratch) / "certificates"
        certificates.mkdir()
        write_certificates(certificates)
        broker = SecuredBroker(Path(scratch) / "broker", certificates, None)
        try:
            broker.start({"connections.max.idle.ms": str(_IDLE_S * 1000)})
            wrong = _rounds(broker, certificates, given.minutes * 60, given.seed)
            log = broker.log_text()
        finally:
            broker.stop()
    wrong += [f"the log says{fault}" for fault in _FAULTS if fault in log]
    print(*(wrong or ["nothing is wrong"]), sep="\n")
    return int(bool(wrong))


def _rounds(broker: SecuredBroker, certificates: Path, duration_s: float, seed: int) -> list[str]:
    """Fill the listeners again and again; returns what is wrong."""
    wrong: list[str] = []
    served_s(broker, certificates)
    end_s, number = time.monotonic() + duration_s, 0
    while time.monotonic() < end_s or not number:
        number += 1
        hostility = Hostility(broker, seed + number)
        before_kib = rss_kib(broker.pid)
        hostility.fill()
        slowest_s, most_kib = 0.0, 0
        until_s = time.monotonic() + _IDLE_S / 2
        while time.monotonic() < until_s:
            hostility.go_on()
            slowest_s = max(slowest_s, served_s(broker, certificates))
            most_kib = max(most_kib, rss_kib(broker.pid))
            time.sleep(0.5)
        each_kib = (most_kib - before_kib) / _CONNECTIONS
        time.sleep(_IDLE_S + 5)
        left = hostility.open_count()
        hostility.close()
        print(
            f"{number}: served within {slowest_s:.2f} s, {each_kib:.0f} KiB each, {left} left open",
            flush=True,
        )
        if slowest_s > _SERVED_S_MAX:
            wrong.append(f"a client waited for {slowest_s:.2f} s")
        if each_kib > _KIB_EACH_MAX:
            wrong.append(f"{each_kib:.0f} KiB for each connection")
        if left:
            wrong.append(f"{left} connections are open behind their deadline")
    return wrong


def _send(found: socket.socket, raw: bytes) -> None:
    try:
        found.sendall(raw)
    except OSError:
        return


def _is_closed(found: socket.socket) -> bool:
    found.settimeout(0.01)
    try:
        while found.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


if __name__ == "__main__":
    sys.exit(main())
