"""What a client without rights, and one with few, gets for every API and version, byte for byte.

User nobody has no rules; user partly may do everything to topics, groups and transactional ids
with names that begin with `ok`. Requests name what is there and what is not, in one request too, so
that the order of what is allowed, denied and unknown shows. None changes what others see.
"""

from __future__ import annotations

import re
import socket
import struct
from typing import Final

from engine.wire.errors import UnencodableValue
from tests.compat.secured.brokers import SecuredBroker
from tests.compat.secured.denied_requests import GROUPS, THERE, TRANSACTIONS, requests
from tests.compat.secured.log_in import log_in
from tests.compat.wire.pair import Body, BodyOf, Difference, Pair, Side, encode, versions
from tests.compat.wire_compare import print_differences
from tests.unit.api.test_admission import codes_in

_USERS: Final = ("nobody", "partly")
#: Versions from which on requests of user partly change nothing: others cannot only be validated.
_WITHOUT_EFFECTS: Final = {"CreateTopics": 1, "Produce": 99}
#: Patterns of `label path` that may differ, and why.
_ACCEPTED: Final = (
    (r"^(AddPartitionsToTxn|CreatePartitions|DeleteRecords) .*order$", "hashes"),
    (r"^(ElectLeaders|Metadata|Produce) .*order$", "hashes"),
    (r"^(WriteTxnMarkers|OffsetFetch v[0-7]) .*order$", "hashes"),
    (r"^DescribeTopicPartitions ", "Kafka with ZooKeeper closes the connection"),
    (r"^DescribeUserScramCredentials v0 \w+ all ", "Kafka fails at it and sends nothing"),
    (r"^Offset(Fetch|Commit) v0 partly ", "nobody keeps offsets in znodes"),
    (r" message$", "Kafka prints whole requests, or the defaults of its exceptions"),
)
_ATTEMPTS: Final = 60


class LoggedInSide(Side):
    """A broker whose connections are those of users; that of `main` is the super user's."""

    def __init__(self, name: str, broker: SecuredBroker) -> None:
        super().__init__(name, broker.address("SASL"), timeout_s=10.0)
        self._broker = broker
        self.last_frame: bytes | str = b""

    def connection(self, key: str) -> socket.socket:
        """Return the connection of a user."""
        if key in self.sockets:
            return self.sockets[key]
        self.port = self._broker.ports["PLAINTEXT" if key == "main" else "SASL"]
        self.masks.ports = {self.port: "<port>"}
        found = super().connection(key)
        if key != "main":
            log_in(found, key)
        return found

    def frame(self, key: str, timeout_s: float | None = None) -> bytes | str:
        """Return the next frame, and keep it."""
        self.last_frame = super().frame(key, timeout_s)
        return self.last_frame

    def masked_frame(self, key: str) -> bytes | str:
        """Return the last frame without the port and the ids that a broker has by itself."""
        frame = self.last_frame
        if isinstance(frame, str):
            return frame
        port = self._broker.ports["PLAINTEXT" if key == "main" else "SASL"]
        frame = frame.replace(struct.pack(">i", port), b"port")
        for topic_id, name in self.masks.topic_ids.items():
            frame = (
                frame.replace(topic_id, name.encode()[:16].ljust(16)) if any(topic_id) else frame
            )
        cluster_id = self.kept["cluster_id"].encode()
        return frame.replace(cluster_id, b"c" * len(cluster_id))


class DeniedPair(Pair):
    """Compares bytes too, where the fields are the same."""

    def __init__(self, real: SecuredBroker, ours: SecuredBroker) -> None:
        super().__init__("real:0", "ours:0")
        self.real, self.ours = LoggedInSide("real", real), LoggedInSide("ours", ours)
        self.logged_in = (self.real, self.ours)
        self.sides = self.logged_in

    def name(self, suffix: str) -> str:
        """Return a name as it is: the brokers are fresh."""
        return suffix

    def ask_as(self, user: str, label: str, name: str, version: int, body: BodyOf) -> None:
        """Ask both as a user, unless the version has no place for what the body says."""
        try:
            encode(f"{name}Request", version, body(self.real) if callable(body) else body)
        except UnencodableValue:
            return
        noted = len(self.differences)
        self.ask(f"{user} {label}", name, version, body, on=user)
        if len(self.differences) > noted:
            return
        frames = [side.masked_frame(user) for side in self.logged_in]
        if frames[0] != frames[1] and name != "ApiVersions":
            shown = [one if isinstance(one, str) else one.hex() for one in frames]
            self.note(f"{name} v{version} {user} {label}", "value", "<bytes>", *shown)


def compare_denied(real: SecuredBroker, ours: SecuredBroker) -> int:
    """Ask everything and print what differs; returns how much does."""
    pair = DeniedPair(real, ours)
    _set_stage(pair)
    for user in _USERS:
        for name, bodies in requests(pair.now_ms).items():
            for version in versions(name):
                if user == "partly" and version < _WITHOUT_EFFECTS.get(name, 0):
                    continue
                for label, body in bodies.items():
                    pair.ask_as(user, label, name, version, body)
    pair.close()
    left = [one for one in pair.differences if not _is_accepted(one)]
    print_differences(left, 2)
    count = sum(pair.requested.values())
    accepted = len(pair.differences) - len(left)
    print(f"denied: {count} requests, {len(left)} differ, {accepted} as accepted")
    return len(left)


def _is_accepted(found: Difference) -> bool:
    text = f"{found.label} {found.path} {found.kind}"
    return any(re.search(pattern, text) for pattern, _ in _ACCEPTED)


def _set_stage(pair: DeniedPair) -> None:
    """Make topics, rules, committed offsets and transactional ids."""
    answers = pair.ask("stage", "Metadata", 9, {"topics": []})
    for side, answer in zip(pair.sides, answers, strict=True):
        side.kept["cluster_id"] = answer.cluster_id
    for name in THERE:
        pair.topic(name)
    rule = {
        "resource_name": "ok",
        "resource_pattern_type": 4,
        "principal": "User:partly",
        "host": "*",
        "operation": 2,
        "permission_type": 3,
    }
    creations = [rule | {"resource_type": number} for number in (2, 3, 5)]
    pair.ask("stage", "CreateAcls", 3, {"creations": creations})
    offsets = [{"partition_index": 0, "committed_offset": 0}]
    committed = [{"name": name, "partitions": offsets} for name in THERE]
    for key_type, names in ((0, GROUPS[:2]), (1, TRANSACTIONS[:2])):
        for name in names:
            found = {"key_type": key_type, "coordinator_keys": [name]}
            _copy_until_done(pair, "FindCoordinator", 4, found)
    for name in GROUPS[:2]:
        _copy_until_done(pair, "OffsetCommit", 8, {"group_id": name, "topics": committed})
    for name in TRANSACTIONS[:2]:
        begun = {"transactional_id": name, "transaction_timeout_ms": 60_000}
        _copy_until_done(pair, "InitProducerId", 4, begun)
    pair.differences.clear()
    pair.requested.clear()


def _copy_until_done(pair: Pair, name: str, version: int, body: Body) -> None:
    """Ask until both have done it: a coordinator takes a moment."""
    for _ in range(_ATTEMPTS):
        answers = pair.ask("stage", name, version, body)
        if {code for answer in answers for code in codes_in(answer)} == {0}:
            return
        pair.settle(0.5)
    raise AssertionError((name, body, answers))
