"""A broker in memory with listeners that have SASL, and what is in front of them."""

from __future__ import annotations

import struct
from typing import Any, Final

from engine.host.coroutine import drive
from engine.security.scram import SaltedPassword, ScramMechanism, credential_text
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.model import Create
from engine.znode.values import encode_config
from tests.unit.broker.memory_broker import MemoryBroker

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN: Final = f'{PLAIN_MODULE} required user_alice="alice-pw" user_bob="bob,=pw";'
_SCRAM: Final = f"{SCRAM_MODULE} required;"
_SHORTEST_DELAY_MS: Final = 100
_QUIET_MS: Final = 300


def salted(mechanism: ScramMechanism, password: str) -> str:
    """Return what is kept of a password."""
    import hashlib

    salt = b"salt" * 5
    raw = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, 4096)
    return credential_text(mechanism, SaltedPassword(salt, raw, 4096))


def secured_broker(**settings: str) -> MemoryBroker:
    """Return a broker with the listeners and users of `tests/compat/sasl_handshakes.py`."""
    stage = MemoryBroker(
        listeners="PLAINTEXT://here:0,SASL://here:0,REAUTH://here:0,ONLYPLAIN://here:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,"
        "REAUTH:SASL_PLAINTEXT,ONLYPLAIN:SASL_PLAINTEXT",
        inter_broker_listener_name="PLAINTEXT",
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        **settings,
    )
    for listener in ("sasl", "reauth"):
        stage.set(f"listener.name.{listener}.plain.sasl.jaas.config", _PLAIN)
        for mechanism in ScramMechanism:
            key = f"listener.name.{listener}.{mechanism.key.lower()}.sasl.jaas.config"
            stage.set(key, _SCRAM)
    stage.set("listener.name.onlyplain.sasl.enabled.mechanisms", "PLAIN")
    stage.set("listener.name.onlyplain.plain.sasl.jaas.config", _PLAIN)
    stage.set("listener.name.reauth.connections.max.reauth.ms", "3000")
    stage.start()
    passwords = {mechanism.key: salted(mechanism, "carol-pw") for mechanism in ScramMechanism}
    add_user(stage, "carol", passwords)
    odd = {"SCRAM-SHA-256": salted(ScramMechanism.SCRAM_SHA_256, "x")}
    add_user(stage, "od%2Cd%3D1", odd)
    return stage


def add_user(stage: MemoryBroker, node: str, settings: dict[str, str]) -> None:
    """Give a new user settings, as another broker of the cluster does."""
    from engine.znode.paths import CONFIG_CHANGE_PREFIX
    from engine.znode.values import encode_config_change

    session = EmbeddedZnodeClient(stage.store, 1 << 30)
    drive(session.connect()).result()
    drive(session.multi([Create(f"/config/users/{node}", encode_config(settings))])).result()
    change = encode_config_change(f"users/{node}")
    drive(session.create(CONFIG_CHANGE_PREFIX, change, sequential=True)).result()
    stage.timers.run_until_idle()


class MemoryWire:
    """A connection to a listener of a broker in memory; see `tests.compat.sasl_conversation.Wire`.

    A frame whose length alone is sent, or is negative, is one that is larger than any bound.
    """

    def __init__(self, stage: MemoryBroker, listener: str) -> None:
        self._stage = stage
        self._frames: list[bytes] = []
        self._connection: Any = stage.network.connect("here", stage.broker.ports[listener])
        self._connection.on_frame = lambda frame: self._frames.append(bytes(frame))

    def send(self, raw: bytes) -> bool:
        """Send bytes; returns whether the connection is still there."""
        (length,) = struct.unpack_from(">i", raw)
        content = raw[4:] if length == len(raw) - 4 else b"\x00" * 600_000
        self._connection.send([content])
        return not self._connection.is_closed

    @property
    def is_closed(self) -> bool:
        """Return whether the broker has ended it."""
        return bool(self._connection.is_closed)

    def receive(self) -> bytes | None:
        """Return the next frame, None at the end; raises TimeoutError if neither comes."""
        for delay_ms in (0, _SHORTEST_DELAY_MS, _QUIET_MS):
            self._stage.pass_time(delay_ms)
            if self._frames:
                return self._frames.pop(0)
            if self._connection.is_closed:
                return None
        raise TimeoutError

    def now_s(self) -> float:
        """Return the time."""
        return self._stage.clock.monotonic_ms() / 1000

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self._stage.pass_time(int(seconds * 1000))

    def close(self) -> None:
        """End it."""
        self._connection.close("the test is over")
        self._stage.timers.run_until_idle()
